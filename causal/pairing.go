// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	maxBacklog = 256 // connections to one address that are looked through
	leadBytes  = 128 // of a stream's beginning, that are compared
	leadMoves  = 8   // calls that these are read of
	minEqual   = 8   // bytes that have to be the same where nothing but the bytes pairs two sides
)

// Content tells the Builder how to read what a call moved: at most n bytes of its beginning, nil
// if they are not there. It is asked for the beginnings of streams that addresses do not pair.
func (b *Builder) Content(f func(event uint32, n int) []byte) { b.content = f }

// fit says how well two sides of a connection fit, the least first.
type fit uint8

const (
	fitsNot     fit = iota
	fitsOrder       // nothing contradicts it
	fitsContent     // the bytes are the same, though the addresses are not: they were changed on the way
	fitsHost        // the peer is an address of the host
	fitsAddress     // the peer is the address
)

// pairSockets joins the two sides of connections. What it finds depends on neither the order of the
// tapes nor on differences of their clocks.
func (b *Builder) pairSockets() {
	defer func() { b.sockets = newSockets() }()
	b.pairPackets()
	b.leftOver()
	connects, accepts := b.sockets.connects, b.sockets.accepts
	slices.SortStableFunc(connects, byTime)
	slices.SortStableFunc(accepts, byTime)
	at := map[address][]int{} // accepts by what is surely the same: the port, or the path
	for i := range accepts {
		k := accepts[i].at
		if p, ok := k.port(); ok {
			k = p
		}
		if k.name != "" {
			at[k] = append(at[k], i)
		}
		if accepts[i].at.host == 0 {
			at[anywhere] = append(at[anywhere], i)
		}
	}
	p := pairing{b: b, taken: make([]bool, len(accepts)), leads: map[*stream][]byte{},
		totals: map[*stream]int64{}}
	joined := make([]bool, len(connects))
	doubtful := make([]int, len(connects)) // 1 + the accept that the bytes contradict
	for _, least := range [...]fit{fitsAddress, fitsHost, fitsContent, fitsOrder} {
		for i := range connects {
			c := &connects[i]
			k := c.at
			if port, ok := k.port(); ok {
				k = port
			}
			if least == fitsContent { // the port may be another one, too
				k = anywhere
			}
			if joined[i] {
				continue
			}
			n, contradicted := p.best(c, accepts, at[k], least)
			if contradicted >= 0 {
				doubtful[i] = contradicted + 1
			}
			if n >= 0 {
				p.taken[n], joined[i] = true, true
				b.join(c, &accepts[n])
			}
			at[k] = p.rest(at[k])
		}
	}
	for i, n := range doubtful {
		if n > 0 && !joined[i] {
			if b.faults.Doubtful == nil {
				b.faults.Doubtful = map[uint32]int{}
			}
			b.faults.Doubtful[accepts[n-1].sock.host] += 2
		}
	}
}

// anywhere stands for the addresses of all that listen for other hosts.
var anywhere = address{name: "*"}

// byTime orders attempts by their host's clock. Of different hosts it decides nothing: what fits is
// looked for among all.
func byTime(x, y attempt) int {
	return cmp.Or(cmp.Compare(x.enter, y.enter), cmp.Compare(x.exit, y.exit))
}

// leftOver makes attempts of connections whose ends are known and of which one side was not found:
// their addresses may have been changed on the way.
func (b *Builder) leftOver() {
	for _, list := range b.byName {
		for _, c := range list {
			if (c.asked > 0) == (c.taken > 0) || c.side == (openFile{}) || len(c.there.writes)+len(c.back.reads) > 0 &&
				len(c.there.reads)+len(c.back.writes) > 0 {
				continue
			}
			a := attempt{event: uint32(max(c.asked, c.taken) - 1), enter: c.enter, exit: c.exit, sock: c.side}
			if c.asked > 0 {
				a.own, a.at = c.local, c.peer
				b.sockets.connects = append(b.sockets.connects, a)
			} else {
				a.at, a.peer = c.local, c.peer
				b.sockets.accepts = append(b.sockets.accepts, a)
			}
		}
	}
}

// pairing is the state of the search.
type pairing struct {
	b     *Builder
	taken []bool // accepts
	// Of streams of which one side is known, by that.
	leads  map[*stream][]byte
	totals map[*stream]int64
}

// rest drops accepts at the front that are taken.
func (p *pairing) rest(queue []int) []int {
	for len(queue) > 0 && p.taken[queue[0]] {
		queue = queue[1:]
	}
	return queue
}

// best returns which accept took a connection, -1 if none fits at least so well; and one that would
// but for the bytes, -1 if there is none.
func (p *pairing) best(c *attempt, accepts []attempt, queue []int, least fit) (found, contradicted int) {
	found, contradicted = -1, -1
	looked, same := 0, -1
	for _, n := range queue {
		if p.taken[n] {
			continue
		}
		if looked++; looked > maxBacklog {
			break
		}
		a := &accepts[n]
		f := p.addresses(c, a)
		if f == fitsNot || f != fitsContent && f < least {
			continue
		}
		said := p.compare(c, a)
		if said.contradict {
			if f != fitsContent && contradicted < 0 {
				contradicted = n
			}
			continue
		}
		if f == fitsContent && (said.equal < minEqual || said.partly || least > fitsContent) {
			continue
		}
		if said.equal > same {
			found, same = n, said.equal
		}
	}
	return found, contradicted
}

