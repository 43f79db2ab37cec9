// SPDX-License-Identifier: Apache-2.0

package posix

import (
	"strings"

	"github.com/iotape/iotape/event"
)

// overlayType is the name of overlayfs.
const overlayType = "overlay"

// maxOverlays bounds the overlays that are remembered.
const maxOverlays = 1 << 10

// fileSystem returns what the options of a mount say, as mount(2) passes them; "" if they are not known.
func (m *Model) fileSystem(t *Thread, fstype, options string) Mount {
	mt := Mount{Type: fstype}
	mt.Unsaid = fstype == overlayType && options == ""
	for options != "" {
		var option string
		option, options, _ = strings.Cut(options, ",")
		if key, value, ok := strings.Cut(option, "="); ok {
			m.option(t, &mt, key, value)
		}
	}
	return mt
}

// option takes an option of a mount.
func (m *Model) option(t *Thread, mt *Mount, key, value string) {
	if mt.Type != overlayType || key != "upperdir" && key != "workdir" {
		return
	}
	n, _ := m.lookup(t, t.FS.cwd(), value, true)
	switch {
	case n.Real == "":
		mt.Unsaid = true
	case key == "upperdir":
		mt.Upper = n.Real
	default:
		mt.Work = n.Real
	}
}

// openedFileSystem notes which file system a descriptor stands for: one that is being configured (fsopen(2)), or is
// mounted without a name (fsmount(2)).
func (m *Model) openedFileSystem(t *Thread, ev *event.Event, o *OpenFile) {
	switch ev.Op.Like() {
	case event.OpFsopen:
		o.fs = &Mount{Type: textArg(ev, 0)}
	case event.OpFsmount:
		if d := t.Table.Lookup(int32(ev.Args[0])); d != nil {
			o.fs = d.Open.fs
		}
	}
}

// configured takes an option of a file system that is being configured (fsconfig(2)).
func (m *Model) configured(t *Thread, ev *event.Event) {
	const setString, setPath, setPathEmpty, setFD = 1, 3, 4, 5
	d := t.Table.Lookup(int32(ev.Args[0]))
	if !ev.OK() || d == nil || d.Open.fs == nil {
		return
	}
	switch ev.Args[1] {
	case setString, setPath:
		m.option(t, d.Open.fs, textArg(ev, 2), textArg(ev, 3))
	case setPathEmpty, setFD:
		if dir := t.Table.Lookup(int32(ev.Args[4])); dir != nil {
			m.option(t, d.Open.fs, textArg(ev, 2), dir.Open.Now.Real)
		}
	}
}

// overlay remembers an overlay that stores what is written to it.
func (m *Model) overlay(mt Mount) {
	if (mt.Upper != "" || mt.Work != "") && len(m.stores) < maxOverlays {
		m.stores = append(m.stores, mt)
	}
}

// Overlays returns the overlays that stored what was written to them, in the order in which they were mounted. The
// caller must not change them.
func (m *Model) Overlays() []Mount { return m.stores }
