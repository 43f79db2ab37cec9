// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// longScript has files that stay open, processes that share them, and names that are used again, in $1 rounds
// or until there is a file stop.
const longScript = `exec 3>log 4<script 5<>both
i=0
while [ $i -lt $1 ] && [ ! -e stop ]; do
	i=$((i+1))
	echo line $i >&3
	cat script >f$((i%5))
	read x <&4
	(mkdir -p d && cd d && cat ../f$((i%5)) >g && cat g >&5)
	dd if=/dev/zero of=big bs=50000 count=1 2>/dev/null
done
echo end >&3
exit 0
`

// parts returns the tapes of a rotated recording, in their order.
func (e *env) parts(t *testing.T, name string) (list []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(e.dir, name+"-*.tape"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; len(list) < len(found); n++ {
		part := name + "-" + strconv.Itoa(n) + ".tape"
		if _, err := os.Stat(filepath.Join(e.dir, part)); err == nil {
			list = append(list, part)
		}
		if n > 10000 {
			t.Fatalf("parts without numbers: %v", found)
		}
	}
	return list
}

// TestRotate records into one tape after the other. Each is sound and can be replayed; merged they are a recording that
// can be replayed from its beginning.
func TestRotate(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records with each back end")
	forWays(t, func(t *testing.T, way string, args []string) {
		e := runEnv(t)
		e.write(t, "script", longScript)
		argv := append([]string{e.iotape, "record", "-o", "x.tape", "--rotate", "300K"}, args...)
		rounds, parts := 20, []string(nil)
		for ; ; rounds *= 2 { // how many parts there are depends on how often the recorder gets to run
			e.run(t, append(argv, "--", "sh", "script", strconv.Itoa(rounds))...)
			if parts = e.parts(t, "x"); len(parts) >= 3 {
				break
			}
			if rounds > 5000 {
				t.Fatalf("parts %v, want 3 or more", parts)
			}
			for _, part := range parts {
				if err := os.RemoveAll(filepath.Join(e.dir, part)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, part := range parts {
			e.run(t, e.iotape, "check", part)
		}
		e.run(t, append([]string{e.iotape, "merge", "-o", "all.tape"}, parts...)...)
		e.run(t, e.iotape, "replay", "all.tape", "--into", "again", "--verify")
		e.run(t, e.iotape, "replay", parts[1], "--into", "part", "--verify")
		lines := 0
		e.events(t, "all.tape", func(ev *event.Event) {
			if f := ev.Subject(); ev.Op == event.OpWrite && f != nil && strings.HasSuffix(f.Name(), "/log") {
				lines++
			}
		})
		if lines != rounds+1 {
			t.Errorf("%d lines were written to the log in the merged tape, want %d", lines, rounds+1)
		}
	})
}

// TestRotateKeep keeps the last tapes of a recording that is rotated by size.
func TestRotateKeep(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records for a while")
	e := runEnv(t)
	e.write(t, "script", longScript)
	_, said := e.run(t, e.iotape, "record", "--backend", "ptrace", "-o", "x.tape", "--rotate", "200K,keep=2", "--",
		"sh", "script", "20")
	parts := e.parts(t, "x")
	if len(parts) != 2 || !strings.Contains(said, " tapes, of which the first ") || !strings.Contains(said, parts[0]) {
		t.Errorf("parts %v, want the last two; it said\n%s", parts, said)
	}
	e.run(t, append([]string{e.iotape, "merge", "-o", "all.tape"}, parts...)...)
	e.run(t, e.iotape, "replay", "all.tape", "--into", "again", "--verify")
}

// TestRotateKilled kills the recorder when some parts are full. The parts that are sealed are whole, and iotape repair
// makes tapes of the others; together they have everything up to the last one's end.
func TestRotateKilled(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it kills a recording")
	e := runEnv(t)
	e.write(t, "script", longScript)
	cmd := exec.CommandContext(t.Context(), e.iotape, "record", "--backend", "ptrace", "--survive", "-o", "x.tape",
		"--rotate", "300K", "--", "sh", "script", "100000")
	cmd.Dir, cmd.Env = e.dir, append(os.Environ(), e.vars...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // no event says it
		if _, err := os.Stat(filepath.Join(e.dir, "x-3.tape")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no third part within a minute")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	e.write(t, "stop", "") // the program goes on otherwise
	left, err := filepath.Glob(filepath.Join(e.dir, "x-*.tape.partial"))
	if err != nil || len(left) == 0 {
		t.Fatalf("parts that are not sealed: %v, %v; want one or more", left, err)
	}
	for _, partial := range left {
		if _, said, err := e.try(t, e.iotape, "repair", partial); exitStatus(err) != 1 && err != nil {
			t.Errorf("repair: %v, want status 1 or 0\n%s", err, said)
		}
	}
	parts := e.parts(t, "x")
	e.run(t, append([]string{e.iotape, "merge", "-o", "all.tape"}, parts...)...)
	tape, err := trace.Open(filepath.Join(e.dir, "all.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	if m := tape.Manifest(); len(m.Hosts) != 1 || m.Counts.Events < 1000 {
		t.Errorf("%d hosts and %d events in the merged tape, want 1 and a thousand or more", len(m.Hosts),
			m.Counts.Events)
	}
}

// TestRotateFilter: the parts of a recording with a filter have what fits it, with names that were opened in parts
// before, and nothing else.
func TestRotateFilter(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records for a while")
	e := runEnv(t)
	e.write(t, "script", longScript)
	const rounds, filter = 30, "op = write and name = log"
	_, said := e.run(t, e.iotape, "record", "--backend", "ptrace", "-o", "x.tape", "--rotate", "100K", "--filter",
		filter, "--", "sh", "script", strconv.Itoa(rounds))
	parts, lines := e.parts(t, "x"), 0
	if len(parts) < 2 {
		t.Fatalf("parts %v, want 2 or more; it said\n%s", parts, said)
	}
	for _, part := range parts {
		e.run(t, e.iotape, "check", part)
		n := e.count(t, part, filter)
		if n == 0 || n != e.count(t, part, "op = write") {
			t.Errorf("%s: %d calls fit the filter; want all writes, and one or more", part, n)
		}
		lines += n
	}
	if lines != rounds+1 {
		t.Errorf("the parts have %d lines of the log, want %d", lines, rounds+1)
	}
	_, said = e.run(t, e.iotape, "record", "--backend", "ptrace", "-o", "none.tape", "--rotate", "100K", "--filter",
		"path = /no/such", "--", "sh", "script", strconv.Itoa(rounds))
	if left, _ := filepath.Glob(filepath.Join(e.dir, "none*")); len(left) > 0 || !strings.Contains(said, "nothing") {
		t.Errorf("with a filter that nothing fits there are %v, and it said\n%s; want no tape", left, said)
	}
}

// TestRotateAttached records what runs already, by its process and by its control group, until an interrupt: the tapes
// are whole and join, and the program goes on.
func TestRotateAttached(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records for a while")
	testenv.NeedBPF(t)
	group := containerCgroup(t)
	e := runEnv(t)
	e.write(t, "script", longScript)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ > "$0/cgroup.procs" && echo && exec sh script 1000000`,
		group)
	cmd.Dir = e.dir
	_, out := pipes(t, cmd)
	defer func() {
		e.write(t, "stop", "")
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v, want as without a recorder", err)
		}
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string][]string{
		"pid": {"--pid", strconv.Itoa(cmd.Process.Pid)}, "cgroup": {"--cgroup", group},
	} {
		rec := exec.CommandContext(t.Context(), e.iotape, append([]string{"record", "-o", name + ".tape", "--rotate",
			"300K", "--content", "none"}, target...)...)
		rec.Dir, rec.Env = e.dir, e.environ()
		var said strings.Builder
		rec.Stderr = &said
		if err := rec.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // no event says it
			if _, err := os.Stat(filepath.Join(e.dir, name+"-2.tape")); err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no second part within a minute\n%s", &said)
			}
		}
		if err := rec.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if err := rec.Wait(); err != nil {
			t.Fatalf("%s: the recording ended with %v\n%s", name, err, &said)
		}
		parts := e.parts(t, name)
		if left, _ := filepath.Glob(filepath.Join(e.dir, name+"-*.partial")); len(parts) < 2 || len(left) > 0 {
			t.Fatalf("%s: tapes %v and unsealed parts %v; want two tapes or more, and no such part", name, parts, left)
		}
		all := "all-" + name + ".tape"
		e.run(t, append([]string{e.iotape, "merge", "-o", all}, parts...)...)
		e.run(t, e.iotape, "check", all)
		sum := 0
		for _, part := range parts {
			sum += e.count(t, part, "kind = call")
		}
		if n := e.count(t, all, "kind = call"); n != sum || n == 0 {
			t.Errorf("%s: %d calls in the merged tape, %d in its parts; want as many", name, n, sum)
		}
	}
}

// TestRotateChroot records a program that changes its root directory: in every part, and joined, its names begin there.
func TestRotateChroot(t *testing.T) {
	testenv.Short(t, "it records with each back end")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "python3")
	forBackends(t, func(t *testing.T, backend string) {
		e := runEnv(t)
		e.run(t, e.iotape, "record", "--backend", backend, "-o", "x.tape", "--rotate", "100K", "--",
			"python3", "-I", "-S", "-c", `import os
os.makedirs("jail/d"); os.chroot("jail"); os.chdir("/d")
for i in range(5000):
    f = os.open("/f%d" % i, os.O_CREAT|os.O_WRONLY); os.write(f, os.urandom(400)); os.close(f)
    os.stat("../f%d" % i)
`)
		parts := e.parts(t, "x")
		if len(parts) < 2 {
			t.Fatalf("want 2 parts or more, got %q", parts)
		}
		e.run(t, append([]string{e.iotape, "merge", "-o", "all.tape"}, parts...)...)
		for _, part := range append(parts, "all.tape") {
			e.events(t, part, func(ev *event.Event) {
				for _, p := range ev.Paths {
					name, ok := strings.CutPrefix(strings.TrimPrefix(p.Raw, ".."), "/f")
					if want := filepath.Join(e.dir, "jail/f"+name); ok && ev.Kind == event.Call && p.Reached() != want {
						t.Fatalf("%s, event %d: %s is %s, want %s", part, ev.Seq, p.Raw, p.Reached(), want)
					}
				}
			})
		}
	})
}
