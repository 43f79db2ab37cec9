// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture"
)

// Options says what to mount where.
type Options struct {
	Lower      string // the directory whose files are shown
	Mountpoint string // an existing directory; it may be Lower itself
	// Cache is how long the kernel may keep names and attributes. 0 has it ask each
	// time, so that every look is recorded and changes made beneath the mount are seen
	// at once.
	Cache      time.Duration
	Recordings []*Recording // that record from the first request on; there may be none
}

// A Mount is a mounted file system that is being served.
type Mount struct {
	Lower, Mountpoint string // absolute, without symbolic links

	fs       *FS
	server   *fuse.Server
	maxNodes atomic.Int64 // more than these, and the kernel is asked to forget some
	ended    chan struct{}
	mu       sync.Mutex
	err      error // of the serving
}

// ErrBusy is returned by Unmount when programs still use the mount: it has no name any
// more, and ends with the last of them.
var ErrBusy = errors.New("in use")

const (
	maxRequest    = 1 << 20 // bytes of one read or write; the kernel's own limit
	maxBackground = 64      // pages of mappings that are read and written at a time
)

// wantedCapabilities are what is asked of the kernel beyond go-fuse's own choice: to be told
// the umask, O_TRUNC, and when to take set-user-ID away; to map files whose reads and
// writes are not cached; to find files again for handles (open_by_handle_at(2), NFS).
const wantedCapabilities = fuse.CAP_DONT_MASK | fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_HANDLE_KILLPRIV_V2 |
	fuse.CAP_SETXATTR_EXT |
	fuse.CAP_DIRECT_IO_ALLOW_MMAP | fuse.CAP_EXPORT_SUPPORT | fuse.CAP_IOCTL_DIR | fuse.CAP_READDIRPLUS_AUTO

// New mounts a lower directory and begins to serve it.
func New(o *Options) (*Mount, error) {
	lower, mountpoint, err := places(o)
	if err != nil {
		return nil, err
	}
	if err := supported(); err != nil {
		return nil, err
	}
	files := raiseLimit()
	root := os.Geteuid() == 0
	fd, own, err := openLower(lower)
	if err != nil {
		return nil, err
	}
	if !own && within(mountpoint, lower) && mountpoint != lower {
		unix.Close(fd)
		return nil, fmt.Errorf("mount at %s: it is inside %s, and the mount would contain itself; only root can "+
			"do that", mountpoint, lower)
	}
	fs, err := newFS(fd, lower, o.Cache)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	for _, t := range o.Recordings {
		if err := fs.rec.attach(fs, t); err != nil {
			fs.close()
			return nil, err
		}
	}
	m := &Mount{Lower: lower, Mountpoint: mountpoint, fs: fs, ended: make(chan struct{})}
	m.maxNodes.Store(int64(files / 2))
	options := &fuse.MountOptions{
		FsName: lower, Name: "iotape", Options: []string{"default_permissions"},
		AllowOther: root, DirectMountStrict: root, DirectMountFlags: mountFlags(fd),
		MaxWrite: maxRequest, MaxBackground: maxBackground, SyncRead: true,
		EnableLocks: true, EnableAcl: true, ExtraCapabilities: wantedCapabilities, DisableReadDirPlus: o.Cache == 0,
		DisableSplice: true, Logger: log.New(io.Discard, "", 0), PanicHandler: m.panicked,
	}
	if o.Cache == 0 {
		options.DisabledCapabilities = fuse.CAP_READDIRPLUS_AUTO
	}
	if m.server, err = fuse.NewServer(fs, mountpoint, options); err != nil {
		for _, t := range o.Recordings {
			fs.rec.detach(t)
		}
		fs.close()
		return nil, fmt.Errorf("mount at %s: %w", mountpoint, err)
	}
	closeOnExec()
	offered := m.server.KernelSettings().Flags64()
	fs.xattrExt = offered&fuse.CAP_SETXATTR_EXT != 0
	fs.direct = offered&fuse.CAP_DIRECT_IO_ALLOW_MMAP != 0
	go m.serve()
	if err := m.server.WaitMount(); err != nil {
		m.Unmount()
		return nil, fmt.Errorf("mount at %s: %w", mountpoint, err)
	}
	return m, nil
}

