// SPDX-License-Identifier: Apache-2.0

package initialtree

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// Traces of other tools do not say whether an open with O_CREAT made its file. Until a call proves
// that the file was there before, it is taken for made.

// mayHaveBeen notes that an open perhaps did not make the file that it is taken to have made.
func (in *inference) mayHaveBeen(c *node, o *object, ev *event.Event, f *event.File) {
	flags := effect.OpenFlags(ev)
	if f.Known || flags&event.OpenExcl != 0 || o.initial {
		return
	}
	o.detail().perhaps, o.detail().asked = c, openMode(ev)
	if o.grown = false; flags&event.OpenTrunc != 0 {
		o.cut(0)
	}
}

// existed notes that a call proved a file to have been there before the first event.
func (o *object) existed() {
	c := o.details().perhaps
	if c == nil {
		return
	}
	o.more.perhaps = nil
	if c.was != nil || o.initial {
		return
	}
	o.initial, o.changed, o.first, c.was = true, false, c, o
}

// usualUmask is that of processes of which a trace does not say it.
const usualUmask = 0o022

// openMode returns the permissions that an open gives a file that it makes.
func openMode(ev *event.Event) uint32 {
	return uint32(ev.Named("mode")) & 0o777
}

// provedByStat learns from what stat says of a file that the trace may have made.
func (o *object) provedByStat(st *effect.Stat) {
	if o.details().perhaps == nil || st.Mode != 0 && effect.TypeOf(st.Mode) != tree.File {
		return
	}
	d := o.more
	switch {
	case !o.grown && st.Size > d.appended+d.written:
	case st.Nlink > 1 && !o.linksSet:
	case st.Mode != 0 && !o.modeSet && st.Mode&0o777 != d.asked&^usualUmask: // permissions that nobody asked for
	default:
		return
	}
	o.existed()
}

// provedBytes learns that a file has bytes up to end, which perhaps the trace put there.
func (o *object) provedBytes(end int64) {
	if o == nil || o.grown {
		return
	}
	if d := o.details(); end > d.appended+d.written {
		o.existed()
	}
}

// provedSize learns the size of a file from where its end is.
func (o *object) provedSize(size int64) {
	if o == nil || o.grown {
		return
	}
	if d := o.details(); d.perhaps != nil && size > d.appended+d.written {
		o.existed()
	}
	o.hadSize(size)
}
