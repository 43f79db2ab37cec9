// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// families are the programs of testdata/calls. Each makes calls and says what a
// recording of them has to have.
var families = []string{"files", "sockets", "waits", "process", "machine"}

// expected is a call as its program made it.
type expected struct {
	name  string
	nr    int64 // -1: any
	ret   string
	args  []string
	paths map[int]string
	mem   map[int][]byte
	any   map[int]bool
	fds   []int32
}

// TestCalls records programs that make every call of the operation table that can be made
// without harm, with both back ends, and compares each event with what the program
// says: operation, arguments, result, paths, memory byte for byte, and descriptors
// in memory. Both agree with the program, so they agree with each other.
func TestCalls(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "cc", "unshare")
	iotape := testenv.Iotape(t)
	arch, _ := event.ParseArch(runtime.GOARCH)
	made := map[event.Op]bool{}
	for _, family := range families {
		for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
			t.Run(family+"/"+backend, func(t *testing.T) {
				if backend == "ebpf" {
					testenv.NeedBPF(t)
				}
				e := newEnv(t, iotape, "", nil)
				want, tape := e.recordCalls(t, family, backend)
				defer tape.Close()
				got := between(t, tape)
				for i := range max(len(want), len(got)) {
					if i >= len(want) || i >= len(got) {
						t.Fatalf("%d calls were made, %d are recorded", len(want), len(got))
					}
					made[got[i].Op] = true
					if err := want[i].compare(tape, got[i]); err != nil {
						t.Errorf("call %d, %s(%s) = %s: %v", i, want[i].name, strings.Join(want[i].args, ", "),
							want[i].ret, err)
						if got[i].Spec().Name != want[i].name {
							t.FailNow() // all others would differ, too
						}
					}
				}
			})
		}
	}
	if t.Failed() || testing.Short() {
		return
	}
	for _, s := range event.Specs() {
		if event.Number(arch, s.Op) >= 0 && !made[s.Op] && notMade[s.Name] == "" {
			t.Errorf("no program calls %s", s.Name)
		}
	}
}

// need32 skips a test if no 32-bit program can be made, or if the kernel executes none: a setting of the kernel, and
// under some hypervisors (PVM) its only way.
func need32(t *testing.T) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "empty32")
	compile := exec.Command("cc", "-m32", "-static", "-xc", "-o", bin, "-")
	compile.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	if out, err := compile.CombinedOutput(); err != nil {
		testenv.Lacks(t, fmt.Sprintf("the compiler makes no 32-bit programs (gcc-multilib): %s", out))
	}
	switch err := exec.Command(bin).Run(); {
	case errors.Is(err, syscall.ENOEXEC):
		t.Skip("this kernel executes no 32-bit programs")
	case err != nil:
		t.Fatalf("a 32-bit program that does nothing: %v", err)
	}
}

// TestCalls32 does the same with a 32-bit program, whose calls are those of the
// operation table as far as they can be told by its rows.
func TestCalls32(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the 32-bit calls of this architecture have no rows")
	}
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "cc", "unshare")
	need32(t)
	iotape := testenv.Iotape(t)
	for _, backend := range inTurn(t, append([]string{"ebpf"}, backendsWithoutRights()...)) {
		t.Run(backend, func(t *testing.T) {
			if backend == "ebpf" {
				testenv.NeedBPF(t)
			}
			e := newEnv(t, iotape, "", nil)
			want, tape := e.recordCalls(t, "compat", backend, "-m32", "-static")
			defer tape.Close()
			got := between(t, tape)
			if len(want) != len(got) {
				t.Fatalf("%d calls were made, %d are recorded", len(want), len(got))
			}
			for i := range want {
				if err := want[i].compare(tape, got[i]); err != nil {
					t.Errorf("call %d, %s(%s) = %s: %v", i, want[i].name, strings.Join(want[i].args, ", "), want[i].ret,
						err)
				}
				if got[i].Flags&event.Compat == 0 {
					t.Errorf("call %d, %s, is not marked as one of a 32-bit program", i, want[i].name)
				}
			}
		})
	}
}

// notMade are the calls that the programs do not make, and why.
var notMade = map[string]string{
	"exit": "ends the program", "exit_group": "ends the program", "vfork": "returns twice on one stack", "pause": "does not return",
	"vhangup":   "hangs up the terminal",
	"io_submit": "needs a context", "io_cancel": "needs a context",
	"io_uring_setup": "has tests of its own", "io_uring_enter": "has tests of its own", "io_uring_register": "has tests of its own",
	"uprobe": "kills a process that is not probed", "uretprobe": "kills a process that is not probed",
}

