// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of the comparison of answers.
const (
	leastServers = 3       // that answered the same request: of two, nobody is right
	mostRequests = 1 << 16 // of a process that are compared
	mostReads    = 64      // of an answer
)

// exchange is what a process sent to a connection since it received something there, and got.
type exchange struct {
	server  string // address
	request []byte // classes
	reads   []uint32
}

// likeAnswers is the requests that a process sent to several servers, and the last answer of each.
type likeAnswers struct {
	w     *finder
	keys  []string // requests, in order
	byKey map[string]map[string][]uint32
}

// answers finds servers that answered a request otherwise than others did to which the process sent
// the same. It needs no bytes: hashes and signatures tell what is not the same. What bytes show is found
// where it was changed.
func (w *finder) answers() {
	f := w.f
	shown := map[int]bool{} // moves of what was found
	for i := range f.found {
		if f.found[i].Problem.Wrong() {
			for _, k := range f.found[i].Moves {
				shown[k] = true
			}
		}
	}
	asking := map[uint32]bool{}
	for k := range w.versions.asks {
		asking[k.process] = true
	}
	if f.byProcess.first == nil {
		f.byProcess = group(len(f.procs), len(f.moves), func(i int) uint32 { return f.processOf(uint32(i)) })
	}
	for _, p := range slices.Sorted(maps.Keys(asking)) {
		w.collect(p).judge(shown)
	}
}

// collect takes the requests of a process, and their answers.
func (w *finder) collect(p uint32) *likeAnswers {
	f, v := w.f, &w.versions
	x := &likeAnswers{w: w, byKey: map[string]map[string][]uint32{}}
	open := map[uint32]*exchange{} // by the stream of answers
	for _, k := range f.byProcess.of(p) {
		m := &f.moves[k]
		o := &f.objects[m.object]
		if o.Kind != Stream || m.class == 0 {
			continue
		}
		if !m.write() {
			if e := open[m.object]; e != nil && len(e.reads) <= mostReads {
				e.reads = append(e.reads, k)
			}
			continue
		}
		back, ok := v.reply(f, m.object)
		if !ok || !v.asks[onObject{p, m.object}] {
			continue
		}
		e := open[back]
		if e == nil || len(e.reads) > 0 {
			x.add(e)
			_, server, _ := strings.Cut(o.Name, "->")
			e = &exchange{server: server}
			open[back] = e
		}
		e.request = binary.AppendUvarint(e.request, uint64(m.class))
	}
	for _, back := range slices.Sorted(maps.Keys(open)) {
		x.add(open[back])
	}
	return x
}

// add keeps an answer.
func (x *likeAnswers) add(e *exchange) {
	if e == nil || len(e.reads) == 0 || len(e.reads) > mostReads {
		return
	}
	key := string(e.request)
	if x.byKey[key] == nil {
		if len(x.keys) == mostRequests {
			return
		}
		x.keys = append(x.keys, key)
		x.byKey[key] = map[string][]uint32{}
	}
	x.byKey[key][e.server] = e.reads
}

// unlike is a server's answer to a request of which the others are alike.
type unlike struct {
	server string
	odd    uint32 // the move that differs
	other  uint32 // one of the others
	count  int    // of the others
}

// judge reports what few servers answered otherwise, if they answered most requests as the others did.
func (x *likeAnswers) judge(shown map[int]bool) {
	alike := map[string]int{} // of each server: requests that it answered as the others did
	var list []unlike
	others := map[string]int{} // and those that it did not
	for _, key := range x.keys {
		answers := x.byKey[key]
		if len(answers) < leastServers {
			continue
		}
		u, all := x.compare(answers)
		switch {
		case all:
			for s := range answers {
				alike[s]++
			}
		case u.server != "":
			others[u.server]++
			if u.odd != 0 {
				list = append(list, u)
			}
		}
	}
	for i := range list {
		u := &list[i]
		n := alike[u.server]
		if n < leastPassed || others[u.server] > max(1, n/(rareMissing/2)) || x.known(u.odd, shown) {
			continue
		}
		x.report(u)
	}
}

// compare finds the one answer that is not like all others; all is set if there is none.
func (x *likeAnswers) compare(answers map[string][]uint32) (u unlike, all bool) {
	f := x.w.f
	class := func(k uint32) uint32 { return f.moves[k].class }
	same := func(a, b []uint32) bool {
		return slices.EqualFunc(a, b, func(i, k uint32) bool { return class(i) == class(k) })
	}
	servers := slices.Sorted(maps.Keys(answers))
	usual := answers[servers[0]]
	if !same(usual, answers[servers[1]]) && !same(usual, answers[servers[2]]) {
		usual = answers[servers[1]]
	}
	n := 0
	for _, s := range servers {
		if same(usual, answers[s]) {
			n++
			continue
		}
		u.server = s
	}
	if n == len(servers) {
		return u, true
	}
	if n != len(servers)-1 {
		return unlike{}, false
	}
	u.count = n
	odd := answers[u.server]
	if len(odd) != len(usual) {
		return u, false
	}
	for i, k := range odd {
		a, b := &f.moves[k], &f.moves[usual[i]]
		if a.bytes() != b.bytes() {
			u.odd = 0
			break
		}
		if a.class != b.class && a.bytes() >= smallest && u.odd == 0 {
			u.odd, u.other = k, usual[i]
		}
	}
	return u, false
}

// known reports whether the content of an answer has been somewhere else than in its connection, so that
// it is another version, or whether something that was found explains it.
func (x *likeAnswers) known(odd uint32, shown map[int]bool) bool {
	f := x.w.f
	m := &f.moves[odd]
	if shown[int(odd)] || slices.ContainsFunc(f.byClass.of(m.class), func(k uint32) bool {
		return f.moves[k].object != m.object
	}) {
		return true
	}
	return slices.ContainsFunc(f.transported(int(odd)), func(e Edge) bool { return shown[e.From] })
}

// report adds a finding.
func (x *likeAnswers) report(u *unlike) {
	f := x.w.f
	m := &f.moves[u.odd]
	moves := []int{int(u.other), int(u.odd)}
	who := u.server
	if sent := f.transported(int(u.odd)); len(sent) > 0 {
		moves = []int{int(u.other), sent[0].From, int(u.odd)}
		who = f.who(sent[0].From)
	}
	f.add(Finding{Problem: Differing, Moves: moves, Bytes: m.bytes(), Confidence: Medium,
		Text: fmt.Sprintf("%s answered a request of %s (%s) with %d bytes unlike those with which %d others "+
			"answered the same request, though most of its answers are like theirs", who, f.who(int(u.odd)),
			f.name(&f.objects[m.object]), m.bytes(), u.count),
		Decide: "whether what was asked for was stored anew between the requests, by somebody who is in no tape"})
}
