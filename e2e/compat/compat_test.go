// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/trace/raw"
	"github.com/iotape/iotape/transform/anon"
	"github.com/iotape/iotape/tree"
)

var update = flag.Bool("update", false, "write the texts beside the samples")

const samples = "testdata/v0.1"

// golden compares what was read with the text beside the samples.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join(samples, name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s differs from what was read before (-want +got):\n%s", file, diff)
	}
}

func open(t *testing.T, dir string) *trace.Tape {
	t.Helper()
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

func TestTape(t *testing.T) {
	tape := open(t, filepath.Join(samples, "sample.tape"))
	rep, err := tape.Check(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := seal.CheckTrees(t.Context(), tape, rep); err != nil || !rep.OK() {
		t.Errorf("check: %v, damage %v, want none", err, rep.Damage)
	}
	golden(t, "sample.tape.txt", dump(t, tape))
	var trees strings.Builder
	for _, name := range []string{"snapshot", "final"} {
		f, err := tape.OpenFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := tree.Decode(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fmt.Fprintf(&trees, "%s of %s: %s\n", name, m.Root, asJSON(t, m.Entries))
	}
	golden(t, "sample.trees.txt", trees.String())

	notes, err := causal.Read(tape)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	w := bufio.NewWriter(&text)
	describe := func(b []byte, ev *event.Event) []byte { return fmt.Append(b, ev.Op) }
	if err := notes.WriteText(w, tape.Events(), nil, describe); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.annotations.txt", text.String())
}

func TestStreams(t *testing.T) {
	for _, name := range []string{"sample", "ptrace", "signature", "mount"} {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join(samples, name+".stream"))
			if err != nil {
				t.Fatal(err)
			}
			checkStream(t, name, stream)
		})
	}
}

