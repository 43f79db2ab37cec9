// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/iotape/iotape/event"
)

// A barrier is passed when all have arrived. Those that arrive before the last one sleep,
// and it wakes them all: that shows. That it came only because they had arrived does not,
// for it read so in memory (glibc's pthread_barrier_wait and OpenMP's barriers do). In a
// replay somebody else may be the last, and would be let through alone.
//
// So a word that threads sleep on is taken for a barrier's if, of the times that all
// sleepers on it were woken with one call,
//
//   - there were minRounds or more, and nearly all had the same threads, of which one woke
//     and all others slept;
//   - not always the same one woke: who hands out work does;
//   - and once or more the same one woke twice in a row: who passes a turn on does not.

const (
	minRounds  = 4
	otherShare = 8 // one round in so many may have other threads
)

// word is what threads sleep on (futex(2)): its address, and in which process that is if
// others cannot use it.
type word struct {
	host, pid uint32
	address   uint64
}

// broadcast is a call that woke all who slept on a word.
type broadcast struct {
	event int
	word  word
}

// broadcasts reports whether a call woke all who slept on a word, and which.
func broadcasts(ev *event.Event) (on word, all bool) {
	const wake, wakeBitset, command, private = 1, 10, 0x7f, 0x80
	op := ev.Args[1] & command
	if ev.Op != event.OpFutex || ev.Ret < 1 || op != wake && op != wakeBitset || int32(ev.Args[2]) != math.MaxInt32 {
		return word{}, false
	}
	on = word{host: ev.Host, address: ev.Args[0]}
	if ev.Args[1]&private != 0 {
		on.pid = ev.PID
	}
	return on, true
}

// round is one time that a barrier was passed, as far as a trace shows it.
type round struct {
	last    int // the event of the thread that arrived last, and woke the others
	slept   []woken
	members string // the lines of all
}

// arrivals returns what threads wait for at barriers: that all have arrived. What each that
// slept computed before it arrived is from then on before its wake-up, which is an event of
// it that others can wait for.
func (a *annotator) arrivals() (waits []waitFor) {
	for _, r := range a.passed() {
		for _, w := range r.slept {
			a.compute[w.by.event] += a.compute[w.event]
			a.compute[w.event] = 0
			waits = a.arrived(waits, r.last, w)
			if w.event > r.last {
				continue // it waits for the last one's call, and by that for all
			}
			for _, o := range r.slept[max(0, len(r.slept)-maxKnown):] { // all by all would be too many
				waits = a.arrived(waits, w.event, o)
			}
		}
	}
	a.sum.Found[Barrier] += uint64(len(waits))
	return waits
}

// arrived adds that an event waits for another thread to have arrived, if it was seen to
// before.
func (a *annotator) arrived(waits []waitFor, to int, w woken) []waitFor {
	if from := w.by.event; from < to && a.b.line[from] != a.b.line[to] {
		waits = append(waits, waitFor{to: uint32(to), from: uint32(from)})
	}
	return waits
}

// passed returns the rounds of what are barriers, in the order of the calls that end them.
func (a *annotator) passed() (rounds []round) {
	slept := map[int][]woken{}
	for _, w := range a.wakes {
		// Not what another passed on: that is a wake-up of the other's.
		if w.by.giver >= 0 && a.b.line[w.by.event] == a.b.line[w.event] {
			slept[w.by.giver] = append(slept[w.by.giver], w)
		}
	}
	words := map[word][]round{}
	for _, b := range a.broadcasts {
		if r := (round{last: b.event, slept: slept[b.event]}); len(r.slept) > 0 {
			r.members = a.members(r)
			words[b.word] = append(words[b.word], r)
		}
	}
	for _, list := range words {
		rounds = append(rounds, a.barrier(list)...)
	}
	slices.SortFunc(rounds, func(a, b round) int { return a.last - b.last })
	return rounds
}

// members names the threads of a round.
func (a *annotator) members(r round) string {
	lines := []uint32{a.b.line[r.last]}
	for _, w := range r.slept {
		lines = append(lines, a.b.line[w.event])
	}
	slices.Sort(lines)
	var b []byte
	for _, l := range slices.Compact(lines) {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	return string(b)
}

// barrier returns the rounds of a word that are of a barrier: those with the threads that
// nearly all have, or none.
func (a *annotator) barrier(rounds []round) []round {
	count := map[string]int{}
	usual := ""
	for _, r := range rounds {
		if count[r.members]++; count[r.members] > count[usual] {
			usual = r.members
		}
	}
	of := len(rounds)
	rounds = slices.DeleteFunc(rounds, func(r round) bool { return r.members != usual })
	if len(rounds) < minRounds || of-len(rounds) > of/otherShare {
		return nil
	}
	changed, again := false, false
	for i := 1; i < len(rounds); i++ {
		same := a.b.line[rounds[i].last] == a.b.line[rounds[i-1].last]
		changed, again = changed || !same, again || same
	}
	if !changed || !again {
		return nil
	}
	return rounds
}
