// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestMain fails the package if a test leaves a descriptor open.
func TestMain(m *testing.M) {
	before := openFDs()
	code := m.Run()
	for fd, what := range openFDs() {
		// The runtime's own epoll descriptors come with the first use of a pipe.
		if _, ok := before[fd]; !ok && !strings.HasPrefix(what, "anon_inode:") {
			fmt.Printf("descriptor %s (%s) was left open\n", fd, what)
			code = 99
		}
	}
	os.Exit(code)
}

func openFDs() map[string]string {
	fds := map[string]string{}
	list, _ := os.ReadDir("/proc/self/fd")
	for _, e := range list {
		if what, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // else it was ReadDir's
			fds[e.Name()] = what
		}
	}
	return fds
}

// needRoot skips what only root can do.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("skipped: needs root (devices, owners)")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memory is a sink and the content for Restore.
type memory struct{ chunks [][]byte }

func (m *memory) put(data []byte, off int64) (uint64, error) {
	if off%chunkBytes != 0 || len(data) > chunkBytes || len(data) == 0 {
		return 0, fmt.Errorf("bad cut: %d bytes at %d", len(data), off)
	}
	m.chunks = append(m.chunks, bytes.Clone(data))
	return uint64(len(m.chunks) - 1), nil
}

func (m *memory) get(id uint64) ([]byte, error) {
	if id >= uint64(len(m.chunks)) {
		return nil, errors.New("no such chunk")
	}
	return m.chunks[id], nil
}

func take(t testing.TB, root string, opt *TakeOptions) *Manifest {
	t.Helper()
	m, err := Take(context.Background(), root, opt)
	must(t, err)
	must(t, m.Validate())
	return m
}

func wantSame(t testing.TB, want, got *Manifest) {
	t.Helper()
	for _, d := range Compare(want, got, &CompareOptions{MTime: true}) {
		t.Error(d)
	}
}

