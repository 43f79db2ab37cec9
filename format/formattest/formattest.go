// SPDX-License-Identifier: Apache-2.0

package formattest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Import makes a tape of each host in a file, and fails the test if that cannot be done.
func Import(t testing.TB, f *format.Format, path string) (map[string]*trace.Tape, *format.Done) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	im := format.NewImport(t.TempDir(), "test")
	if err := f.Read(context.Background(), in, im); err != nil {
		t.Fatal(err)
	}
	streams, err := im.Close()
	if err != nil {
		t.Fatal(err)
	}
	tapes := map[string]*trace.Tape{}
	for _, s := range streams {
		tape := sealed(t, s)
		tapes[tape.Manifest().Hosts[0].Host] = tape
	}
	return tapes, &im.Done
}

// Read reads input as a foreign file, for targets of fuzzing: it fails the test if what was read cannot
// be closed, and returns what the reader said.
func Read(
	t testing.TB, read func(context.Context, *os.File, *format.Import) error, input []byte,
) (*format.Done, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, input, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	im := format.NewImport(t.TempDir(), "test")
	err = read(context.Background(), in, im)
	if _, err := im.Close(); err != nil {
		t.Fatal(err)
	}
	return &im.Done, err
}

// Tape returns the tape of what write imports, of one host.
func Tape(t testing.TB, write func(im *format.Import) error) (*trace.Tape, *format.Done) {
	t.Helper()
	im := format.NewImport(t.TempDir(), "test")
	err := write(im)
	streams, closeErr := im.Close()
	if err != nil {
		t.Fatal(err)
	}
	if closeErr != nil {
		t.Fatal(closeErr)
	}
	if len(streams) != 1 {
		t.Fatalf("%d hosts", len(streams))
	}
	return sealed(t, streams[0]), &im.Done
}

// One is Import of a file of one host.
func One(t testing.TB, f *format.Format, path string) (*trace.Tape, *format.Done) {
	t.Helper()
	tapes, done := Import(t, f, path)
	if len(tapes) != 1 {
		t.Fatalf("%s: %d hosts", path, len(tapes))
	}
	for _, tape := range tapes {
		return tape, done
	}
	return nil, nil
}

func sealed(t testing.TB, stream string) *trace.Tape {
	t.Helper()
	in, err := os.Open(stream)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := seal.Seal(context.Background(), in, tw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if st.Damage != nil {
		t.Fatalf("sealing: %v", st.Damage)
	}
	if err := tw.Close(st.Manifest("test")); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

// Text prints the events of a tape, without their times.
func Text(t testing.TB, tape *trace.Tape) string {
	t.Helper()
	content := func(b *event.Buf, n int) []byte {
		data, err := tape.Content(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return data[:min(n, len(data))]
	}
	p := stracetext.New(&stracetext.Options{Clock: stracetext.NoClock, Hosts: tape.Manifest().Hosts, Content: content,
		MaxBytes: 400})
	var text []byte
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		text = p.Append(text, ev)
	}
	return string(text)
}

// Golden compares a text with a file, which is written anew if GOLDEN is set in the
// environment.
func Golden(t testing.TB, path, got string) {
	t.Helper()
	if os.Getenv("GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := string(b); got != want {
		g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("%s, line %d:\n got %s want %s(GOLDEN=1 go test writes it anew)", path, i+1, g[i], w[i])
			}
		}
		t.Fatalf("%s: %d lines, want %d", path, len(g), len(w))
	}
}

// Describe tells the calls of a tape, each as one line: who, what, on which files and
// paths, with which content and result.
func Describe(t testing.TB, tape *trace.Tape) []string {
	t.Helper()
	var list []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call {
			continue
		}
		s := fmt.Sprintf("%d/%d %s %s", ev.PID, ev.TID, ev.Comm, ev.Spec().Name)
		for _, f := range ev.Files {
			s += fmt.Sprintf(" %d:fd%d=%s", f.Arg, f.FD, f.Path)
		}
		for _, p := range ev.Paths {
			s += fmt.Sprintf(" %d:%q=%s", p.Arg, p.Raw, p.Abs)
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			s += fmt.Sprintf(" %d:%d", b.Arg, b.Len)
			if !b.Omitted && b.Missing == 0 {
				data, err := tape.Content(b, nil)
				if err != nil {
					t.Fatal(err)
				}
				s += fmt.Sprintf("=%q", data)
			}
		}
		if ev.Offset >= 0 {
			s += fmt.Sprintf(" @%d", ev.Offset)
		}
		s += fmt.Sprintf(" = %d", ev.Ret)
		if ev.Errno != 0 {
			s += " " + event.ErrnoName(ev.Errno)
		}
		if ev.Flags&event.Interrupted != 0 {
			s += " (interrupted)"
		}
		list = append(list, s)
	}
	return list
}
