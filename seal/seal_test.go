// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/trace/raw"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// TestSeal seals the streams of testdata/*.txtar. Each file has a comment that says
// what it is about, the stream's text (package trace/raw), and what the tape then
// holds, or the error.
func TestSeal(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Files) == 0 || a.Files[0].Name != "stream" {
				t.Fatalf("%s has no stream", file)
			}
			got := sealText(t, a.Files[0].Data)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "tape", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(a.Files) != 2 || string(a.Files[1].Data) != got {
				t.Errorf("the tape holds:\n%s", got)
			}
		})
	}
}

// sealText seals a stream and describes the tape.
func sealText(t *testing.T, text []byte) string {
	t.Helper()
	var stream bytes.Buffer
	if err := raw.Build(&stream, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	st, err := seal.Seal(context.Background(), &stream, tw, nil)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	if err := tw.Close(st.Manifest("test")); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if rep, err := tape.Check(context.Background(), nil); err != nil || !rep.OK() {
		t.Errorf("the tape does not check: %v %v", err, rep)
	}
	var w strings.Builder
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		describe(&w, tape, ev)
	}
	m := tape.Manifest()
	fmt.Fprintf(&w, "%d events, %d lost, %d bytes missing\n", st.Events, st.Lost, st.Missing)
	for _, l := range m.Losses {
		fmt.Fprintf(&w, "lost %d: %s\n", l.Records, l.Reason)
	}
	if m.Incomplete {
		fmt.Fprintf(&w, "incomplete: %s\n", m.Reason)
	}
	return w.String()
}

var kindNames = map[event.EventKind]string{
	event.Exited: "exited", event.LossMark: "loss", event.NoteMark: "note", event.Forked: "forked", event.Started: "started", event.Inherited: "inherited", event.Woken: "woken", event.Signalled: "signal",
}

func describe(w *strings.Builder, tape *trace.Tape, ev *event.Event) {
	fmt.Fprintf(w, "%d-%d %d/%d ", ev.Enter, ev.Exit, ev.PID, ev.TID)
	if ev.Kind == event.Call {
		w.WriteString(ev.Spec().Name)
	} else {
		w.WriteString(kindNames[ev.Kind])
	}
	if ev.Errno != 0 {
		fmt.Fprintf(w, " = %s", event.ErrnoName(ev.Errno))
	} else {
		fmt.Fprintf(w, " = %d", ev.Ret)
	}
	if ev.Child != 0 {
		fmt.Fprintf(w, " child=%d", ev.Child)
	}
	if ev.NSPID != 0 {
		fmt.Fprintf(w, " inside=%d/%d", ev.NSPID, ev.NSTID)
	}
	if ev.Flags&event.Delays != 0 {
		fmt.Fprintf(w, " delays=%d+%d", ev.DelayBefore, ev.DelayWithin)
	}
	if ev.Offset >= 0 {
		fmt.Fprintf(w, " offset=%d", ev.Offset)
	}
	for _, f := range []struct {
		bit  event.EventFlags
		name string
	}{{event.Interrupted, "interrupted"}, {event.Incomplete, "incomplete"}, {event.Late, "late"}} {
		if ev.Flags&f.bit != 0 {
			w.WriteString(" " + f.name)
		}
	}
	w.WriteByte('\n')
	for _, f := range ev.Files {
		fmt.Fprintf(w, "    file %d: fd %d open %d %s\n", f.Arg, f.FD, f.Open, f.Path)
	}
	for _, p := range ev.Paths {
		fmt.Fprintf(w, "    path %d: %s -> %s\n", p.Arg, p.Raw, p.Abs)
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		fmt.Fprintf(w, "    buf %d: %d bytes", b.Arg, b.Len)
		if b.Missing > 0 {
			fmt.Fprintf(w, ", %d missing", b.Missing)
		}
		if b.Omitted {
			w.WriteString(", omitted")
		} else if data, _, err := tape.ContentZero(b, nil); err == nil {
			if len(data) > 32 {
				fmt.Fprintf(w, " %q…", data[:16])
			} else {
				fmt.Fprintf(w, " %q", data)
			}
		}
		if len(b.Parts) > 0 {
			fmt.Fprintf(w, " parts %v", b.Parts)
		}
		for _, r := range b.Refs {
			fmt.Fprintf(w, " #%d+%d:%d", r.Chunk, r.Off, r.Len)
		}
		w.WriteByte('\n')
	}
}
