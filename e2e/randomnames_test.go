// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// randomNames makes random calls on names below a directory. After each it opens something, and asks the kernel for
// its name by readlink of /proc/self/fd; what was asked is not learned from.
const randomNames = `import ctypes, os, random, sys
top, steps, seed, kind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
mounts = kind != "plain"
random.seed(seed)
os.chdir(top)
parts = ["a", "b", "c", "d", "l", "m", "..", "..", "."]
fds = []
if mounts:
    c = ctypes.CDLL(None)
    if c.unshare(0x20000) or c.mount(b"none", b"/", None, 0x44000, None): sys.exit("unshare")
if kind == "mounts":
    os.mkdir("source"); os.mkdir("bound")
    if c.mount(b"source", b"bound", None, 0x1000, None): sys.exit("mount")
    parts += ["bound", "source"]
def real(fd):
    name = os.readlink("/proc/self/fd/%d" % fd)
    return name[:-10] if name.endswith(" (deleted)") else name
def inside(name, d):
    at = os.path.dirname(name) or "."
    try: fd = os.open(at, os.O_PATH|os.O_DIRECTORY, dir_fd=d)
    except OSError: return False
    ok = (real(fd) + "/").startswith(top + "/")
    os.close(fd)
    return ok
def name():
    n = "/".join(random.choice(parts) for _ in range(random.randrange(4))) + "/" + random.choice(parts[:6])
    n, d = n.lstrip("/"), None
    k = random.randrange(6)
    if k == 0: n = top + "/" + n
    elif k < 4 and fds: d = random.choice(fds)
    elif k == 4 and fds: n = "/proc/self/fd/%d/%s" % (random.choice(fds), n)
    elif k == 5: n = "/proc/self/cwd/" + n
    return n, d
made = []
def pick():
    n, d = name()
    fd = os.open(n, os.O_PATH|os.O_DIRECTORY, dir_fd=d)
    n = real(fd); os.close(fd)
    return n
def mount():
    d = pick()
    if not d.startswith(top + "/"): return
    k = random.randrange(8)
    if k < 3:
        if len(made) < 6 and c.mount(b"t", d.encode(), b"tmpfs", 0, b"size=1m") == 0: made.append(d)
    elif k < 6 and made:
        at = made.pop(random.randrange(len(made)))
        if c.umount2(at.encode(), random.choice([0, 2])): made.append(at)
    elif k == 6 and made:
        at = made.pop(random.randrange(len(made)))
        if c.mount(at.encode(), d.encode(), None, 0x2000, None): made.append(at)
        else: made.append(d)
    elif random.random() < .3: c.unshare(0x20000)
def step():
    if kind == "file systems" and random.random() < .04: return mount()
    n, d = name()
    if not inside(n, d): return
    k = random.randrange(13)
    if k < 3: os.mkdir(n, dir_fd=d)
    elif k == 3: os.symlink(name()[0], n, dir_fd=d)
    elif k == 4: os.unlink(n, dir_fd=d)
    elif k == 5: os.rmdir(n, dir_fd=d)
    elif k < 8:
        to, e = name()
        if inside(to, e): os.rename(n, to, src_dir_fd=d, dst_dir_fd=e)
    elif k == 8:
        to, e = name()
        if inside(to, e): os.link(n, to, src_dir_fd=d, dst_dir_fd=e, follow_symlinks=random.random() < .5)
    elif k == 9:
        if d is None: os.chdir(n)
        else: os.fchdir(d)
    else:
        if len(fds) > 15: os.close(fds.pop(0))
        flags = random.choice([0, os.O_PATH|os.O_NOFOLLOW, os.O_CREAT, os.O_CREAT|os.O_EXCL, os.O_PATH])
        fds.append(os.open(n, flags|os.O_NONBLOCK, 0o600, dir_fd=d))
def ask(fd):
    os.fstat(fd)
    os.readlink("/proc/self/fd/%d" % fd)
for i in range(steps):
    try: step()
    except OSError: pass
    if fds: ask(random.choice(fds))
    try: fd = os.open(".", os.O_PATH)
    except OSError: os.chdir(top); continue
    if os.readlink("/proc/self/fd/%d" % fd).endswith(" (deleted)"): os.chdir(top)
    os.close(fd)
    fd = os.open(".", os.O_PATH); ask(fd); os.close(fd)
os._exit(0)
`

