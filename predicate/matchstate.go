// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/event/socket"
)

// matchState is what a filter needs of earlier events: who descends from whom, what a process
// runs, and which addresses a socket has.
type matchState struct {
	g        *Graph
	kin      map[process]uint64 // bits of the roots that a process descends from
	programs map[process]string
	told     map[process]bool // the program is not that of an execve, but as a recording says
	unknown  map[process]bool // asked for, and not known
	facts    facts.Tracker
	places   map[string]*place // by control group
	sockets  map[socketID]*[2]socketAddress
	paths    map[string]string // of local sockets, by the bytes after the family
	names    map[string][2]socketAddress
}

type process struct{ host, pid uint32 }

// place is where a process runs: the names that the fields from fieldCgroup to fieldUnit have.
type place struct {
	names [fieldUnit - fieldCgroup + 1][]string
}

type socketID struct {
	host uint32
	open event.OpenID
}

// socketAddress is one end of a socket.
type socketAddress struct {
	addr netip.Addr // invalid for a local socket
	port uint16
	path string // of a local socket; with a leading @ if it is abstract
}

// The ends of a socket in past.sockets.
const (
	localEnd = iota
	peerEnd
)

// maxAddresses is how many addresses of one event are looked at: two ends of two
// sockets, and two in its memory.
const maxAddresses = 6

func (p *matchState) init(g *Graph) {
	p.g = g
	if g.follows.kin {
		p.kin = map[process]uint64{}
	}
	if g.follows.programs {
		p.programs, p.told = map[process]string{}, map[process]bool{}
	}
	if g.follows.facts {
		p.places = map[string]*place{}
	}
	p.unknown = map[process]bool{}
	if g.follows.sockets {
		p.sockets, p.paths = map[socketID]*[2]socketAddress{}, map[string]string{}
		p.names = map[string][2]socketAddress{}
	}
}

func (p *matchState) see(ev *event.Event) {
	if p.kin != nil || p.programs != nil {
		p.processes(ev)
	}
	if p.places != nil {
		p.facts.See(ev)
	}
	if p.sockets != nil && ev.Kind == event.Call {
		p.ends(ev)
	}
}

func (p *matchState) processes(ev *event.Event) {
	switch {
	case ev.Kind == event.Forked && ev.Fork().PID != ev.PID:
		parent, child := process{ev.Host, ev.PID}, process{ev.Host, ev.Fork().PID}
		if p.kin != nil {
			p.kin[child] = p.own(child.pid) | p.kinOf(ev.Host, ev.PID, ev.PPID)
		}
		if p.programs != nil {
			delete(p.programs, child)
			delete(p.told, child)
			if exe, ok := p.programs[parent]; ok {
				p.programs[child] = exe
			}
			if p.told[parent] {
				p.told[child] = true
			}
		}
	case p.programs != nil && ev.Effect() == event.EffectExecute &&
		ev.OK():
		if len(ev.Paths) == 0 {
			return
		}
		name := ev.Paths[0].Abs
		if name == "" {
			name = ev.Paths[0].Raw
		}
		p.programs[process{ev.Host, ev.PID}] = name
		delete(p.told, process{ev.Host, ev.PID})
	case ev.Kind == event.Described && p.programs != nil:
		key := process{ev.Host, ev.PID}
		exe := facts.Of(ev).Exe                                  // "" where users or groups changed
		if exe != "" && (p.programs[key] == "" || p.told[key]) { // a recording without execve says so each time
			p.programs[key], p.told[key] = exe, true
		}
	}
}

// placeOf returns where the process of an event runs, nil if that is not known.
func (p *matchState) placeOf(ev *event.Event) *place {
	d := p.facts.Of(ev.Host, ev.PID)
	if d == nil || d.Cgroup == "" {
		if ev.PID != 0 {
			p.unknown[process{ev.Host, ev.PID}] = true
		}
		return nil
	}
	at := p.places[d.Cgroup]
	if at == nil {
		at = placeIn(d.Cgroup)
		if len(p.places) >= maxPaths {
			clear(p.places)
		}
		p.places[d.Cgroup] = at
	}
	return at
}

