// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// TestSocketEnds records a program that has sockets of all kinds, one of which it inherits, and
// compares the names of each with what the kernel told the program.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "gcc")
	prog := filepath.Join(t.TempDir(), "ends")
	if b, err := exec.Command("gcc", "-O1", "-o", prog, "testdata/ends.c").CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, b)
	}
	for _, backend := range append(backendsWithoutRights(), "ebpf") {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			if backend == "ebpf" {
				testenv.NeedRoot(t)
			}
			e := &env{dir: t.TempDir(), iotape: testenv.Iotape(t)}
			given := connectedSocket(t)
			cmd := exec.Command(e.iotape, "record", "--backend", backend, "-o", "a.tape", "--", prog, e.dir)
			cmd.Dir, cmd.ExtraFiles = e.dir, []*os.File{given}
			var says strings.Builder
			cmd.Stderr = &says
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, says.String())
			}
			want, got := map[int32]string{}, map[int32]string{}
			for line := range strings.Lines(string(out)) {
				var fd int32
				if _, err := fmt.Sscan(line, &fd); err == nil {
					_, name, _ := strings.Cut(strings.TrimSpace(line), " ")
					want[fd] = name
				}
			}
			if len(want) < 15 || want[3] == "" {
				t.Fatalf("the program has sockets %v, want 14 and an inherited one", want)
			}
			e.events(t, "a.tape", func(ev *event.Event) {
				if ev.Op == event.OpFsync && len(ev.Files) > 0 {
					got[ev.Files[0].FD] = ev.Files[0].Path
				}
			})
			for fd, name := range want {
				if got[fd] != name {
					t.Errorf("socket %d is %s, want %s", fd, got[fd], name)
				}
			}
			e.run(t, e.iotape, "script", "a.tape", "-o", "a.script")
			e.run(t, e.iotape, "script", "--compile", "a.script", "-o", "b.tape")
			e.events(t, "b.tape", func(ev *event.Event) {
				if ev.Op == event.OpFsync && len(ev.Files) > 0 && ev.Files[0].Path != got[ev.Files[0].FD] {
					t.Errorf("in the script, socket %d is %s, want %s", ev.Files[0].FD, ev.Files[0].Path,
						got[ev.Files[0].FD])
				}
			})
		})
	}
}

// connectedSocket returns one side of a connection over the loopback interface.
func connectedSocket(t *testing.T) *os.File {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}
