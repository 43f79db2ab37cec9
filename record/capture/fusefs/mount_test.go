// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// recorded returns the records of a stream.
func recorded(t *testing.T, name string) (all []trace.Record) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for fr := trace.NewFrameReader(f); ; {
		frame, payload, err := fr.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame.Kind != trace.FrameRecords {
			continue
		}
		for body, err := range trace.Records(bytes.Clone(payload)) {
			var r trace.Record
			if err == nil {
				err = r.Decode(body)
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
	}
}

// piece returns the memory of an argument.
func piece(r *trace.Record, arg int) string {
	var b []byte
	for i := range r.Pieces {
		if int(r.Pieces[i].Arg) == arg {
			b = append(b, r.Pieces[i].Data...)
		}
	}
	return string(b)
}

// ops returns the names of the calls on a path, or on descriptors of it.
func ops(all []trace.Record, path string) (names []string) {
	open := map[uint64]bool{}
	for i := range all {
		r := &all[i]
		if r.Type != trace.RecCall {
			continue
		}
		spec := event.Lookup(event.Op(r.Op))
		about := false
		for a := range spec.Args {
			switch spec.Args[a].Kind {
			case event.KindPath:
				about = about || piece(r, a) == path
			case event.KindFD:
				about = about || open[r.Args[a]]
			}
		}
		switch event.Op(r.Op) {
		case event.OpOpenat:
			if about && r.Ret >= 0 {
				open[uint64(r.Ret)] = true
			}
		case event.OpClose:
			about = open[r.Args[0]]
			delete(open, r.Args[0])
		}
		if about {
			names = append(names, spec.Name)
		}
	}
	return names
}

func TestRecordsWhatCallersDo(t *testing.T) {
	tr, stream := recording(t)
	m := mounted(t, Options{Recordings: []*Recording{tr}})
	sh(t, m.Mountpoint, "umask 077; printf hello >f; cat f; mv f g; rm g; mkdir d; exec 3<d; :")
	ended(t, m)
	c := m.Detach(tr)
	all := recorded(t, stream)
	// The kernel does not wait for the end of an open file: it may come behind what follows.
	list, closes := ops(all, "f"), 0
	list = slices.DeleteFunc(list, func(op string) bool {
		if op == "close" {
			closes++
		}
		return op == "close"
	})
	if got := summary(list); got != "openat pwrite64 openat pread64 renameat2" || closes != 2 {
		t.Errorf("of f: %s, and %d times close; want 2", got, closes)
	}
	if got := summary(ops(all, "g")); got != "renameat2 unlinkat" {
		t.Errorf("of g: %s", got)
	}
	if !slices.Contains(ops(all, "f"), "newfstatat") {
		t.Error("looking for f is not recorded")
	}
	var made, wrote, read *trace.Record
	calls := uint64(0)
	for i := range all {
		r := &all[i]
		switch {
		case r.Type != trace.RecCall:
			continue
		case event.Op(r.Op) == event.OpOpenat && r.Args[2]&unix.O_CREAT != 0:
			made = r
		case event.Op(r.Op) == event.OpPwrite64:
			wrote = r
		case event.Op(r.Op) == event.OpPread64 && read == nil:
			read = r
		}
		calls++
		if r.Exit <= r.Enter || i > 0 && r.Exit < all[i-1].Exit && all[i-1].Type == trace.RecCall {
			t.Errorf("record %d: from %d to %d, after %d", i, r.Enter, r.Exit, all[i-1].Exit)
		}
	}
	switch {
	case made == nil || wrote == nil || read == nil:
		t.Fatal("no open, write or read")
	case made.Args[3] != 0o600:
		t.Errorf("made with mode %#o", made.Args[3])
	case len(made.Objects) != 1 || made.Objects[0].Mode != unix.S_IFREG|0o600 || made.Objects[0].FD != int32(made.Ret):
		t.Errorf("made %+v", made.Objects)
	case wrote.Ret != 5 || piece(wrote, 1) != "hello" || wrote.Args[3] != 0:
		t.Errorf("wrote %+v", wrote)
	case read.Ret != 5 || piece(read, 1) != "hello":
		t.Errorf("read %+v", read)
	}
	if calls != c.Events || c.Lost != 0 || c.Err != nil {
		t.Errorf("%d calls, counted %+v", calls, c)
	}
}

// summary leaves out stat, because how often the kernel asks for attributes depends on its
// clock, and all but one of several equal operations in a row.
func summary(ops []string) string {
	ops = slices.DeleteFunc(ops, func(op string) bool { return op == "newfstatat" })
	return strings.Join(slices.Compact(ops), " ")
}

// Each caller is known by name and number, before its first call.
func TestCallers(t *testing.T) {
	tr, stream := recording(t)
	m := mounted(t, Options{Recordings: []*Recording{tr}})
	sh(t, m.Mountpoint, "for i in 1 2 3; do cat nothing || :; done; chown 1000:1000 .; setpriv --reuid 1000 "+
		"--regid 1000 --clear-groups touch mine")
	ended(t, m)
	m.Detach(tr)
	known := map[uint32]*trace.Record{}
	cats := map[uint32]bool{}
	mine := false
	all := recorded(t, stream)
	for i := range all {
		switch r := &all[i]; r.Type {
		case trace.RecTask:
			known[r.TID] = r
		case trace.RecCall:
			who := known[r.TID]
			if who == nil {
				t.Fatalf("a call of thread %d, which is not known", r.TID)
			}
			name := string(bytes.TrimRight(who.Comm[:], "\x00"))
			if name == "cat" && piece(r, 1) == "nothing" {
				cats[who.PID] = true
			}
			if name == "chown" && who.UID != 0 {
				t.Errorf("chown by user %d", who.UID)
			}
			if name == "touch" && event.Op(r.Op) == event.OpOpenat && r.Args[2]&unix.O_CREAT != 0 {
				mine = who.UID == 1000 && who.GID == 1000 && who.PPID != 0
			}
		}
	}
	if len(cats) != 3 || !mine {
		t.Errorf("%d processes called cat, touch by user 1000: %v", len(cats), mine)
	}
}

func TestMapped(t *testing.T) {
	testenv.NeedProgram(t, "python3")
	tr, stream := recording(t)
	m := mounted(t, Options{Recordings: []*Recording{tr}})
	sh(t, m.Mountpoint, `python3 -c '
import mmap
f = open("f", "w+b"); f.truncate(8192)
m = mmap.mmap(f.fileno(), 8192)
m[4096:4102] = b"stored"
m.flush()
f.seek(4096)
assert f.read(6) == b"stored"
'`)
	ended(t, m)
	m.Detach(tr)
	if b, err := os.ReadFile(filepath.Join(m.Lower, "f")); err != nil || string(b[4096:4102]) != "stored" {
		t.Errorf("below: %q, %v", b, err)
	}
	all := recorded(t, stream)
	stored := false
	for i := range all {
		if r := &all[i]; r.Type == trace.RecCall && event.Op(r.Op) == event.OpMmapPwrite {
			off := 4096 - int(r.Args[3])
			stored = stored || strings.HasPrefix(piece(r, 1)[max(off, 0):], "stored")
		}
	}
	if !stored {
		t.Errorf("no mmap_pwrite in %s", summary(ops(all, "f")))
	}
}

// Several recordings of one mount, each what it wants; one comes later, while a file is
// open.
func TestRecordings(t *testing.T) {
	needFUSE(t)
	whole, wholeStream := recording(t)
	lengths, lengthsStream := recording(t)
	lengths.Content = capture.Everywhere(capture.KeepNone)
	ones, onesStream := recording(t)
	ones.Want = func(o *Operation) bool {
		return o.Op == event.OpMkdirat && o.UID == 0 && strings.HasPrefix(o.Path, "d/1")
	}
	m := mounted(t, Options{Recordings: []*Recording{whole, lengths, ones}})
	cat := command(m.Mountpoint, "sh", "-c", "mkdir d d/1 d/2; cat >d/file")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, "first")
	until(t, func() bool { b, _ := os.ReadFile(filepath.Join(m.Lower, "d/file")); return len(b) == 5 })
	late, lateStream := recording(t)
	if err := m.Attach(late); err != nil {
		t.Fatal(err)
	}
	if err := m.Attach(late); err == nil {
		t.Error("attached twice")
	}
	m.Detach(lengths)
	io.WriteString(in, "second")
	in.Close()
	if err := cat.Wait(); err != nil {
		t.Fatal(err)
	}
	ended(t, m)
	for _, tr := range []*Recording{whole, ones, late} {
		m.Detach(tr)
	}
	wrote := func(stream string) (text string, n int64) {
		all := recorded(t, stream)
		for i := range all {
			if r := &all[i]; r.Type == trace.RecCall && event.Op(r.Op) == event.OpPwrite64 {
				text += piece(r, 1)
				n += r.Ret
			}
		}
		return text, n
	}
	for _, tt := range []struct {
		what, stream, text string
		bytes              int64
	}{
		{"whole", wholeStream, "firstsecond", 11},
		{"lengths", lengthsStream, "", 5},
		{"ones", onesStream, "", 0},
		{"late", lateStream, "second", 6},
	} {
		if text, n := wrote(tt.stream); text != tt.text || n != tt.bytes {
			t.Errorf("%s: %q, %d bytes", tt.what, text, n)
		}
	}
	calls := 0
	for _, r := range recorded(t, onesStream) {
		if r.Type == trace.RecCall {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("ones: %d calls", calls)
	}
	for _, r := range recorded(t, lateStream) {
		if r.Type == trace.RecFile && piece(&r, 0) == filepath.Join(m.Lower, "d/file") {
			return
		}
	}
	t.Error("late: the open file is not told of")
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not happen")
}

// What changes beneath the mount is seen through it.
func TestChangesBeneath(t *testing.T) {
	m := mounted(t, Options{})
	low := func(name string) string { return filepath.Join(m.Lower, name) }
	write := func(name, s string) {
		if err := os.WriteFile(low(name), []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("f", "one")
	if got := sh(t, m.Mountpoint, "cat f"); got != "one" {
		t.Errorf("made: %q", got)
	}
	write("f", "longer than before")
	if got := sh(t, m.Mountpoint, "cat f; stat -c ' %s' f"); got != "longer than before 18\n" {
		t.Errorf("written: %q", got)
	}
	os.Remove(low("f"))
	if got := sh(t, m.Mountpoint, "cat f 2>&1 || :"); !strings.Contains(got, "No such file") {
		t.Errorf("removed: %q", got)
	}
	os.Mkdir(low("f"), 0o755)
	write("f/x", "now a directory")
	if got := sh(t, m.Mountpoint, "cat f/x; ls f"); got != "now a directoryx\n" {
		t.Errorf("replaced: %q", got)
	}
	os.Rename(low("f"), low("g"))
	if got := sh(t, m.Mountpoint, "ls; cat g/x"); got != "g\nnow a directory" {
		t.Errorf("renamed: %q", got)
	}
}

// Locks taken through the mount are those of the lower file.
func TestLocksBelow(t *testing.T) {
	m := mounted(t, Options{})
	testenv.NeedProgram(t, "flock", "python3")
	sh(t, m.Lower, "echo >f")
	f, err := os.OpenFile(filepath.Join(m.Lower, "f"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, m.Mountpoint, "flock -n f true && echo locked || echo refused"); got != "refused\n" {
		t.Errorf("flock: %s", got)
	}
	var unlocks sync.WaitGroup
	unlocks.Go(func() {
		time.Sleep(100 * time.Millisecond)
		unix.Flock(int(f.Fd()), unix.LOCK_UN)
	})
	sh(t, m.Mountpoint, "flock -w 20 f true")
	unlocks.Wait()
	// One process holds a record lock; another, below, is refused, asks who it is, and waits
	// for its end.
	holder := command(m.Mountpoint, "python3", "-c", `
import fcntl, sys
f = open("f", "r+"); fcntl.lockf(f, fcntl.LOCK_EX, 10, 5)
print("held", flush=True); sys.stdin.read()`)
	in, _ := holder.StdinPipe()
	out, _ := holder.StdoutPipe()
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Start: 14, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk); err != unix.EAGAIN {
		t.Errorf("below, the lock is not seen: %v", err)
	}
	lk = unix.Flock_t{Type: unix.F_WRLCK, Start: 15, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lk); err != nil {
		t.Errorf("beside it: %v", err)
	}
	who := sh(t, m.Mountpoint, `python3 -c '
import fcntl, struct
f = open("f", "r+")
print(struct.unpack("hhqqi4x", fcntl.fcntl(f, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 10, 5, 0)))[4])'`)
	if strings.TrimSpace(who) != fmt.Sprint(holder.Process.Pid) {
		t.Errorf("held by %s, not %d", who, holder.Process.Pid)
	}
	waiter := command(m.Mountpoint, "python3", "-c", `
import fcntl
f = open("f", "r+"); fcntl.lockf(f, fcntl.LOCK_EX, 10, 5)`)
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if err := errors.Join(holder.Wait(), waiter.Wait()); err != nil {
		t.Error(err)
	}
	// A waiter that gets a signal does not wait.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	sh(t, m.Mountpoint, "timeout -s INT 0.2 flock f true || :")
	if time.Since(start) > 10*time.Second {
		t.Error("a signal does not end waiting for a lock")
	}
}

// A file is found again by a handle, as an NFS server has it.
func TestHandles(t *testing.T) {
	m := mounted(t, Options{})
	sh(t, m.Mountpoint, "mkdir -p a/b; echo found >a/b/f")
	if err := os.Mkdir(filepath.Join(m.Lower, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	testenv.NeedProgram(t, "python3")
	got := sh(t, m.Mountpoint, `python3 -c '
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class H(ctypes.Structure): _fields_ = [("bytes", ctypes.c_uint), ("type", ctypes.c_int), ("h", ctypes.c_ubyte * 128)]
h = H(128); mnt = ctypes.c_int()
assert libc.name_to_handle_at(-100, b"a/b/f", ctypes.byref(h), ctypes.byref(mnt), 0) == 0, os.strerror(ctypes.get_errno())
os.rename("a/b/f", "x/g")
d = os.open(".", os.O_RDONLY)
fd = libc.open_by_handle_at(d, ctypes.byref(h), os.O_RDONLY)
assert fd >= 0, os.strerror(ctypes.get_errno())
print(os.read(fd, 10), end="")
'`)
	if got != `b'found\n'` {
		t.Errorf("%q", got)
	}
}

// The mountpoint may be the lower directory, or inside of it.
func TestOverItself(t *testing.T) {
	needFUSE(t)
	lower := t.TempDir()
	sh(t, lower, "mkdir -p in/side; echo here >f; echo below >in/side/g")
	m := mounted(t, Options{Lower: lower, Mountpoint: lower})
	sh(t, lower, "cat f in/side/g; echo new >h")
	ended(t, m)
	if got := sh(t, lower, "cat h"); got != "new\n" {
		t.Errorf("after: %q", got)
	}
	mounted(t, Options{Lower: lower, Mountpoint: filepath.Join(lower, "in/side")})
	if got := sh(t, lower, "ls in/side; cat in/side/in/side/g; find . | wc -l"); got != "f\nh\nin\nbelow\n10\n" {
		t.Errorf("inside: %q", got)
	}
}

func TestUnmountWhileInUse(t *testing.T) {
	tr, _ := recording(t)
	m := mounted(t, Options{Recordings: []*Recording{tr}})
	cmd := command(m.Mountpoint, "sh", "-c", "exec 3>>f; echo one >&3; read line; echo two >&3; cat f >g")
	in, _ := cmd.StdinPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { b, _ := os.ReadFile(filepath.Join(m.Lower, "f")); return len(b) == 4 })
	if err := m.Unmount(); !errors.Is(err, ErrBusy) {
		t.Fatalf("unmount: %v", err)
	}
	if sh(t, m.Mountpoint, "ls") != "" {
		t.Error("the mountpoint still shows files")
	}
	io.WriteString(in, "go on\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	select {
	case <-m.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("the mount does not end with its last user")
	}
	if got := sh(t, m.Lower, "cat g"); got != "one\ntwo\n" {
		t.Errorf("below: %q", got)
	}
}

// A mount namespace that was made meanwhile keeps the mount.
func TestOtherNamespace(t *testing.T) {
	m := mounted(t, Options{})
	testenv.NeedProgram(t, "unshare")
	other := exec.Command("unshare", "-m", "--propagation", "private", "sh", "-c",
		"cd "+m.Mountpoint+"; echo ready; read go; echo x >f")
	in, _ := other.StdinPipe()
	out, _ := other.StdoutPipe()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := m.Unmount(); !errors.Is(err, ErrBusy) {
		t.Errorf("unmount: %v", err)
	}
	in.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	<-m.Ended()
	if got := sh(t, m.Lower, "cat f"); got != "x\n" {
		t.Errorf("below: %q", got)
	}
}

func TestRefused(t *testing.T) {
	needFUSE(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	sh(t, dir, "echo >file; mkdir d")
	for _, tt := range []struct{ lower, at, want string }{
		{dir + "/no", dir, "lower directory " + dir + "/no: no such file or directory"},
		{dir, dir + "/no", "mountpoint " + dir + "/no: no such file or directory"},
		{file, dir, "lower directory " + file + ": not a directory"},
		{dir, file, "mountpoint " + file + ": not a directory"},
	} {
		if _, err := New(&Options{Lower: tt.lower, Mountpoint: tt.at}); err == nil || err.Error() != tt.want {
			t.Errorf("%s at %s: %v", tt.lower, tt.at, err)
		}
	}
}

func TestWithin(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "mkdir -p a/b; ln -s a/b l; ln -s a alias")
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{
		{"a/new", "a", true}, {"a", "a", true}, {"ab", "a", false}, {"l/new/deep", "a", true}, {"alias/x", "a/b", false},
		{"a/b/x", "alias", true}, {"new", "a", false}, {"../x", ".", false}, {"a/../y", "a", false},
	} {
		got, err := Within(filepath.Join(dir, tt.path), filepath.Join(dir, tt.dir))
		if err != nil || got != tt.want {
			t.Errorf("%s within %s: %v, %v", tt.path, tt.dir, got, err)
		}
	}
}

// Files that the kernel knows cost a descriptor each: of too many it is asked to forget.
func TestManyFiles(t *testing.T) {
	m := mounted(t, Options{})
	m.maxNodes.Store(100)
	sh(t, m.Mountpoint, "exec 3>kept; for i in $(seq 600); do echo $i >$i; done; ls -l; echo x >&3")
	until(t, func() bool { return m.fs.nodes.count() <= 100 })
	if got := sh(t, m.Mountpoint, "cat 1 300 600 kept; ls | wc -l"); got != "1\n300\n600\nx\n601\n" {
		t.Errorf("afterwards: %q", got)
	}
}

// A whole tree through the mount is the same tree below.
func TestTree(t *testing.T) {
	testenv.Short(t, "it copies a large tree")
	testenv.NeedProgram(t, "git", "rsync")
	m := mounted(t, Options{})
	sh(t, m.Mountpoint, `
git init -q repo; cd repo
git config user.email a@b; git config user.name n
for i in $(seq 100); do mkdir -p d$((i%10)); seq $i >d$((i%10))/f$i; done
git add .; git commit -qm one; git gc -q; git checkout -qb other; git mv d1 d99; git commit -qam two; git fsck --strict
cd ..; cp -a repo copy; tar cf - repo | tar xf - --one-top-level=tarred
rsync -a repo/ synced/; rm -rf repo/d2; diff -r copy tarred/repo`)
	if out := sh(t, m.Lower, "diff -r copy synced && git -C copy status --porcelain; ls repo | wc -l"); out != "9\n" {
		t.Errorf("below: %s", out)
	}
}

// Names and attributes may be cached; the calls are fewer, the files the same.
func TestCache(t *testing.T) {
	count := func(cache time.Duration) uint64 {
		tr, _ := recording(t)
		m := mounted(t, Options{Cache: cache, Recordings: []*Recording{tr}})
		sh(t, m.Mountpoint, "mkdir -p a/b/c; for i in 1 2 3 4 5; do echo $i >a/b/c/$i; done; for i in 1 2 3; do "+
			"cat a/b/c/*; ls -lR; done")
		ended(t, m)
		return m.Detach(tr).Events
	}
	if all, few := count(0), count(time.Minute); few >= all {
		t.Errorf("%d calls without a cache, %d with", all, few)
	}
}