// addresses says how well two sides fit by their addresses; fitsContent, if only the bytes can tell.
func (p *pairing) addresses(c, a *attempt) fit {
	b := p.b
	if b.machine(a.sock.host) == b.machine(c.sock.host) && a.exit < c.enter {
		return fitsNot // by one clock: it was another's
	}
	own := c.own
	if s := b.sockets.known[c.sock]; own.name == "" && s != nil && !s.local.unspecified() {
		own = s.local
	}
	there := a.at == c.at // the server is the one that was asked
	if a.at.unspecified() {
		switch b.has(a.sock.host, c.at) {
		case no:
			return p.changed(c, a)
		case unknown:
			if c.at.host != 0 && b.machine(a.sock.host)+1 != c.at.host {
				return fitsNot
			}
		}
		there = true
	}
	if !there {
		return p.changed(c, a)
	}
	if own.ip() != "" && a.peer.ip() != "" {
		if own == a.peer {
			return fitsAddress
		}
		return p.changed(c, a)
	}
	switch b.has(c.sock.host, a.peer) {
	case yes:
		return fitsHost
	case no:
		return p.changed(c, a)
	}
	return fitsOrder
}

// changed says whether addresses may have been changed on the way: not if the peer of the one is
// an address of a host that is in the trace, and not the other's.
func (p *pairing) changed(c, a *attempt) fit {
	if c.at.host != 0 || a.peer.host != 0 || a.at.ip() == "" && !a.at.unspecified() {
		return fitsNot
	}
	if p.elsewhere(a.sock.host, c.at) || p.elsewhere(c.sock.host, a.peer) {
		return fitsNot
	}
	return fitsContent
}

// elsewhere reports whether an address is that of another host of the trace than this one.
func (p *pairing) elsewhere(host uint32, a address) bool {
	ip := a.ip()
	if ip == "" {
		return false
	}
	host = p.b.machine(host)
	if o := p.b.owned[host]; o != nil && o.ips[ip] {
		return false
	}
	for other, o := range p.b.owned {
		if other != host && o.ips[ip] {
			return true
		}
	}
	return false
}

// agreement is what the bytes of two sides say.
type agreement struct {
	contradict bool
	partly     bool // not all that was written was read
	equal      int  // bytes that are the same at the beginnings
}

// compare looks at what two sides wrote and read.
func (p *pairing) compare(c, a *attempt) (e agreement) {
	for _, write := range []bool{true, false} {
		w, r := p.b.streams[end{c.sock.host, c.sock.open, write}], p.b.streams[end{a.sock.host, a.sock.open, !write}]
		if !write {
			w, r = r, w
		}
		if w == nil || r == nil || w.broken || r.broken {
			continue
		}
		sent, got := p.total(w, w.writes), p.total(r, r.reads)
		if got > sent {
			return agreement{contradict: true}
		}
		x, y := p.lead(w, w.writes), p.lead(r, r.reads)
		n := min(len(x), len(y))
		same := 0
		for i := range n {
			if x[i] == y[i] {
				same++
			}
		}
		if 2*same < n {
			return agreement{contradict: true}
		}
		e.equal += same
		e.partly = e.partly || got != sent
	}
	return e
}

// total returns how much went into a stream, or came out of it: of those that are not joined, only
// one is known.
func (p *pairing) total(s *stream, list []move) int64 {
	if n, ok := p.totals[s]; ok {
		return n
	}
	n := int64(0)
	for i := range list {
		n += list[i].n
	}
	p.totals[s] = n
	return n
}

// lead returns the first bytes that went into a stream, or came out of it, as far as they are known.
func (p *pairing) lead(s *stream, list []move) []byte {
	if p.b.content == nil || len(list) == 0 {
		return nil
	}
	if b, ok := p.leads[s]; ok {
		return b
	}
	var lead []byte
	for i := range list[:min(len(list), leadMoves)] {
		got := p.b.content(list[i].event, leadBytes-len(lead))
		lead = append(lead, got...)
		if len(lead) >= leadBytes || int64(len(got)) < list[i].n {
			break // what comes next does not follow it
		}
	}
	p.leads[s] = bytes.Clone(lead)
	return lead
}

// join makes one connection of two sides.
func (b *Builder) join(c, a *attempt) {
	b.edge(int(a.event), int(c.event), Connect)
	for _, write := range []bool{false, true} {
		from, to := b.streams[end{c.sock.host, c.sock.open, write}], b.streams[end{a.sock.host, a.sock.open, !write}]
		if from == nil || to == nil || from == to {
			continue
		}
		if !write {
			from, to = to, from
		}
		if len(from.reads) > 0 || len(to.writes) > 0 || from.broken || to.broken {
			continue // joined before, by their names
		}
		from.reads, from.to = to.reads, to.to
		to.reads = nil
	}
}
