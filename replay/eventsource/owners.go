// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/tree"
)

// IDs put other numbers in the place of those of users, or of groups.
type IDs []IDRange

// IDRange puts the numbers from New on in the place of Count numbers from Old on.
type IDRange struct{ Old, New, Count uint32 }

// ParseIDs reads OLD:NEW[:COUNT],…
func ParseIDs(s string) (IDs, error) {
	var ids IDs
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		fields := strings.Split(part, ":")
		numbers := [3]uint64{2: 1}
		if len(fields) < 2 || len(fields) > len(numbers) {
			return nil, fmt.Errorf("%q is not OLD:NEW or OLD:NEW:COUNT", part)
		}
		for i, f := range fields {
			n, err := strconv.ParseUint(f, 10, 32)
			if err != nil || n == math.MaxUint32 { // -1 stands for none
				return nil, fmt.Errorf("%q: %q is no number of a user or group", part, f)
			}
			numbers[i] = n
		}
		r := IDRange{uint32(numbers[0]), uint32(numbers[1]), uint32(numbers[2])}
		if r.Count == 0 || max(numbers[0], numbers[1])+numbers[2] > math.MaxUint32 {
			return nil, fmt.Errorf("%q: there are no %d numbers from there on", part, r.Count)
		}
		if slices.ContainsFunc(ids, func(o IDRange) bool { return o.Old < r.Old+r.Count && r.Old < o.Old+o.Count }) {
			return nil, fmt.Errorf("%q: a number in it has another one already", part)
		}
		ids = append(ids, r)
	}
	return ids, nil
}

// Map returns what a number becomes.
func (ids IDs) Map(id uint32) uint32 {
	for _, r := range ids {
		if id >= r.Old && id-r.Old < r.Count {
			return r.New + (id - r.Old)
		}
	}
	return id
}

// arg maps an argument, of which -1 stands for none.
func (ids IDs) arg(arg *uint64) { *arg = uint64(int64(int32(ids.Map(uint32(*arg))))) }

// Owners are the users and groups of a replay.
type Owners struct {
	Users, Groups IDs
	Only          *Only // nil: access lists can name everyone
}

// Only is the one user and group that access lists can name.
type Only struct{ UID, GID uint32 }

// event gives an event the users and groups of the replay: who makes the call, whose its files are,
// and what it asks for.
func (o *Owners) event(s *State, ev *event.Event, arch event.Arch) {
	s.Reduced = o.Only != nil && effect.OwnAccessLists(ev, o.Only.UID, o.Only.GID)
	if len(o.Users)+len(o.Groups) == 0 {
		return
	}
	ev.UID, ev.GID = o.Users.Map(ev.UID), o.Groups.Map(ev.GID)
	for i := range ev.Files {
		f := &ev.Files[i]
		f.UID, f.GID = o.Users.Map(f.UID), o.Groups.Map(f.GID)
	}
	if spec := ev.Spec(); ev.Effect() == event.EffectChown {
		o.Users.arg(&ev.Args[spec.Arg("owner")])
		o.Groups.arg(&ev.Args[spec.Arg("group")])
	}
	effect.MapOwner(ev, arch, o.Users.Map, o.Groups.Map)
}

// Tree gives the entries of a tree the users and groups of the replay.
func (o *Owners) Tree(m *tree.Manifest) {
	for i := range m.Entries {
		e := &m.Entries[i]
		if e.Path == "." {
			continue // the target's owner is its user's choice
		}
		e.UID, e.GID = o.Users.Map(e.UID), o.Groups.Map(e.GID)
		for name, value := range e.Xattrs {
			if o.Only != nil && strings.HasPrefix(name, effect.AccessListAttr) {
				e.Xattrs[name] = effect.OwnAccessList(value, o.Only.UID, o.Only.GID)
			}
		}
	}
}
