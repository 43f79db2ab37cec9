// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// mountsFirst makes mounts and changes its root directory, and then uses names, for as long as several parts take.
const mountsFirst = `import ctypes, os, time
c = ctypes.CDLL(None)
for d in "d", "at", "t", "jail", "jail/at", "jail/t", "covered": os.mkdir(d)
def mount(source, at, kind, flags): assert c.mount(source, at, kind, flags, None) == 0
assert c.unshare(0x20000) == 0
mount(b"none", b"/", None, 0x44000)
old = os.open("covered/old", os.O_CREAT|os.O_RDWR, 0o644)
mount(b"d", b"covered", None, 0x1000)
mount(b"jail", b"jail", None, 0x1000)
mount(b"d", b"jail/at", None, 0x1000)
mount(b"none", b"jail/t", b"tmpfs", 0)
new = os.open("covered/new", os.O_CREAT|os.O_RDWR, 0o644)
os.chroot("jail"); os.chdir("/at")
f = os.open(".", 0)
for i in range(4000):
    for name, where in ("/at/f", None), ("in", f), ("../t/g", f), ("../h", None):
        g = os.open(name, os.O_CREAT|os.O_RDWR, 0o644, dir_fd=where); os.write(g, b"x" * 100); os.close(g)
    os.write(old, b"old"); os.write(new, b"new")
    if i % 200 == 0: time.sleep(0.02) # a recorder that is late would make one part of all
os._exit(0)
`

// TestRotateMounts divides a recording behind mounts: the names of the next part are those of the whole recording, and
// its replay agrees.
func TestRotateMounts(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records with each back end")
	testenv.NeedProgram(t, "python3")
	testenv.NeedRoot(t) // to mount
	forBackends(t, func(t *testing.T, backend string) {
		e := runEnv(t)
		dir, err := filepath.EvalSymlinks(e.dir)
		if err != nil {
			t.Fatal(err)
		}
		work := filepath.Join(dir, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			t.Fatal(err)
		}
		program := "import os; os.chdir(" + quoted(work) + ")\n" + mountsFirst
		e.run(t, e.iotape, "record", "-o", "x.tape", "--rotate", "300K", "--backend", backend, "--",
			"python3", "-I", "-S", "-c", program)
		parts := e.parts(t, "x")
		if len(parts) < 2 {
			t.Fatalf("parts %v, want 2 or more", parts)
		}
		e.run(t, append([]string{e.iotape, "merge", "-o", "all.tape"}, parts...)...)
		names, full := []string{"/d/f", "/d/in", "/jail/t/g", "/jail/h", "/covered/old", "/d/new"}, []string(nil)
		for _, tape := range append(parts, "all.tape") {
			got := map[string]bool{}
			e.events(t, tape, func(ev *event.Event) {
				if f := ev.Subject(); ev.Op == event.OpWrite && f != nil && strings.HasPrefix(f.Reached(), work) {
					got[strings.TrimPrefix(f.Reached(), work)] = true
				}
			})
			if len(got) == len(names) {
				full = append(full, tape)
			}
			for _, name := range names {
				delete(got, name)
			}
			if len(got) > 0 {
				t.Errorf("%s: the names of no file are %v", tape, got)
			}
		}
		if len(full) < 3 {
			t.Fatalf("all names are in %v only, want two parts of %v at least", full, parts)
		}
		for _, tape := range full[1:] {
			out, stderr, err := e.try(t, e.iotape, "replay", tape, "--into", tape+".again", "--verify")
			if err != nil {
				t.Errorf("replay of %s: %v\n%s%s", tape, err, out, stderr)
			}
		}
	})
}