// recordCalls builds, records and reads one program.
func (e *env) recordCalls(t *testing.T, family, backend string, flags ...string) ([]*expected, *trace.Tape) {
	t.Helper()
	prog := filepath.Join(e.dir, family)
	src, err := filepath.Abs(filepath.Join("testdata", "calls", family+".c"))
	if err != nil {
		t.Fatal(err)
	}
	e.run(t, append(append([]string{"cc"}, flags...), "-O1", "-o", prog, src)...)
	work := filepath.Join(e.dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-m", e.iotape, "record", "-o", filepath.Join(e.dir, "x.tape"),
		"--backend", backend, "--every-call", "--no-index", "--", prog)
	cmd.Dir = work
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	tape, err := trace.Open(filepath.Join(e.dir, "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	return parseExpected(t, out), tape
}

// mark is the number of a call that does not exist, before the first and after the
// last that count.
const mark = 500

// between returns the calls of the thread that made the marks.
func between(t *testing.T, tape *trace.Tape) []*event.Event {
	t.Helper()
	var calls []*event.Event
	tid, marks := uint32(0), 0
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case ev.Kind != event.Call || !isCall(ev):
		case ev.Op == event.OpUnknown && ev.NR == mark:
			tid = ev.TID
			marks++
		case marks == 1 && ev.TID == tid:
			calls = append(calls, ev.Clone())
		}
	}
	if marks != 2 {
		t.Fatalf("%d marks", marks)
	}
	return calls
}

// isCall reports whether an event is a system call, and not something that only the
// kernel sees, such as a page that was read through a mapping.
func isCall(ev *event.Event) bool {
	return ev.Op == event.OpUnknown || event.Number(event.AMD64, ev.Op) >= 0 || event.Number(event.ARM64, ev.Op) >= 0
}

func parseExpected(t *testing.T, out []byte) []*expected {
	t.Helper()
	var all []*expected
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		var x *expected
		if f[0] != "call" {
			x = all[len(all)-1]
		}
		index := func() int {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			return n
		}
		content := func() []byte {
			if len(f) < 3 {
				return nil
			}
			b, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			return b
		}
		switch f[0] {
		case "call":
			x = &expected{name: f[1], nr: -1, ret: f[3], args: f[4:], paths: map[int]string{}, mem: map[int][]byte{},
				any: map[int]bool{}}
			if f[2] != "*" {
				x.nr, _ = strconv.ParseInt(f[2], 10, 32)
			}
			all = append(all, x)
		case "path":
			x.paths[index()] = string(content())
		case "mem":
			x.mem[index()] = content()
		case "any":
			x.any[index()] = true
		case "fd":
			x.fds = append(x.fds, int32(index()))
		default:
			t.Fatalf("line %q", line)
		}
	}
	return all
}

// compare reports how an event differs from what its program did.
func (x *expected) compare(tape *trace.Tape, ev *event.Event) error {
	spec := ev.Spec()
	if spec.Name != x.name || x.nr >= 0 && x.nr != int64(ev.NR) {
		return fmt.Errorf("recorded as %s, number %d", spec.Name, ev.NR)
	}
	ret := strconv.FormatInt(ev.Ret, 10)
	if ev.Errno != 0 {
		ret = strconv.Itoa(-int(ev.Errno))
	}
	if x.ret != "?" && x.ret != ret {
		return fmt.Errorf("result %s (%v)", ret, syscall.Errno(ev.Errno))
	}
	for i, a := range x.args {
		if a != "*" && a != strconv.FormatUint(ev.Args[i], 16) {
			return fmt.Errorf("argument %d is %x, not %s", i, ev.Args[i], a)
		}
	}
	if ev.Flags&event.Incomplete != 0 {
		return fmt.Errorf("incomplete")
	}
	for arg, want := range x.paths {
		if p := ev.PathArg(arg); p == nil || p.Raw != want {
			return fmt.Errorf("argument %d is path %+v, not %q", arg, p, want)
		}
	}
	if len(ev.Paths) != len(x.paths) {
		return fmt.Errorf("paths %+v", ev.Paths)
	}
	for index, want := range x.mem {
		b := ev.BufArg(index)
		if b == nil {
			return fmt.Errorf("no memory of %s", place(index))
		}
		got, err := tape.Content(b, nil)
		if err != nil {
			return fmt.Errorf("memory of %s: %w", place(index), err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("memory of %s is %s, not %s", place(index), brief(got), brief(want))
		}
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if _, ok := x.mem[int(b.Arg)]; !ok && !x.any[int(b.Arg)] && b.Len > 0 {
			return fmt.Errorf("memory of %s, %d bytes, that the call did not touch", place(int(b.Arg)), b.Len)
		}
	}
	var fds []int32
	for i := range ev.Files {
		if f := &ev.Files[i]; f.Arg == event.MemoryArg {
			if !f.Known || f.Open == 0 {
				return fmt.Errorf("descriptor %d in memory is not known", f.FD)
			}
			fds = append(fds, f.FD)
		}
	}
	if !slices.Equal(fds, x.fds) {
		return fmt.Errorf("descriptors in memory %v, not %v", fds, x.fds)
	}
	return nil
}

func place(index int) string {
	part, arg := event.SplitPart(index)
	return fmt.Sprintf("argument %d, part %d", arg, part)
}

func brief(b []byte) string {
	if len(b) > 160 {
		return fmt.Sprintf("%x… (%d bytes)", b[:160], len(b))
	}
	return fmt.Sprintf("%x (%d bytes)", b, len(b))
}
