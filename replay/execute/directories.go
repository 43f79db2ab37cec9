// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/plan"
)

// directories are the working directories that threads share, by their identities.
type directories struct {
	mu    sync.Mutex
	fds   map[uint64]int // O_PATH descriptors
	names sync.Map       // uint64 to string: of those that other members of a team went to
}

// publish lets all workers enter the calling thread's working directory.
func (d *directories) publish(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.fds[id]; ok {
		return
	}
	// If this fails, the calls that need the directory report it.
	if fd, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		d.fds[id] = fd
	}
}

// name says what a directory is called that another member's thread went to.
func (d *directories) name(id uint64, dir string) { d.names.Store(id, dir) }

// enter takes the calling thread to a published directory.
func (d *directories) enter(id uint64) bool {
	d.mu.Lock()
	fd, ok := d.fds[id]
	d.mu.Unlock()
	if ok {
		return unix.Fchdir(fd) == nil
	}
	dir, known := d.names.Load(id)
	return known && unix.Chdir(dir.(string)) == nil
}

func (d *directories) close() {
	for _, fd := range d.fds {
		unix.Close(fd)
	}
}

// publishDirectory opens the thread's working directory for the threads that will share it.
func (w *worker) publishDirectory(t *plan.Task) {
	id := t.Dir.Sets
	if id == 0 {
		id = t.Dir.From
		if !w.enterDirectory(id) {
			return
		}
	}
	w.env.dirs.publish(id)
}

// keepDirectory publishes the working directory before the worker leaves it, if it makes the
// calls of all threads: it is that of another one.
func (w *worker) keepDirectory() {
	if w.cwd != 0 && w.env.single {
		w.env.dirs.publish(w.cwd)
	}
}

// enterDirectory goes to a published working directory.
func (w *worker) enterDirectory(id uint64) bool {
	if w.cwd == id {
		return true
	}
	w.keepDirectory()
	if !w.env.dirs.enter(id) {
		return false
	}
	w.cwd = id
	return true
}

// enterBase goes to where a task's relative names start. If it cannot, it reports that.
func (w *worker) enterBase(t *plan.Task) bool {
	if t.Dir.From != 0 && !w.enterDirectory(t.Dir.From) {
		w.env.check.Mismatch(t, "working directory", "reachable", "not reachable")
		return false
	}
	return true
}