func wantError(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Fatalf("got error %v, want one with %q", err, part)
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func paths(m *Manifest) []string {
	var list []string
	for i := range m.Entries {
		list = append(list, m.Entries[i].Path)
	}
	return list
}

// sample makes a tree with one of everything that the user may make.
func sample(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	p := func(name string) string { return filepath.Join(root, name) }
	must(t, os.Mkdir(p("dir"), 0o755))
	must(t, os.Mkdir(p("dir/closed"), 0o700))
	must(t, os.Mkdir(p("dir-x"), 0o755))
	write(t, p("dir/closed/inside"), "secret")
	write(t, p("dir/file"), "hello")
	write(t, p("dir/empty"), "")
	write(t, p("dir/b\xffd\n"), "not UTF-8")
	write(t, p("dir/long"), strings.Repeat("0123456789abcdef", 1000))
	must(t, os.Link(p("dir/file"), p("a-link")))
	must(t, os.Link(p("dir/file"), p("z-link")))
	must(t, os.Symlink("dir/\xfe", p("sym")))
	must(t, os.Link(p("sym"), p("sym2")))
	must(t, unix.Mkfifo(p("fifo"), 0o640))
	must(t, unix.Mknod(p("sock"), unix.S_IFSOCK|0o600, 0))
	f, err := os.Create(p("sparse"))
	must(t, err)
	_, err = f.WriteAt([]byte("middle"), 1<<20+5)
	must(t, err)
	must(t, f.Truncate(3<<20+1))
	must(t, f.Close())
	must(t, unix.Lsetxattr(p("dir/file"), "user.k\xff", []byte("v\x00\xff"), 0))
	must(t, unix.Lsetxattr(p("dir"), "user.empty", nil, 0))
	if os.Geteuid() == 0 {
		must(t, unix.Mknod(p("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		must(t, unix.Mknod(p("loop"), unix.S_IFBLK|0o660, int(unix.Mkdev(7, 300))))
		must(t, os.Lchown(p("sym"), 12, 34))
		must(t, os.Chown(p("dir/long"), 1000, 1001))
		must(t, unix.Lsetxattr(p("sym"), "trusted.t", []byte("x"), 0))
	}
	must(t, unix.Chmod(p("dir/long"), 0o6755))
	must(t, unix.Chmod(p("dir/closed"), 0o1500))
	t.Cleanup(func() { os.Chmod(p("dir/closed"), 0o700) })
	must(t, os.Chtimes(p("dir"), timeAt(-5), timeAt(-5)))
	must(t, os.Chtimes(p("sparse"), timeAt(123456789), timeAt(123456789)))
	return root
}

func TestRoundTrip(t *testing.T) {
	src := sample(t)
	mem := &memory{}
	var entries int
	var read int64
	m := take(t, src, &TakeOptions{Sink: mem.put, Progress: func(n int, b int64) { entries, read = n, b }})
	if len(m.Notes) != 0 {
		t.Errorf("notes: %v", m.Notes)
	}
	if entries != len(m.Entries) || read == 0 || read > 100_000 {
		t.Errorf("progress said %d entries and %d bytes", entries, read)
	}

	var buf bytes.Buffer
	must(t, Encode(&buf, m))
	decoded, err := Decode(&buf)
	must(t, err)
	if d := cmp.Diff(m, decoded); d != "" {
		t.Fatalf("decoded differs: %s", d)
	}

	dst := filepath.Join(t.TempDir(), "new")
	report, err := Restore(t.Context(), decoded, dst, mem.get, nil)
	must(t, err)
	if report.Entries != len(m.Entries) || len(report.Problems) != 0 {
		t.Errorf("report: %+v", report)
	}
	t.Cleanup(func() { os.Chmod(filepath.Join(dst, "dir/closed"), 0o700) })
	wantSame(t, m, take(t, dst, nil))

	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(dst, "sparse"), &st))
	if st.Size != 3<<20+1 || st.Blocks*512 > 1<<20 {
		t.Errorf("sparse file has %d bytes in %d blocks", st.Size, st.Blocks)
	}
}

func TestTakeDetails(t *testing.T) {
	m := take(t, sample(t), &TakeOptions{Prefix: "/srv/db"})
	if e := m.Lookup("/srv/db/a-link"); e == nil || e.Link != "" || e.Nlink != 3 || !e.Has(KnownHash) {
		t.Errorf("a-link: %+v", e)
	}
	for _, p := range []string{"/srv/db/dir/file", "/srv/db/z-link"} {
		if e := m.Lookup(p); e == nil || e.Link != "/srv/db/a-link" || e.Hash != m.Lookup("/srv/db/a-link").Hash {
			t.Errorf("%s: %+v", p, e)
		}
	}
	if e := m.Lookup("/srv/db/sparse"); e.Has(KnownContent) || e.Chunks != nil {
		t.Errorf("without a sink content counts as known: %+v", e)
	}
	if m.Entries[0].Path != "/srv/db" || len(m.Below("/srv/db")) != len(m.Entries)-1 {
		t.Errorf("below the root: %q", paths(m))
	}
	for i := range m.Entries {
		if below := m.Below("/srv/db/dir"); m.Entries[i].Path == "/srv/db/dir-x" && len(below) != 6 {
			t.Errorf("below dir: %d entries", len(below))
		}
	}
}

func TestTakeNoHashOpensNothing(t *testing.T) {
	m := take(t, sample(t), &TakeOptions{NoHash: true})
	for i := range m.Entries {
		if e := &m.Entries[i]; e.Known&(KnownHash|KnownContent) != 0 {
			t.Errorf("%s: %s", e.Path, e.Known)
		}
	}
}

func TestTakeErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "x")
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	full := func([]byte, int64) (uint64, error) { return 0, errors.New("store is full") }
	tests := []struct {
		name string
		ctx  context.Context
		root string
		opt  *TakeOptions
		want string
	}{
		{"a file", t.Context(), file, nil, "not a directory"},
		{"nothing", t.Context(), file + "x", nil, "no such file"},
		{"bad prefix", t.Context(), filepath.Dir(file), &TakeOptions{Prefix: "a/../b"}, `contains ".."`},
		{"stopped", stopped, filepath.Dir(file), nil, "canceled"},
		{"sink", t.Context(), filepath.Dir(file), &TakeOptions{Sink: full}, `"file": store content at 0: store is full`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := Take(test.ctx, test.root, test.opt)
			wantError(t, err, test.want)
			if m != nil {
				t.Error("an error and a manifest")
			}
		})
	}
}

func TestTakePseudo(t *testing.T) {
	m := take(t, "/proc", nil)
	if len(m.Entries) != 1 || m.Entries[0].Has(KnownListing) || len(m.Notes) != 1 {
		t.Fatalf("/proc was entered: %d entries, notes %v", len(m.Entries), m.Notes)
	}
	m, err := TakePaths(t.Context(), "/", []string{"/proc/self/mountinfo", "/proc/kmsg"},
		nil, &TakeOptions{Prefix: "/"})
	must(t, err)
	must(t, m.Validate())
	if e := m.Lookup("/proc/kmsg"); e == nil || e.Type != File || e.Known&(KnownSize|KnownHash) != 0 {
		t.Errorf("kmsg: %+v", e)
	}
	if e := m.Lookup(fmt.Sprintf("/proc/%d/mountinfo", os.Getpid())); e == nil {
		t.Errorf("the symlink /proc/self was not followed: %q", paths(m))
	}
}

// A tree deeper than one path may be long, which a path-based walk cannot reach.
func TestDeep(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	name := strings.Repeat("n", 200)
	for range 60 {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	must(t, unix.Symlinkat("x", fd, "end"))
	unix.Close(fd)
	m := take(t, root, nil)
	if len(m.Entries) != 62 || len(m.Notes) != 0 {
		t.Fatalf("%d entries, notes %v", len(m.Entries), m.Notes)
	}
	dst := t.TempDir()
	_, err = Restore(t.Context(), m, dst, nil, nil)
	must(t, err)
	wantSame(t, m, take(t, dst, nil))
}
