// SPDX-License-Identifier: Apache-2.0

package effect

import "github.com/iotape/iotape/event"

// ChangesNames reports whether a call that succeeded made, removed or changed what one of its names
// leads to.
func ChangesNames(ev *event.Event) bool {
	for i := range ev.Paths {
		if ev.Paths[i].Raw == "" && ev.Paths[i].Abs == "" {
			continue // the call is about its descriptor
		}
		switch use, _ := ev.NameUse(i); use {
		case event.NameCreate, event.NameRemove, event.NameFrom, event.NameTo, event.NameLink, event.NameAttribute,
			event.NameResize:
			return true
		case event.NameOpen:
			const makes, tmpfile = event.OpenCreat | event.OpenTrunc, event.OpenTmpfile
			if flags := OpenFlags(ev); flags&tmpfile != tmpfile && flags&makes != 0 {
				return true
			}
		}
	}
	return false
}

// ChangedFile returns the descriptor by which a call that succeeded changed a file, nil if it did not.
func ChangedFile(ev *event.Event) *event.File {
	switch io := ev.Traffic(); {
	case io.Writes && io.Written > 0:
		return io.To
	case io.Writes || io.Reads:
		return nil
	}
	switch ev.Effect() {
	case event.EffectTruncate, event.EffectAllocate, event.EffectChmod, event.EffectChown, event.EffectSetXattr,
		event.EffectRemoveXattr:
		if len(ev.Paths) == 0 || ev.Paths[0].Raw == "" { // AT_EMPTY_PATH
			return ev.FileArg(0)
		}
	case event.EffectIoctl:
		if changesByIoctl(ev.Args[1]) {
			return ev.FileArg(0)
		}
	}
	return nil
}

// changesByIoctl reports whether a command of ioctl may change files: those of file systems that are
// not known to do something else. Flags of files (FS_IOC_SETFLAGS) are no content; a replay
// cannot have immutable files.
func changesByIoctl(command uint64) bool {
	const written = 1 // the program passes something, or nothing and nothing comes back
	switch kind, dir := command>>8&0xff, command>>30&3; {
	case kind != 'f' && kind != 'X' && kind != 0x94 && kind != 0xf5, dir != 0 && dir&written == 0:
		return false
	}
	switch uint32(command) {
	case 0xc020660b, // FS_IOC_FIEMAP
		0xc0185879, 0xc0045877, 0xc0045878, // FITRIM, FIFREEZE, FITHAW
		0x40086602, 0x40046602, 0x401c5820, // FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR
		0xc0189436,                         // FIDEDUPERANGE: what is equal
		0x40047602, 0x40087602, 0x40046604: // FS_IOC_SETVERSION
		return false
	}
	return true
}