// TestRandomNames compares the names of a tape with those that the kernel gave, of a program that makes random calls on
// names: renames of open and working directories, links, names through descriptors and magic links, a bind mount, and
// file systems that are mounted on what is open, moved and unmounted.
// IOTAPE_NAME_STEPS says how many steps, IOTAPE_NAME_SEEDS how many runs.
func TestRandomNames(t *testing.T) {
	testenv.Short(t, "it records many calls with every back end")
	testenv.NeedProgram(t, "python3")
	steps := "400"
	if s := os.Getenv("IOTAPE_NAME_STEPS"); s != "" {
		steps = s
	}
	seeds := 1
	if s := os.Getenv("IOTAPE_NAME_SEEDS"); s != "" {
		var err error
		if seeds, err = strconv.Atoi(s); err != nil {
			t.Fatalf("IOTAPE_NAME_SEEDS: %v", err)
		}
	}
	forBackends(t, func(t *testing.T, backend string) {
		for seed := range seeds {
			for i, kind := range []string{"plain", "mounts", "file systems"} {
				if kind != "plain" && os.Getuid() != 0 {
					continue // only root may mount
				}
				randomNamesOf(t, backend, kind, steps, strconv.Itoa(len(steps)+i+10*seed))
			}
		}
	})
}

// randomNamesOf records one run of randomNames, and compares its names.
func randomNamesOf(t *testing.T, backend, kind, steps, seed string) {
	t.Helper()
	e := newEnv(t, testenv.Iotape(t), "", nil)
	top := filepath.Join(e.dir, "top")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	_, stderr, status := e.records(t, []string{"--backend", backend}, "python3", "-I", "-S", "-c", randomNames,
		top, steps, seed, kind)
	if status != 0 {
		t.Fatalf("%s, seed %s: status %d\n%s", kind, seed, status, stderr)
	}
	compareNames(t, e, top, kind+", seed "+seed, kind)
}

// compareNames compares the name of each descriptor that fstat was asked about with what readlink said next.
func compareNames(t *testing.T, e *env, top, what, kind string) {
	t.Helper()
	var before event.File
	asked, wrong := 0, 0
	e.events(t, "a.tape", func(ev *event.Event) {
		switch {
		case ev.Kind != event.Call || !ev.OK():
		case ev.Op == event.OpFstat || ev.Op == event.OpNewfstatat:
			before = event.File{}
			if f := ev.FileArg(0); f != nil {
				before = *f
			}
		case ev.Op == event.OpReadlink && before.Reached() != "" && len(ev.Paths) == 1 &&
			ev.Paths[0].Raw == "/proc/self/fd/"+strconv.Itoa(int(before.FD)):
			b := ev.BufArg(1)
			if b == nil || int64(len(b.Inline)) != ev.Ret { // a long one is stored elsewhere
				return
			}
			want, gone := strings.CutSuffix(string(b.Inline), " (deleted)")
			if rest, ok := strings.CutPrefix(want, top+"/bound"); ok && (rest == "" || rest[0] == '/') {
				want = top + "/source" + rest // the same file has one name
			}
			if kind == "mounts" && want == "/" {
				return // it was renamed out of what is mounted, and the kernel does not say where it is
			}
			if kind == "file systems" && !strings.HasPrefix(want, top) {
				return // it is in what is mounted nowhere, and the kernel does not say where it was
			}
			asked++
			if got := before.Reached(); got != want && !gone && wrong < 2 {
				wrong++
				t.Errorf("%s, event %d: descriptor %d is %s, want %s", what, ev.Seq, before.FD, got, want)
			}
			before = event.File{}
		default:
			before = event.File{}
		}
	})
	if asked < 100 {
		t.Errorf("%s: want 100 names that were asked for, got %d", what, asked)
	}
}