func placeIn(cgroup string) *place {
	at := &place{}
	put := func(f fieldID, name string) {
		if list := &at.names[f-fieldCgroup]; name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	put(fieldCgroup, cgroup)
	id := facts.Container(cgroup)
	put(fieldContainer, id)
	put(fieldContainer, facts.ShortContainer(id))
	put(fieldPod, facts.Pod(cgroup))
	for _, unit := range facts.Units(cgroup) {
		put(fieldUnit, unit)
		put(fieldUnit, strings.TrimSuffix(unit, path.Ext(unit)))
	}
	return at
}

// own returns the bit of a process that is a root.
func (p *matchState) own(pid uint32) (bits uint64) {
	for i, root := range p.g.roots {
		if root == pid {
			bits |= 1 << i
		}
	}
	return bits
}

// kinOf returns the roots that a process descends from. Of one that was not seen to be
// made, its parent tells.
func (p *matchState) kinOf(host, pid, ppid uint32) uint64 {
	key := process{host, pid}
	bits, ok := p.kin[key]
	if !ok {
		bits = p.own(pid) | p.own(ppid) | p.kin[process{host, ppid}]
		p.kin[key] = bits
	}
	return bits
}

// program returns what the process of an event runs, "" if that is not known.
func (p *matchState) program(ev *event.Event) string {
	key := process{ev.Host, ev.PID}
	exe := p.programs[key]
	if exe == "" && ev.PID != 0 {
		p.unknown[key] = true
	}
	return exe
}

// ends notes the addresses that a call gave a socket.
func (p *matchState) ends(ev *event.Event) {
	end, arg := peerEnd, 0
	switch ev.Effect() {
	case event.EffectBind:
		end = localEnd
	case event.EffectConnect:
	case event.EffectAccept:
		arg = event.ResultArg
	default:
		return
	}
	const inProgress = 115
	if !ev.OK() && ev.Errno != inProgress {
		return
	}
	f := ev.FileArg(arg)
	if f == nil || f.Open == 0 {
		return
	}
	id := socketID{ev.Host, f.Open}
	ends := p.sockets[id]
	if ends == nil {
		ends = new([2]socketAddress)
		p.sockets[id] = ends
	}
	if listener := ev.FileArg(0); arg == event.ResultArg && listener != nil {
		if l := p.sockets[socketID{ev.Host, listener.Open}]; l != nil {
			ends[localEnd] = l[localEnd]
		}
	}
	var list [maxAddresses]socketAddress
	if found := p.inMemory(ev, list[:0]); len(found) > 0 {
		ends[end] = found[0]
	}
}

// addresses appends the addresses of an event that a field asks for: those of its sockets, and
// those in its memory if either end is asked for.
func (p *matchState) addresses(f fieldID, ev *event.Event, list []socketAddress) []socketAddress {
	for i := range ev.Files {
		if len(list)+2 > maxAddresses-2 {
			break
		}
		ends := p.endsOf(ev.Host, &ev.Files[i])
		for end, a := range ends {
			wanted := f == fieldAddr || f == fieldPort ||
				(f == fieldLocal || f == fieldLocalPort) == (end == localEnd)
			if wanted && (a.addr.IsValid() || a.path != "") {
				list = append(list, a)
			}
		}
	}
	if f != fieldAddr && f != fieldPort {
		return list
	}
	return p.inMemory(ev, list)
}

// endsOf returns the ends of a file: as its name says, or else as the calls did that gave it
// addresses.
func (p *matchState) endsOf(host uint32, f *event.File) [2]socketAddress {
	ends := p.named(f.Path)
	if seen := p.sockets[socketID{host, f.Open}]; seen != nil && f.Open != 0 {
		for i := range ends {
			if !ends[i].addr.IsValid() && ends[i].path == "" {
				ends[i] = seen[i]
			}
		}
	}
	return ends
}

// named returns the ends that the name of a socket says.
func (p *matchState) named(name string) (ends [2]socketAddress) {
	if !strings.HasSuffix(name, "]") || name[0] == '/' {
		return ends
	}
	if known, ok := p.names[name]; ok {
		return known
	}
	if e, ok := socket.Parse(name); ok {
		for i, a := range [2]*socket.Address{localEnd: &e.Local, peerEnd: &e.Peer} {
			if a.IP.IsValid() {
				ends[i] = socketAddress{addr: a.IP.Unmap(), port: uint16(a.Port)}
			} else if a.Set {
				ends[i].path = a.Path
			}
		}
	}
	if len(p.names) >= maxPaths {
		clear(p.names)
	}
	p.names[strings.Clone(name)] = ends
	return ends
}

// inMemory appends the addresses in an event's memory.
func (p *matchState) inMemory(ev *event.Event, list []socketAddress) []socketAddress {
	if ev.Kind != event.Call {
		return list
	}
	args := ev.Spec().Args
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		part, arg := event.SplitPart(int(b.Arg))
		if arg >= len(args) || len(list) == maxAddresses {
			continue
		}
		if part == event.PartName || part == event.PartWhole && args[arg].Layout == event.LayoutSockaddr {
			if a, ok := p.decode(b.Inline); ok {
				list = append(list, a)
			}
		}
	}
	return list
}

// decode reads a struct sockaddr of a family that filters know (ip(7), ipv6(7), unix(7)).
func (p *matchState) decode(b []byte) (a socketAddress, ok bool) {
	const unix, inet, inet6 = 1, 2, 10
	if len(b) < 3 {
		return a, false
	}
	switch family := binary.LittleEndian.Uint16(b); {
	case family == inet && len(b) >= 8:
		a.addr = netip.AddrFrom4([4]byte(b[4:8]))
		a.port = binary.BigEndian.Uint16(b[2:])
	case family == inet6 && len(b) >= 24:
		a.addr = netip.AddrFrom16([16]byte(b[8:24])).Unmap()
		a.port = binary.BigEndian.Uint16(b[2:])
	case family == unix:
		a.path = p.path(b[2:])
	default:
		return a, false
	}
	return a, true
}

// maxPaths bounds the names of local sockets, and of open ones, that are kept.
const maxPaths = 1 << 16

// path returns the name of a local socket, of which it keeps each once.
func (p *matchState) path(b []byte) string {
	if name, ok := p.paths[string(b)]; ok {
		return name
	}
	name := b
	if i := bytes.IndexByte(b[1:], 0); i >= 0 && b[0] != 0 {
		name = b[:i+1]
	}
	text := string(name)
	if b[0] == 0 {
		text = "@" + text[1:]
	}
	if len(p.paths) >= maxPaths {
		clear(p.paths)
	}
	p.paths[string(b)] = text
	return text
}
