// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/tree"
)

// nameSocket makes the name that a bind gave to a socket: the socket itself is modelled.
func (w *worker) nameSocket(t *plan.Task) {
	if !w.enterBase(t) {
		return
	}
	w.applyCredentials(t)
	if err := unix.Mknod(t.Event.Paths[0].Raw, unix.S_IFSOCK|0o777, 0); err != nil {
		w.env.check.Mismatch(t, "errno", "0", result.ErrorName(err))
	}
}

// openAtStart opens a file as it was open, and goes to where its position was.
func (w *worker) openAtStart(t *plan.Task) {
	f := &t.Event.Files[0]
	flags := int(f.Flags)&^(unix.O_CREAT|unix.O_EXCL|unix.O_TRUNC|unix.O_TMPFILE&^unix.O_DIRECTORY) | unix.O_CLOEXEC
	fd, err := unix.Open(f.Path, flags|unix.O_NONBLOCK, 0)
	if err == nil {
		t.Files.Result.FIFO = isFIFO(fd, uint64(flags))
	}
	if err == nil && effect.TypeOf(f.Mode) == tree.File && f.Pos > 0 {
		_, err = unix.Seek(fd, f.Pos, unix.SEEK_SET)
	}
	t.Files.Result.FD = fd
	if err != nil {
		w.env.check.Mismatch(t, "open at the start", "0", result.ErrorName(err))
	}
}
