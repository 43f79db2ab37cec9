// SPDX-License-Identifier: Apache-2.0

package open_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/open"
	"github.com/iotape/iotape/format/tapes"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/trace"
)

const fioLog = `fio version 3 iolog
1 /data/a add
2 /data/a open
3 /data/a write 0 4096
4 /data/a close
`

// fixtures writes one file of each kind to a directory. Each holds the same three events.
func fixtures(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	im := format.NewImport(dir, "test")
	w, err := im.Host("h")
	if err != nil {
		t.Fatal(err)
	}
	for i, op := range []event.Op{event.OpOpen, event.OpPwrite64, event.OpClose} {
		call := format.Call{Op: op, PID: 7, TID: 7, Enter: uint64(10 * i), Exit: uint64(10*i + 5), Ret: 3}
		if op == event.OpOpen {
			call.Text(0, "/data/a", false)
		}
		if err := w.Call(&call); err != nil {
			t.Fatal(err)
		}
	}
	streams, err := im.Close()
	if err != nil || len(streams) != 1 {
		t.Fatalf("got streams %q, error %v, want one stream", streams, err)
	}
	stream, err := os.ReadFile(streams[0])
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("x.stream", stream)
	write("x.piped", piped(t, stream))
	write("x.fio", []byte(fioLog))
	write("empty", nil)
	write("text", []byte("hello, world\n"))
	write("cut.stream", stream[:20])
	for _, d := range []string{"x.tape.partial", "piped.tape.partial", "other"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write("x.tape.partial/stream", stream)
	write("piped.tape.partial/stream", piped(t, stream))
	tw, err := trace.CreateTape(filepath.Join(dir, "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := tapes.Hosts(t.Context(), streams, tw, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	return dir
}

// piped returns what a chain of layers makes of a stream.
func piped(t *testing.T, stream []byte) []byte {
	t.Helper()
	spec, err := chain.Parse("zstd,checksum")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := pipe.NewWriter(&out, spec.Layers, &spec.Options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(stream); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Any opens each kind; trace.Open opens the tape alone, and says what the others are.
func TestKinds(t *testing.T) {
	dir := fixtures(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, c := range []struct {
		name string
		want error // of trace.Open
	}{
		{"x.tape", nil},
		{"x.tape.partial", trace.ErrNotSealed},
		{"piped.tape.partial", trace.ErrNotSealed},
		{"x.stream", trace.ErrNotSealed},
		{"x.piped", trace.ErrNotSealed},
		{"x.fio", trace.ErrForeign},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, c.name)
			tape, err := trace.Open(path)
			if !errors.Is(err, c.want) || (tape == nil) != (err != nil) {
				t.Errorf("trace.Open: got %v, want %v", err, c.want)
			}
			if tape != nil {
				tape.Close()
			}
			if tape, err = open.Any(t.Context(), path); err != nil {
				t.Fatalf("open.Any: got error %v, want a tape", err)
			}
			defer tape.Close()
			var ops []string
			for ev, err := range tape.Events() {
				if err != nil {
					t.Fatal(err)
				}
				if ev.Kind == event.Call {
					ops = append(ops, ev.Spec().Name)
				}
			}
			if got, want := fmt.Sprint(ops), "[open pwrite64 close]"; got != want {
				t.Errorf("got calls %v, want %v", got, want)
			}
			if got := tape.Name(); got != path {
				t.Errorf("got name %q, want %q", got, path)
			}
			if err := tape.Close(); err != nil {
				t.Errorf("Close: got error %v, want none", err)
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
				t.Errorf("got %q left behind after Close, want nothing", left)
			}
		})
	}
}

// What cannot be a tape is refused with an error that a program can tell apart, and leaves
// no temporary files.
func TestRefused(t *testing.T) {
	dir := fixtures(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		name string
		ctx  context.Context
		want error
	}{
		{"none", t.Context(), os.ErrNotExist},
		{"other", t.Context(), trace.ErrNotATrace},
		{"empty", t.Context(), trace.ErrNotATrace},
		{"text", t.Context(), open.ErrUnknownFormat},
		{"cut.stream", t.Context(), trace.ErrTruncated},
		{"x.tape/events", t.Context(), trace.ErrNotATrace},
		{"x.stream", ended, context.Canceled},
		{"x.fio", ended, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			tape, err := open.Any(c.ctx, filepath.Join(dir, c.name))
			if tape != nil || !errors.Is(err, c.want) {
				t.Errorf("got tape %v, error %v, want error %v", tape != nil, err, c.want)
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
				t.Errorf("got %q left behind, want nothing", left)
			}
		})
	}
}

// The bytes that a trace of fio wrote, without converting it first.
func ExampleAny() {
	tape, err := open.Any(context.Background(), "../all/testdata/v2.fio")
	if err != nil {
		log.Fatal(err)
	}
	defer tape.Close()
	written := int64(0)
	for ev, err := range tape.Events() {
		if err != nil {
			log.Fatal(err)
		}
		if io := ev.Traffic(); io.To != nil {
			written += io.Written
		}
	}
	fmt.Println(written)
	// Output:
	// 8192
}
