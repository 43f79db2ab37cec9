// SPDX-License-Identifier: Apache-2.0

package posix_test

import (
	"testing"

	"github.com/iotape/iotape/event"
)

// An overlay stores where its options say, however they were given.
func TestOverlays(t *testing.T) {
	mount := func(options string) *event.Event {
		ev := text(named(event.OpMount, -1, nil, "m"), "o")
		return withText(withText(ev, 2, "overlay"), 4, options)
	}
	config := func(command uint64, key, value string) *event.Event {
		ev := named(event.OpFsconfig, -1, []uint64{5, command})
		return withText(withText(ev, 2, key), 3, value)
	}
	attach := named(event.OpMoveMount, -1, []uint64{6, 0, ^uint64(99), 0, 4}, "", "m")
	withFD := config(5, "upperdir", "")
	withFD.Args[4] = 7
	for name, c := range map[string]struct {
		calls       []*event.Event
		upper, work string
		unsaid      bool
	}{
		"mount":      {[]*event.Event{mount("lowerdir=low,upperdir=up,workdir=/w")}, "/home/up", "/w", false},
		"read-only":  {[]*event.Event{mount("lowerdir=low:low2")}, "", "", false},
		"no options": {[]*event.Event{mount("")}, "", "", true},
		"fsconfig": {[]*event.Event{text(named(event.OpFsopen, 5, nil), "overlay"), config(1, "upperdir", "up"),
			config(1, "workdir", "w"), named(event.OpFsmount, 6, []uint64{5}), attach}, "/home/up", "/home/w", false},
		"by descriptor": {[]*event.Event{named(event.OpOpen, 7, nil, "d"), text(named(event.OpFsopen, 5, nil), "overlay"),
			withFD, named(event.OpFsmount, 6, []uint64{5}), attach}, "/home/d", "", false},
		"another type": {[]*event.Event{text(named(event.OpFsopen, 5, nil), "tmpfs"), config(1, "upperdir", "up"),
			named(event.OpFsmount, 6, []uint64{5}), attach}, "", "", false},
	} {
		s := start(t)
		for _, ev := range c.calls {
			s.apply(ev.Clone())
		}
		own := s.m.Host().Own()
		if len(own) != 1 || own[0].At != "/home/m" || own[0].Upper != c.upper || own[0].Work != c.work ||
			own[0].Unsaid != c.unsaid {
			t.Errorf("%s: want one at /home/m that stores in %q and %q (unsaid: %v), got %+v", name, c.upper, c.work,
				c.unsaid, own)
		}
		if got, want := len(s.m.Overlays()) > 0, c.upper != ""; got != want {
			t.Errorf("%s: want an overlay that stores: %v, got %v", name, want, got)
		}
	}
}

func withText(ev *event.Event, arg int8, s string) *event.Event {
	ev.Bufs = append(ev.Bufs, event.Buf{Arg: arg, Kind: event.KindText, Inline: []byte(s + "\x00")})
	return ev
}
