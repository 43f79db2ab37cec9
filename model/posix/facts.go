// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"cmp"
	"strings"

	"github.com/iotape/iotape/event"
)

// Facts is what a trace has told of the open files beyond what the Model needs: their
// present names, positions and attributes. With it a trace can be cut (Model.State).
type Facts struct {
	opens  map[event.OpenID]*openFacts
	inodes map[fileID]*inodeFacts
}

// openFacts is what is known of an open file.
type openFacts struct {
	known bool   // its file
	id    fileID // of its file
	pos   int64
	flags uint32 // from the kernel; 0 if it did not say
}

// inodeFacts is what was last seen of a file that is open.
type inodeFacts struct {
	file  event.File
	opens int
}

// NewFacts returns Facts of no open file.
func NewFacts() *Facts {
	return &Facts{opens: map[event.OpenID]*openFacts{}, inodes: map[fileID]*inodeFacts{}}
}

// See takes an event that a Model has applied, and what Apply returned of it.
func (k *Facts) See(ev *event.Event, released []event.OpenID) {
	for i := range ev.Files {
		if o := &ev.Files[i]; o.Open != 0 {
			k.see(o)
		}
	}
	for _, id := range released {
		if o := k.opens[id]; o != nil {
			k.letGo(o)
			delete(k.opens, id)
		}
	}
}

// see notes what an event says of an open file.
func (k *Facts) see(file *event.File) {
	o := k.opens[file.Open]
	if o == nil {
		o = &openFacts{}
		k.opens[file.Open] = o
	}
	if !file.Known {
		return
	}
	o.pos, o.flags = file.Pos, file.Flags
	if id := (fileID{file.Dev, file.Ino}); !o.known || o.id != id {
		k.letGo(o)
		o.known, o.id = true, id
		n := k.inodes[id]
		if n == nil {
			n = &inodeFacts{}
			k.inodes[id] = n
		}
		n.opens++
	}
	k.inodes[o.id].file = *file
}

// letGo takes an open file away from its inode.
func (k *Facts) letGo(o *openFacts) {
	if n := k.inodes[o.id]; o.known && n != nil {
		if n.opens--; n.opens == 0 {
			delete(k.inodes, o.id)
		}
	}
}

// below takes the name of a directory, or of the file itself, off a path.
func below(path, dir string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// onlyAtOpen are the open flags that act at open and mean nothing later.
const onlyAtOpen = event.OpenCreat | event.OpenExcl | event.OpenTrunc | 0o400 // and O_NOCTTY

// file describes an open file as it is now, with its present name. It has no name but
// that of old with " (deleted)", and no links, if it has none any more.
func (k *Facts) file(open *OpenFile) event.File {
	f := event.File{
		Open: open.ID, Dev: open.Dev, Ino: open.Ino, Mode: open.Mode, Flags: open.Flags,
		Path: cmp.Or(open.Now.Given, open.Path), Real: open.Now.other(),
		Known: open.Ino != 0 || open.Mode != 0,
	}
	o := k.opens[open.ID]
	if o == nil {
		f.Flags &^= onlyAtOpen
		return f
	}
	if n := k.inodes[o.id]; n != nil {
		f = n.file
		f.Open, f.Pos, f.Flags = open.ID, o.pos, o.flags
	}
	f.Path, f.Real = cmp.Or(open.Now.Given, open.Path), open.Now.other()
	if open.Gone && !open.nameless() {
		f.Nlink, f.Path, f.Real = 0, strings.TrimSuffix(f.Path, deleted)+deleted, ""
		return f
	}
	f.Flags &^= onlyAtOpen
	return f
}
