package causal

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"iotape/event"
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

// passed returns the rounds of what are barriers, and how much each thread that slept in
// one computed before it arrived is from then on before its wake-up: an event of that
// thread which others can wait for.
func (a *annotator) passed() (rounds []round) {
	slept := map[int][]woken{}
	for _, w := range a.wakes {
		if w.by.giver >= 0 {
			slept[w.by.giver] = append(slept[w.by.giver], w)
		}
	}
	words := map[word][]round{}
	var order []word
	for _, b := range a.broadcasts {
		if len(slept[b.event]) == 0 {
			continue
		}
		r := round{last: b.event, slept: slept[b.event]}
		r.members = a.members(r)
		if words[b.word] == nil {
			order = append(order, b.word)
		}
		words[b.word] = append(words[b.word], r)
	}
	for _, on := range order {
		rounds = append(rounds, a.barrier(words[on])...)
	}
	for _, r := range rounds {
		for _, w := range r.slept {
			a.compute[w.by.event] += a.compute[w.event]
			a.compute[w.event] = 0
		}
	}
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

// arrivals adds to what threads wait for that all have arrived at a barrier, sorted by the
// events that wait.
func (a *annotator) arrivals(waits []waitFor, rounds []round) []waitFor {
	n := len(waits)
	wait := func(to, from int) {
		if from < to && a.b.line[from] != a.b.line[to] {
			waits = append(waits, waitFor{to: uint32(to), from: uint32(from)})
		}
	}
	for _, r := range rounds {
		for _, w := range r.slept {
			wait(r.last, w.by.event)
			if w.event > r.last {
				continue // it waits for the last one's call, and by that for all
			}
			for _, o := range r.slept {
				wait(w.event, o.by.event)
			}
		}
	}
	a.sum.Found[Barrier] += uint64(len(waits) - n)
	slices.SortStableFunc(waits, func(a, b waitFor) int { return cmp.Compare(a.to, b.to) })
	return waits
}
