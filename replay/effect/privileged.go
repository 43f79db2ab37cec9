// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"maps"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/tree"
)

// CapabilityAttr is the extended attribute that gives a program capabilities.
const CapabilityAttr = "security.capability"

// SetID are the bits of a mode that let a program run as another user or group.
const SetID = syscall.S_ISUID | syscall.S_ISGID

// WithoutSetID returns a mode, with its type, without set-id bits. Those of a directory give nobody
// rights: they say which group new files get.
func WithoutSetID(mode uint32) uint32 {
	if event.FileType(mode) == event.TypeDir {
		return mode
	}
	return mode &^ SetID
}

// HandlesCapabilities reports whether a call reads, sets or removes a program's capabilities.
func HandlesCapabilities(ev *event.Event) bool {
	return ev.XattrName() == CapabilityAttr
}

// RootsAttribute reports whether only root sees, or sets, an extended attribute (xattr(7)).
func RootsAttribute(name string) bool {
	return strings.HasPrefix(name, "trusted.") || strings.HasPrefix(name, "security.")
}

// OverlaysAttribute reports whether overlayfs keeps an extended attribute in its upper directory; a replay mounts none.
func OverlaysAttribute(name string) bool {
	return strings.HasPrefix(name, "trusted.overlay.") || strings.HasPrefix(name, "user.overlay.")
}

// Below returns the directory that a name is, or is below; "" if it is below none of them.
func Below(dirs []string, name string) string {
	for _, dir := range dirs {
		if rest, ok := strings.CutPrefix(name, dir); ok && (rest == "" || rest[0] == '/') {
			return dir
		}
	}
	return ""
}

// HandlesRootsAttribute reports whether a call reads, sets or removes such an attribute.
func HandlesRootsAttribute(ev *event.Event) bool { return RootsAttribute(ev.XattrName()) }

// ChangesOwner reports whether a call gives a file to another user or group than those of this process.
func ChangesOwner(ev *event.Event, uid, gid uint32) bool {
	if ev.Effect() != event.EffectChown {
		return false
	}
	const same = ^uint32(0)
	user, group := uint32(ev.Named("owner")), uint32(ev.Named("group"))
	return user != same && user != uid || group != same && group != gid
}

// SetsCapabilities reports whether a call gives a program capabilities.
func SetsCapabilities(ev *event.Event) bool {
	return ev.Effect() == event.EffectSetXattr && ev.OK() && HandlesCapabilities(ev)
}

// IsDevice reports whether a mode, with its type, is that of a device node.
func IsDevice(mode uint32) bool {
	return event.FileType(mode) == event.TypeChar || event.FileType(mode) == event.TypeBlock
}

// IsFileOrDirectory reports whether a mode, with its type, is that of a regular file or a directory.
func IsFileOrDirectory(mode uint32) bool {
	return event.FileType(mode) == event.TypeRegular || event.FileType(mode) == event.TypeDir
}

// LeaveOff takes from an entry what gives rights, and reports what it took.
func LeaveOff(e *tree.Entry) (setID, capabilities, device bool) {
	if e.Type != tree.Dir && e.Mode&SetID != 0 {
		e.Mode &^= SetID
		setID = true
	}
	if _, capabilities = e.Xattrs[CapabilityAttr]; capabilities {
		e.Xattrs = maps.Clone(e.Xattrs)
		delete(e.Xattrs, CapabilityAttr)
	}
	device = e.Rdev != 0
	e.Rdev = 0
	return setID, capabilities, device
}
