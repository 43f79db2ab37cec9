// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"encoding/binary"
	"strings"

	"github.com/iotape/iotape/event"
)

// AccessListAttr begins the names of the extended attributes that are access lists (acl(5)).
const AccessListAttr = "system.posix_acl_"

// OwnAccessList returns an access list without the entries that name users and groups other than one of each: the
// kernel refuses them where it knows no others. What the list says of the mode of its file stays. It is the same
// list if it has no such entries, or is none.
func OwnAccessList(list []byte, uid, gid uint32) []byte {
	const head, each, version, user, group = 4, 8, 2, 2, 8
	if len(list) < head || (len(list)-head)%each != 0 || binary.LittleEndian.Uint32(list) != version {
		return list
	}
	kept := append([]byte{}, list[:head]...)
	for at := head; at < len(list); at += each {
		e := list[at : at+each]
		tag, id := binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint32(e[4:])
		if tag == user && id != uid || tag == group && id != gid {
			continue
		}
		kept = append(kept, e...)
	}
	if len(kept) == len(list) {
		return list
	}
	return kept
}

// OwnAccessLists does this to what a call sets or gets. It reports whether it took something away from what
// the call sets.
func OwnAccessLists(ev *event.Event, uid, gid uint32) (set bool) {
	value, size := ev.Spec().Arg("value"), ev.Spec().Arg("size")
	if value < 0 || !ev.OK() || !strings.HasPrefix(ev.XattrName(), AccessListAttr) {
		return false
	}
	set = ev.Effect() == event.EffectSetXattr
	b := ev.BufArg(value)
	if b == nil || int64(len(b.Inline)) != b.Len {
		return false
	}
	kept := OwnAccessList(b.Inline, uid, gid)
	if len(kept) == len(b.Inline) {
		return false
	}
	b.Inline, b.Len = kept, int64(len(kept))
	if set {
		ev.Args[size] = uint64(len(kept))
	} else {
		ev.Ret = int64(len(kept))
	}
	return set
}

// AsksAccessList reports whether a call asks only how long an access list is.
func AsksAccessList(ev *event.Event) bool {
	return ev.Effect() == event.EffectGetXattr && ev.Spec().Arg("value") >= 0 && ev.Named("size") == 0 &&
		strings.HasPrefix(ev.XattrName(), AccessListAttr)
}