func (m *Mount) serve() {
	stop := make(chan struct{})
	var others sync.WaitGroup
	every := func(do func()) {
		others.Go(func() {
			tick := time.NewTicker(flushEvery)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					do()
				}
			}
		})
	}
	every(m.fs.rec.flush)
	every(m.prune)
	m.server.Serve()
	close(stop)
	others.Wait()
	m.fs.rec.flush()
	close(m.ended)
}

// prune asks the kernel to forget files that nobody uses, when it knows so many that
// descriptors become scarce.
func (m *Mount) prune() {
	n, most := m.fs.nodes.count(), int(m.maxNodes.Load())
	if n <= most {
		return
	}
	const atOnce = 4096
	some := m.fs.nodes.some(min(n-most/2, atOnce))
	ids := make([]uint64, len(some))
	for i := range some {
		ids[i] = some[i].id
	}
	if m.server.PruneNotify(ids) == fuse.OK {
		return
	}
	for i := range some { // a kernel that does not know of it: by name
		m.server.EntryNotify(some[i].dir, some[i].entry)
	}
}

// panicked keeps a fault of ours from taking the mount away from its users.
func (m *Mount) panicked(what any) fuse.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = fmt.Errorf("serve %s: %v", m.Mountpoint, what)
	}
	return fuse.EIO
}

// Attach begins to record with one more recording.
func (m *Mount) Attach(t *Recording) error { return m.fs.rec.attach(m.fs, t) }

// Detach ends a recording and says what it has. Its stream can be closed then.
func (m *Mount) Detach(t *Recording) Counts { return m.fs.rec.detach(t) }

// Ended is closed when the file system is unmounted and no program uses it any more.
func (m *Mount) Ended() <-chan struct{} { return m.ended }

