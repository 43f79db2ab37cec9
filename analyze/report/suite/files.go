// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"path"
	"strings"

	"github.com/iotape/iotape/event"
)

// file is a regular file that calls were about.
type file struct {
	id    int
	host  uint32
	path  string // the last name that was seen
	dev   uint64
	ino   uint64
	named bool // path is a name, not the number of the file
	gone  bool // its last name that was known was removed
}

type fileKey struct {
	host     uint32
	dev, ino uint64
	path     string // if the kernel's facts are not known
}

// files tells files apart: by device and inode, or by name where those are not known.
type files struct {
	max    int
	list   []*file // the last one stands for all others once there are more than max
	byKey  map[fileKey]*file
	byPath map[fileKey]*file
}

const otherFiles = "(other files)"

// of returns the file that a call is about, nil if that is no regular file.
func (x *files) of(ev *event.Event, s *seen) *file {
	f := s.io.From
	if f == nil || s.io.Writes {
		f = s.io.To
	}
	if f == nil {
		f = ev.Subject()
	}
	if f != nil && f.Arg >= 0 && int(f.Arg) < len(s.spec.Args) && s.spec.Args[f.Arg].Kind == event.KindDirFD &&
		len(ev.Paths) > 0 {
		return nil // the directory that a name is in
	}
	if f != nil && f.Known && s.creates() {
		x.reuse(ev.Host, f)
	}
	return x.ofFile(ev.Host, f)
}

// reuse forgets a file that was removed, and whose number a new one has.
func (x *files) reuse(host uint32, f *event.File) {
	key := fileKey{host: host, dev: f.Dev, ino: f.Ino}
	if g := x.byKey[key]; g != nil && g.gone {
		delete(x.byKey, key)
	}
}

func (x *files) ofFile(host uint32, f *event.File) *file {
	switch {
	case f == nil || !f.Known && !strings.HasPrefix(f.Path, "/"):
		return nil
	case f.Known && event.FileType(f.Mode) != event.TypeRegular:
		return nil
	}
	if x.byKey == nil {
		x.byKey, x.byPath = map[fileKey]*file{}, map[fileKey]*file{}
	}
	name := f.Reached()
	key, named := fileKey{host: host, dev: f.Dev, ino: f.Ino}, fileKey{host: host, path: name}
	if !f.Known {
		key = named
		if g := x.byPath[named]; g != nil {
			return g
		}
	}
	g := x.byKey[key]
	if g == nil {
		if len(x.list) > x.max {
			return x.list[x.max]
		}
		g = &file{id: len(x.list), host: host, dev: f.Dev, ino: f.Ino}
		if name == "" { // mapped when the recording began, say
			g.path = fmt.Sprintf("inode %d of device %d:%d", f.Ino, major(f.Dev), minor(f.Dev))
		}
		x.list = append(x.list, g)
		if len(x.list) > x.max {
			g.path = otherFiles
			return g
		}
		x.byKey[key] = g
	}
	if name != "" && (name != g.path || !g.named) {
		g.path, g.named = name, true
		x.byPath[named] = g
	}
	return g
}

// named returns the file that was last seen under a name, nil if there is none.
func (x *files) named(host uint32, name string) *file {
	return x.byPath[fileKey{host: host, path: name}]
}

// rename gives a file another name.
func (x *files) rename(host uint32, from, to string) {
	if g := x.byPath[fileKey{host: host, path: from}]; g != nil {
		delete(x.byPath, fileKey{host: host, path: from})
		x.byPath[fileKey{host: host, path: to}] = g
		g.path = to
	}
}

// major and minor take a device number apart, as in stat.
func major(dev uint64) uint64 { return dev >> 8 & 0xfff }
func minor(dev uint64) uint64 { return dev&0xff | dev>>12&0xfff00 }

func directory(name string) string { return path.Dir(name) }

// extension returns what stands behind the last dot of a name, "" if nothing does.
func extension(name string) string {
	base := path.Base(name)
	if ext := path.Ext(base); len(ext) > 1 && len(ext) < 12 && len(ext) < len(base) {
		return ext
	}
	return ""
}
