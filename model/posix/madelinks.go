// SPDX-License-Identifier: Apache-2.0

package posix

// madeLinks are the symbolic links that calls of a trace made, by target. What they are called now, the trace tells:
// a file system that is asked later can have them at names that were those of other files before.
type madeLinks struct {
	by    map[string][]madeLink
	count int
}

// madeLink is one of them.
type madeLink struct {
	name        string // at first, without links
	enter, exit int64  // ns; of the call
}

// maxMadeLinks bounds those that are kept, all and of one target.
const (
	maxMadeLinks       = 1 << 16
	maxMadeLinksTarget = 1 << 10
)

func (l *madeLinks) add(name, target string, enter, exit int64) {
	list := l.by[target]
	if l.count >= maxMadeLinks || len(list) >= maxMadeLinksTarget {
		return
	}
	if l.by == nil {
		l.by = map[string][]madeLink{}
	}
	l.by[target] = append(list, madeLink{name, enter, exit})
	l.count++
}

// told reports whether a link that a file system has at a name is one of these. It is not if the name is another one
// of the same file: the trace can know a directory by two names, of which it does not tell.
func (l *madeLinks) told(k *Link, name string, fs FileSystem) bool {
	for _, made := range l.by[k.Target] {
		if k.Born < made.enter-coarse || k.Born > made.exit {
			continue
		}
		if made.name == name {
			return true
		}
		dev, ino := fs.Inode(name)
		otherDev, other := fs.Inode(made.name)
		return other == 0 || other != ino || otherDev != dev
	}
	return false
}
