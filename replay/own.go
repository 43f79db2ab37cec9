package replay

import (
	"golang.org/x/sys/unix"

	"iotape/event"
	"iotape/tree"
)

// ownFile reports whether a descriptor that was open at the start is to be opened by
// the replay: one that the program itself had opened, of a file or directory that
// still had a name. All others are the program's surroundings.
//
// Two files that had one name, one after the other, cannot both be made; the first
// one has it.
func ownFile(ev *event.Event, taken map[string]inode) bool {
	if ev.Kind != event.Inherited || ev.Args[0] != event.OwnFile || len(ev.Files) == 0 {
		return false
	}
	f := &ev.Files[0]
	if !f.Known || f.Nlink == 0 || f.Path == "" || f.Path[0] != '/' || virtual(f.Path) {
		return false
	}
	if t := typeOf(f.Mode); t != tree.File && t != tree.Dir {
		return false
	}
	if id, ok := taken[f.Path]; ok && id != idOf(f) {
		return false
	}
	taken[f.Path] = idOf(f)
	return true
}

// planOwn plans to open what was open at the start.
func (p *planner) planOwn(t *task) {
	f := &t.ev.Files[0]
	if p.handles[f.Open] != nil {
		return // by another number already
	}
	t.action = openOwn
	t.result = &handle{fd: -1, madeBy: t.n + 1}
	p.handles[f.Open] = t.result
}

// openOwn opens a file as it was open, and goes to where its position was.
func (w *worker) openOwn(t *task) {
	f := &t.ev.Files[0]
	flags := int(f.Flags)&^(unix.O_CREAT|unix.O_EXCL|unix.O_TRUNC|unix.O_TMPFILE&^unix.O_DIRECTORY) | unix.O_CLOEXEC
	fd, err := unix.Open(f.Path, flags, 0)
	if err == nil && typeOf(f.Mode) == tree.File && f.Pos > 0 {
		_, err = unix.Seek(fd, f.Pos, unix.SEEK_SET)
	}
	t.result.dir.begun = typeOf(f.Mode) == tree.Dir && f.Pos != 0
	t.result.fd, t.result.broken = fd, err != nil
	if err != nil {
		w.mismatch(t, "open at the start", "0", errName(err))
	}
}
