// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
)

func prefilterOf(t *testing.T, filter string) *predicate.Prefilter {
	t.Helper()
	g, err := predicate.New(filter, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g.Prefilter(func(op event.Op) bool {
		return op == event.OpRead || op == event.OpPread64 || op == event.OpLseek || op == event.OpWrite
	})
}

// TestNarrow changes what is left out again and again, each time while a call is under way:
// that is judged by when it began.
func TestNarrow(t *testing.T) {
	program, dir := build(t, "answers"), t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, ask := pipe(t)
	answer, out := pipe(t)
	var control capture.Control
	const steps = "op = write or op = pread64 and count = 1 or op = read and result > 5"
	initial := "op in {read, write}"
	changes := []func() error{
		func() error { return control.Open() },
		func() error { return control.Narrow(prefilterOf(t, "op = write")) },
		func() error { return control.Narrow(prefilterOf(t, steps)) },
		func() error { return control.Narrow(prefilterOf(t, steps)) },
		func() error { return control.Open() },
		func() error { return control.Narrow(prefilterOf(t, initial)) },
	}
	o := &capture.Options{
		Dir: dir, Mmap: capture.MmapOff, Stdin: in, Stdout: out, Prefilter: prefilterOf(t, initial),
		Control: func(c capture.Control) { control = c },
	}
	o.Started = func(pid int) {
		go func() {
			defer ask.Close()
			for i := -1; i < len(changes); i++ {
				waitUntil(t, fmt.Sprintf("the read of %d", i), func() bool { return inRead(pid) })
				if i >= 0 {
					if err := changes[i](); err != nil {
						t.Error(err)
					}
				}
				b := []byte{byte('b' + i)}
				if _, err := ask.Write(b); err != nil {
					t.Error(err)
				}
				if _, err := answer.Read(b); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	r, res := record(t, o, program, file)
	if res.ExitStatus != 0 || res.Lost > 0 {
		t.Errorf("%+v", res)
	}
	// For each byte: whether it was seen to be read, how many reads of the file of one byte
	// and of two, how many seeks.
	var got strings.Builder
	var n [3]int
	begun, seen := false, "-"
	for _, c := range r.calls {
		switch event.Op(c.Op) {
		case event.OpRead:
			if c.Args[0] != 0 {
				continue // of the loader
			}
			if seen, begun = text(c, 1), true; seen == "" {
				seen = "end"
			}
		case event.OpPread64:
			if begun {
				n[c.Args[2]-1]++
			}
		case event.OpLseek:
			if begun {
				n[2]++
			}
		case event.OpWrite:
			fmt.Fprintf(&got, "%s %v; ", seen, n)
			n, seen = [3]int{}, "-"
		}
	}
	got.WriteString(seen)
	const want = "a [0 0 0]; b [5 5 10]; c [0 0 0]; - [5 0 0]; e [5 0 0]; f [5 5 10]; g [0 0 0]; end"
	if got.String() != want {
		t.Errorf("recorded:\n%s, want\n%s", &got, want)
	}
	if err := control.Narrow(prefilterOf(t, steps)); err != nil { // it has ended
		t.Error(err)
	}
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// inRead reports whether a process waits in a read of its standard input.
func inRead(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	return err == nil && bytes.HasPrefix(b, fmt.Appendf(nil, "%d 0x0 ", unix.SYS_READ))
}

func waitUntil(t *testing.T, what string, done func() bool) {
	for range 6000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("waited for %s in vain", what)
}