// Close waits until the mount has ended and frees what it has. The error says that
// requests failed by a fault of ours.
func (m *Mount) Close() error {
	<-m.ended
	m.fs.close()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// Unmount takes the file system from its place. If programs use it, or it is mounted in
// another mount namespace too, that is ErrBusy: it goes on for those, and ends with the
// last.
func (m *Mount) Unmount() error {
	if m.over(0) {
		return nil
	}
	if unmount(m.Mountpoint, false) != nil && !m.over(0) { // else somebody else did
		if err := unmount(m.Mountpoint, true); err != nil {
			return fmt.Errorf("unmount %s: %w", m.Mountpoint, err)
		}
	}
	if !m.over(endsWithin) {
		return ErrBusy
	}
	return nil
}

// endsWithin is how long a mount that nobody uses takes to end, at most.
const endsWithin = 300 * time.Millisecond

// over reports whether the mount ends within a time.
func (m *Mount) over(within time.Duration) bool {
	select {
	case <-m.ended:
		return true
	default:
	}
	select {
	case <-m.ended:
		return true
	case <-time.After(within):
		return false
	}
}

func unmount(at string, lazily bool) error {
	if os.Geteuid() == 0 {
		flags := unix.UMOUNT_NOFOLLOW
		if lazily {
			flags |= unix.MNT_DETACH
		}
		return unix.Unmount(at, flags)
	}
	args := []string{"-u", at}
	if lazily {
		args = []string{"-u", "-z", at}
	}
	out, err := exec.Command("fusermount3", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// places checks and resolves the two directories.
func places(o *Options) (lower, mountpoint string, err error) {
	resolve := func(what, p string) (string, error) {
		abs, err := filepath.Abs(p)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if errors.Is(err, syscall.ENOTCONN) {
			return "", fmt.Errorf("%s %s: a mount is there whose server has ended; take it away with umount %s", what,
				p, p)
		}
		var path *os.PathError
		if errors.As(err, &path) {
			return "", fmt.Errorf("%s %s: %w", what, p, path.Err)
		}
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", what, p, err)
		}
		fi, err := os.Stat(abs)
		switch {
		case errors.Is(err, syscall.ENOTCONN):
			return "", fmt.Errorf("%s %s: a mount is there whose server has ended; take it away with umount %s", what,
				p, p)
		case err != nil || !fi.IsDir():
			return "", fmt.Errorf("%s %s: not a directory", what, p)
		}
		return abs, nil
	}
	if lower, err = resolve("lower directory", o.Lower); err != nil {
		return "", "", err
	}
	mountpoint, err = resolve("mountpoint", o.Mountpoint)
	return lower, mountpoint, err
}

// Within reports whether a path, which need not exist, leads into a directory, both after
// symbolic links.
func Within(path, dir string) (bool, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false, err
	}
	for rest := path; ; rest = filepath.Dir(rest) {
		if real, err := filepath.EvalSymlinks(rest); err == nil {
			return within(filepath.Join(real, strings.TrimPrefix(path, rest)), dir), nil
		}
		if rest == filepath.Dir(rest) {
			return false, nil
		}
	}
}

func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// openLower opens the lower directory. As root it is a mount of its own, with what was
// mounted below it until now: so whatever is mounted later, our own mount first of all,
// is not in the way when the server walks through it.
func openLower(lower string) (fd int, own bool, err error) {
	if os.Geteuid() == 0 {
		fd, err = unix.OpenTree(unix.AT_FDCWD, lower, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err == nil {
			attr := unix.MountAttr{Propagation: unix.MS_PRIVATE}
			if err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err == nil {
				return fd, true, nil
			}
			unix.Close(fd)
		}
	}
	fd, err = openat(unix.AT_FDCWD, lower, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, false, fmt.Errorf("lower directory %s: %w", lower, err)
	}
	return fd, false, nil
}

// mountFlags are those of the lower directory's own mount: set-user-ID programs, devices
// and programs work as they do there. (An ordinary user's mount has none of the first two.)
func mountFlags(lower int) uintptr {
	var st unix.Statfs_t
	if unix.Fstatfs(lower, &st) != nil {
		return 0
	}
	const shared = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC // same numbers as ST_RDONLY …
	flags := uintptr(st.Flags) & shared
	if flags == 0 {
		flags = unix.MS_MGC_VAL // "no flags", of which 0 would mean go-fuse's own
	}
	return flags
}

// raiseLimit allows as many descriptors as may be: there is one for each file that the
// kernel knows. Root may have more than its limit says. It returns how many those are.
func raiseLimit() int {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return leastFiles
	}
	lim.Cur = lim.Max
	if os.Geteuid() == 0 && lim.Max < mostFiles {
		more := unix.Rlimit{Cur: mostFiles, Max: mostFiles}
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &more) == nil {
			return mostFiles
		}
	}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	return int(min(lim.Cur, mostFiles))
}

const (
	mostFiles  = 1 << 20 // fs.nr_open, as the kernel sets it
	leastFiles = 1024
)

// closeOnExec keeps the connections to the kernel from programs that this one starts: with
// one of them alive, a mount whose server was killed would not end, and who uses it would
// wait for it for ever. go-fuse opens them without the flag.
func closeOnExec() {
	const own = "/proc/self/fd"
	fds, err := os.ReadDir(own)
	if err != nil {
		return // no /proc; nothing depends on it as long as nobody is killed
	}
	for _, e := range fds {
		if to, err := os.Readlink(filepath.Join(own, e.Name())); err != nil || to != "/dev/fuse" {
			continue
		}
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			unix.CloseOnExec(fd)
		}
	}
}

// supported says what a system lacks for FUSE.
func supported() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return &capture.UnsupportedError{Backend: Name, Feature: "/dev/fuse", Reason: errors.Unwrap(err)}
	}
	f.Close()
	if os.Geteuid() == 0 {
		return nil
	}
	if _, err := exec.LookPath("fusermount3"); err != nil {
		return &capture.UnsupportedError{Backend: Name, Feature: "fusermount3 (Debian's fuse3) for ordinary users"}
	}
	return nil
}
