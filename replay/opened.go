package replay

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// planOpen plans to open what was open at the start.
func (p *planner) planOpen(t *task) {
	f := &t.ev.Files[0]
	if p.handles[f.Open] != nil {
		return // by another number already
	}
	t.action = openAtStart
	t.result = &handle{fd: -1, path: f.Path}
	p.handles[f.Open] = t.result
}

// nameSocket makes the name that a bind gave to a socket: the socket itself is modelled.
func (w *worker) nameSocket(t *task) {
	if t.dir != 0 && !w.enter(t.dir) {
		w.mismatch(t, "working directory", "reachable", "not reachable")
		return
	}
	w.become(t)
	if err := unix.Mknod(t.ev.Paths[0].Raw, unix.S_IFSOCK|0o777, 0); err != nil {
		w.mismatch(t, "errno", "0", errName(err))
	}
}

// openAtStart opens a file as it was open, and goes to where its position was.
func (w *worker) openAtStart(t *task) {
	f := &t.ev.Files[0]
	flags := int(f.Flags)&^(unix.O_CREAT|unix.O_EXCL|unix.O_TRUNC|unix.O_TMPFILE&^unix.O_DIRECTORY) | unix.O_CLOEXEC
	fd, err := unix.Open(f.Path, flags|unix.O_NONBLOCK, 0)
	if err == nil {
		t.result.fifo = waits(fd, uint64(flags))
	}
	if err == nil && effect.TypeOf(f.Mode) == tree.File && f.Pos > 0 {
		_, err = unix.Seek(fd, f.Pos, unix.SEEK_SET)
	}
	t.result.dir.begun = effect.TypeOf(f.Mode) == tree.Dir && f.Pos != 0
	t.result.fd, t.result.broken = fd, err != nil
	if err != nil {
		w.mismatch(t, "open at the start", "0", errName(err))
	}
}