// checkStream compares the records of a stream, and the events of the tape that sealing makes of it.
func checkStream(t *testing.T, name string, stream []byte) {
	t.Helper()
	var text bytes.Buffer
	if err := raw.Dump(&text, bytes.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	golden(t, name+".stream.txt", shorten(text.String()))
	dir := filepath.Join(t.TempDir(), "a.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := seal.Seal(t.Context(), bytes.NewReader(stream), tw, nil)
	if err != nil {
		tw.Abort()
		t.Fatal(err)
	}
	if st.Damage != nil || st.Lost > 0 {
		t.Errorf("sealing found damage %v and %d lost events, want none", st.Damage, st.Lost)
	}
	if err := tw.Close(st.Manifest("test")); err != nil {
		t.Fatal(err)
	}
	golden(t, name+".sealed.txt", dump(t, open(t, dir)))
}

// TestPiped takes the layers off: what is left is the stream that went through them.
func TestPiped(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"reader.key", "sum.key"} {
		b, err := os.ReadFile(filepath.Join(samples, name))
		if err != nil {
			t.Fatal(err)
		}
		// git keeps no mode that hides them from others, as keys have to be.
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := chain.ReadKeys([]string{filepath.Join(dir, "reader.key")}, []string{filepath.Join(dir, "sum.key")})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(samples, "sample.piped"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	plain, piped, err := chain.Plain(chain.WithKeys(t.Context(), keys), f)
	if err != nil || !piped {
		t.Fatalf("got piped %v, %v, want true", piped, err)
	}
	got, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(samples, "sample.stream"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes with sum %x, want the %d bytes with sum %x that were piped",
			len(got), sum(got), len(want), sum(want))
	}
}

// TestAnonymised reveals an anonymised tape: all values are those of the original.
func TestAnonymised(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(samples, "anonymised.keys"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := anon.ParseKeys(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	tape := open(t, filepath.Join(samples, "anonymised.tape"))
	golden(t, "anonymised.txt", dump(t, tape))
	dir := filepath.Join(t.TempDir(), "revealed.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	res, err := anon.Reveal(t.Context(), tw, tape, &anon.Options{Keys: keys, Fields: anon.AllFields})
	if err != nil {
		tw.Abort()
		t.Fatal(err)
	}
	if err := tw.Close(res.Manifest); err != nil {
		t.Fatal(err)
	}
	if res.Unsigned || len(res.LeftOut) > 0 {
		t.Errorf("unsigned %v, left out %q, want neither", res.Unsigned, res.LeftOut)
	}
	got, want := dump(t, open(t, dir)), dump(t, open(t, filepath.Join(samples, "sample.tape")))
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("the revealed tape differs from the original (-want +got):\n%s", diff)
	}
}

func TestScript(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := script.Compile(t.Context(), filepath.Join(samples, "sample.script"), tw, "test")
	if err != nil {
		tw.Abort()
		t.Fatal(err)
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	golden(t, "script.txt", dump(t, open(t, dir)))
}

// TestRuns reads the runs of discover: written again, they are the same.
func TestRuns(t *testing.T) {
	for _, name := range []string{"quiet", "node-1-1"} {
		want, err := os.ReadFile(filepath.Join(samples, "runs", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var of struct{ Serial string }
		if err := json.Unmarshal(want, &of); err != nil {
			t.Fatal(err)
		}
		r, err := throttle.ReadRun(bytes.NewReader(want), of.Serial)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got bytes.Buffer
		if err := r.Write(&got); err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s: got %s, want %s", name, got.String(), want)
		}
	}
}

func TestConfigurations(t *testing.T) {
	text := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(samples, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	a, err := agent.ParseConfig(text("agent.toml"))
	if err != nil {
		t.Errorf("agent.toml: %v", err)
	} else {
		golden(t, "agent.toml.txt", asJSON(t, a)+"\n")
	}
	c, err := config.Parse("tracers.toml", text("tracers.toml"), &config.Options{
		Filter: func(text string) (*predicate.Graph, error) {
			return predicate.New(text, &predicate.Options{Hosts: []predicate.Host{{Name: "h"}}})
		},
	})
	if err != nil {
		t.Fatalf("tracers.toml: %v", err)
	}
	var got strings.Builder
	fmt.Fprintf(&got, "capture %s\ncontrol %s\nwarnings %v\n", asJSON(t, c.Capture), asJSON(t, c.Control), c.Warnings)
	for _, s := range c.Tracers {
		fmt.Fprintf(&got, "tracer %s: input %s filter %v output %s\n",
			s.Name, asJSON(t, s.Input), s.Filter != nil, asJSON(t, s.Output))
	}
	golden(t, "tracers.toml.txt", got.String())
}

func TestStaged(t *testing.T) {
	streams, damaged, err := staging.Find(samples)
	if err != nil || len(damaged) > 0 || len(streams) != 1 {
		t.Fatalf("got %d streams, damaged %v, %v, want one", len(streams), damaged, err)
	}
	s := &streams[0]
	golden(t, "staged.txt", fmt.Sprintf("about %s\nend %s\n", asJSON(t, s.About), asJSON(t, s.End)))
	stream, err := os.ReadFile(s.File())
	if err != nil {
		t.Fatal(err)
	}
	checkStream(t, "staged", stream)
}

// TestSpool reads what an agent of 0.1 did not send: parcels, whose data is a stream.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(samples, "spool"))); err != nil {
		t.Fatal(err)
	}
	sp, err := spool.Open(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer sp.Close()
	first, next := sp.Bounds()
	var text strings.Builder
	var stream []byte
	for n := first; n < next; n++ {
		b, ok, err := sp.Get(n, nil)
		if err != nil || !ok {
			t.Fatalf("item %d: there %v, %v", n, ok, err)
		}
		p, err := batch.Decode(b)
		if err != nil {
			t.Fatalf("item %d: %v", n, err)
		}
		const line = "item %d: kind %d flags %d number %d before %d events %d lost %d stream %s: %d bytes, sum %x\n"
		fmt.Fprintf(&text, line, n, p.Kind, p.Flags, p.Number, p.Before, p.Events, p.Lost, p.Stream, len(p.Data),
			sum(p.Data))
		if p.Kind == batch.Data {
			stream = append(stream, p.Data...)
		}
	}
	ledger, err := spool.OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "ledger %s\n", asJSON(t, ledger.State()))
	if err := ledger.Close(); err != nil {
		t.Error(err)
	}
	golden(t, "spool.txt", text.String())
	var records bytes.Buffer
	if err := raw.Dump(&records, bytes.NewReader(stream)); err != nil && !errors.Is(err, trace.ErrTruncated) {
		t.Fatal(err)
	}
	golden(t, "spool.stream.txt", shorten(records.String()))
}
