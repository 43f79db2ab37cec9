package formattest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"iotape/event"
	"iotape/format"
	"iotape/seal"
	"iotape/trace"
)

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
	stream, err := os.Open(streams[0])
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	st, err := seal.Seal(context.Background(), stream, tw, nil)
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
	return tape, &im.Done
}

// Read returns the tape of a foreign file, of one host.
func Read(t testing.TB, f *format.Format, path string) (*trace.Tape, *format.Done) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	return Tape(t, func(im *format.Import) error { return f.Read(t.Context(), in, im) })
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
