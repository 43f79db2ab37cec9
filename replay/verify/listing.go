// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/tree"
)

// Listing follows the recording's listing of a directory, instead of making the call. A name that comes or goes
// while a directory is being listed may or may not be reported (readdir(3)): only
// names that are there throughout must be.
func (c *Checker) Listing(t *plan.Task, buf []byte) {
	h := t.Files.FDs[0]
	if h == nil || h.FD < 0 || !t.Event.OK() {
		return
	}
	l := &h.Listing
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if t.Content.Missing { // what the directory holds is not known, up to the listing's end
		l.Want, l.Begun, l.Ended = nil, true, false
		return
	}
	if l.Ended && t.Event.Ret == 0 {
		return // it was at its end before
	}
	now, err := listDir(h.FD, buf)
	if err != nil {
		c.Mismatch(t, "errno", "0", result.ErrorName(err))
		return
	}
	l.Ended = t.Event.Ret == 0
	if l.Begun {
		l.Begun = !l.Ended
		return
	}
	if l.Want == nil {
		l.Want, l.First, l.Unsure = map[string]tree.Type{}, now, map[string]bool{}
	}
	for _, n := range t.Unsure {
		l.Unsure[n] = true
	}
	for _, e := range effect.Dirents(t.Content.Want) {
		l.Want[e.Name] = e.Type
	}
	if t.Event.Ret > 0 {
		return
	}
	if c.Checks&options.CheckDirs != 0 {
		c.compareListing(t, l, now)
	}
	l.Want = nil
}

// SeekListing follows the recording's lseek of a directory, instead of making the call. But for the
// start, positions are cookies that each file system makes of its own (telldir(3)): what is listed
// from one of them on is not compared.
func (c *Checker) SeekListing(t *plan.Task) {
	h := t.Files.FDs[0]
	if h == nil || !t.Event.OK() {
		return
	}
	l := &h.Listing
	l.Mu.Lock()
	defer l.Mu.Unlock()
	switch off, whence := t.Event.Args[1], t.Event.Args[2]; {
	case off == 0 && whence == unix.SEEK_CUR:
	case off == 0 && whence == unix.SEEK_SET:
		l.Want, l.Begun, l.Ended = nil, false, false
	default:
		l.Want, l.Begun, l.Ended = nil, true, false
	}
}

// listDir lists a directory from its start.
func listDir(fd int, buf []byte) (map[string]tree.Type, error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	all := map[string]tree.Type{}
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			return all, err
		}
		for _, e := range effect.Dirents(buf[:n]) {
			all[e.Name] = e.Type
		}
	}
}

// compareListing compares a whole listing with the names that are in the directory now.
func (c *Checker) compareListing(t *plan.Task, l *plan.Listing, now map[string]tree.Type) {
	for _, name := range slices.Sorted(maps.Keys(l.Want)) {
		typ, ok := now[name]
		if l.Unsure[name] {
			continue
		}
		if !ok {
			typ, ok = l.First[name]
		}
		switch want := l.Want[name]; {
		case !ok:
			c.Mismatch(t, "listing", fmt.Sprintf("%q", name), "missing")
			return
		case typ != want && typ != 0 && want != 0:
			c.Mismatch(t, "listing", fmt.Sprintf("%q of type %c", name, want), fmt.Sprintf("type %c", typ))
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, before := l.First[name]; !before || l.Unsure[name] {
			continue
		}
		if _, ok := l.Want[name]; !ok {
			c.Mismatch(t, "listing", "no more", fmt.Sprintf("%q", name))
			return
		}
	}
}
