// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/iotape/iotape/format/timeline"
	"github.com/iotape/iotape/trace"
)

// writer writes a trace. It is a timeline.Sink.
type writer struct {
	out   io.Writer
	clock uint64 // that times are of
	lost  bool   // a mark of the whole host was written: its track is there
	base  uint64 // of the numbers of tracks and arrows: those of hosts differ
	in    interned

	packet, msg, part, announce []byte // being built
}

// Tracks have the numbers of the timeline, counters follow from their process's.
const (
	hostShift     = 44
	hostTrack     = 1 << 61
	firstCounters = 1 << 62
	sequence      = 1
)

// start writes what a trace begins with.
func (w *writer) start(h *trace.Host, first int64, machine string) error {
	w.clock = clockMonotonic
	if h.ClockNS == h.WallNS {
		w.clock = clockRealtime
	}
	w.begin(0)
	w.packet = integer(w.packet, packetFirst, 1)
	snap := w.msg[:0]
	for _, c := range []struct {
		id uint64
		ns int64
	}{{clockMonotonic, h.ClockNS}, {clockRealtime, h.WallNS}} {
		if w.clock == clockRealtime {
			if c.id == clockMonotonic {
				continue
			}
			c.ns = first // any time will do where there is but one clock
		}
		w.part = integer(integer(w.part[:0], clockID, c.id), clockTimestamp, uint64(c.ns))
		snap = message(snap, snapshotClocks, w.part)
	}
	w.msg = integer(snap, snapshotPrimary, w.clock)
	w.packet = message(w.packet, packetClockSnapshot, w.msg)
	if err := w.end(); err != nil {
		return err
	}

	w.begin(0)
	w.part = text(text(w.part[:0], utsnameRelease, strings.TrimSpace(h.Kernel)), utsnameMachine, h.Arch)
	w.msg = message(w.msg[:0], systemUtsname, w.part)
	w.msg = text(w.msg, systemTracer, h.Program)
	w.msg = text(w.msg, systemMachine, machine)
	w.packet = message(w.packet, packetSystemInfo, w.msg)
	if err := w.end(); err != nil {
		return err
	}
	return w.clear()
}

// clear makes readers forget the interned strings, and says again what holds for all
// packets.
func (w *writer) clear() error {
	w.in.clear()
	w.begin(stateCleared | needsState)
	w.msg = integer(w.msg[:0], defaultsClock, w.clock)
	w.packet = message(w.packet, packetDefaults, w.msg)
	return w.end()
}

// begin starts a packet.
func (w *writer) begin(flags uint64) {
	w.packet = integer(w.packet[:0], packetSequenceID, sequence)
	if flags != 0 {
		w.packet = integer(w.packet, packetSequenceFlags, flags)
	}
}

// end writes the packet.
func (w *writer) end() error {
	w.part = message(w.part[:0], tracePacket, w.packet)
	_, err := w.out.Write(w.part)
	return err
}

// Process implements timeline.Sink.
func (w *writer) Process(p *timeline.Process) error {
	d := integer(w.part[:0], processPID, uint64(p.PID))
	for _, a := range p.Argv {
		d = message(d, processArgv, utf8(a))
	}
	d = text(d, processName, p.Name)
	d = integer(d, processStart, uint64(max(p.Start, 0)))
	w.part = d
	if err := w.descriptor(p.ID, 0, "", trackProcess, d); err != nil {
		return err
	}

	w.begin(needsState)
	w.packet = integer(w.packet, packetTimestamp, uint64(max(p.Start, 0)))
	d = integer(w.part[:0], treePID, uint64(p.PID))
	d = integer(d, treePPID, uint64(p.PPID))
	for _, a := range p.Argv {
		d = message(d, treeCmdline, utf8(a))
	}
	if len(p.Argv) == 0 {
		d = integer(message(d, treeCmdline, utf8(p.Name)), treeNameIsComm, 1)
	}
	w.part = integer(d, treeUID, uint64(p.UID))
	w.msg = message(w.msg[:0], treeProcesses, w.part)
	w.packet = message(w.packet, packetProcessTree, w.msg)
	return w.end()
}

// Track implements timeline.Sink.
func (w *writer) Track(t *timeline.Track) error {
	if t.Thread != nil {
		return w.descriptor(t.ID, t.Thread.ID, "requests", 0, nil)
	}
	d := integer(w.part[:0], threadPID, uint64(t.Process.PID))
	d = integer(d, threadTID, uint64(t.TID))
	w.part = text(d, threadName, t.Name)
	return w.descriptor(t.ID, t.Process.ID, "", trackThread, w.part)
}

// descriptor writes a track's descriptor, with what it is of.
func (w *writer) descriptor(uuid, parent uint64, name string, of protowire.Number, what []byte) error {
	w.begin(needsState)
	d := integer(w.msg[:0], trackUUID, w.base+uuid)
	if parent != 0 {
		d = integer(d, trackParent, w.base+parent)
	}
	d = text(d, trackName, name)
	if of != 0 {
		d = message(d, of, what)
	}
	w.msg = d
	w.packet = message(w.packet, packetTrackDescriptor, d)
	return w.end()
}

// Slice implements timeline.Sink.
func (w *writer) Slice(s *timeline.Slice) error {
	if err := w.event(s.Track.ID, s.Begin, sliceBegin, s.Name, s.Class, s.Args, s.In, s.Out); err != nil {
		return err
	}
	if len(s.Received) > 0 { // a viewer's arrows lead to where slices begin
		if err := w.event(s.Track.ID, s.End, instant, "received", s.Class, nil, s.Received, nil); err != nil {
			return err
		}
	}
	return w.event(s.Track.ID, s.End, sliceEnd, "", "", nil, nil, nil)
}

// Mark implements timeline.Sink.
func (w *writer) Mark(m *timeline.Mark) error {
	track := uint64(hostTrack)
	if m.Track != nil {
		track = m.Track.ID
	} else if !w.lost {
		w.lost = true
		if err := w.descriptor(hostTrack, 0, "recording", 0, nil); err != nil {
			return err
		}
	}
	return w.event(track, m.Time, instant, m.Name, "mark", m.Args, m.In, nil)
}

// Count implements timeline.Sink.
func (w *writer) Count(c *timeline.Count) error {
	uuid := firstCounters + c.Process.ID*uint64(timeline.NumCounters) + uint64(c.Counter)
	if c.First {
		unit := uint64(unitBytes)
		if c.Counter == timeline.OpenFiles {
			unit = unitCount
		}
		w.part = integer(w.part[:0], counterUnit, unit)
		if err := w.descriptor(uuid, c.Process.ID, c.Counter.String(), trackCounter, w.part); err != nil {
			return err
		}
	}
	w.begin(needsState)
	w.packet = integer(w.packet, packetTimestamp, uint64(max(c.Time, 0)))
	w.msg = integer(w.msg[:0], eventType, counter)
	w.msg = integer(w.msg, eventTrack, w.base+uuid)
	w.msg = integer(w.msg, eventCounter, uint64(c.Value))
	w.packet = message(w.packet, packetTrackEvent, w.msg)
	return w.end()
}

// event writes a TrackEvent with the strings that are new in it.
func (w *writer) event(track uint64, time int64, typ uint64, name, category string, args []timeline.Arg, in,
	out []uint64) error {
	if w.in.full() {
		if err := w.clear(); err != nil {
			return err
		}
	}
	w.announce = w.announce[:0]
	e := integer(w.msg[:0], eventType, typ)
	e = integer(e, eventTrack, w.base+track)
	if name != "" {
		e = integer(e, eventName, w.intern(internedNames, name))
	}
	if category != "" {
		e = integer(e, eventCategories, w.intern(internedCategories, category))
	}
	for _, list := range [][]uint64{in, out} {
		for _, n := range list {
			e = protowire.AppendFixed64(protowire.AppendTag(e, eventFlows, protowire.Fixed64Type), w.base+n)
		}
	}
	for i := range args {
		a := &args[i]
		d := integer(w.part[:0], annotationName, w.intern(internedArgNames, a.Name))
		switch {
		case a.Text == "":
			d = integer(d, annotationInt, uint64(a.Number))
		case len(a.Text) > maxInterned:
			d = text(d, annotationString, a.Text)
		default:
			d = integer(d, annotationStringI, w.intern(internedStrings, a.Text))
		}
		w.part = d
		e = message(e, eventAnnotations, d)
	}
	w.msg = e
	w.begin(needsState)
	w.packet = integer(w.packet, packetTimestamp, uint64(max(time, 0)))
	if len(w.announce) > 0 {
		w.packet = message(w.packet, packetInternedData, w.announce)
	}
	w.packet = message(w.packet, packetTrackEvent, w.msg)
	return w.end()
}

// intern returns the number of a string, and announces it if it is new.
func (w *writer) intern(list protowire.Number, s string) uint64 {
	n, known := w.in.number(list, s)
	if !known {
		entry := integer(nil, internedIID, n)
		w.announce = message(w.announce, list, message(entry, internedText, utf8(s)))
	}
	return n
}

// interned holds the numbers of strings, by the list of InternedData that they are in.
type interned struct {
	numbers map[internKey]uint64
	bytes   int
}

type internKey struct {
	list protowire.Number
	text string
}

// Limits of what is interned at a time; strings beyond maxInterned are not.
const (
	maxInterned      = 1 << 10
	maxInternedBytes = 4 << 20
	maxStrings       = 1 << 15
)

func (t *interned) clear() { *t = interned{numbers: map[internKey]uint64{}} }

func (t *interned) full() bool { return t.bytes > maxInternedBytes || len(t.numbers) > maxStrings }

func (t *interned) number(list protowire.Number, s string) (n uint64, known bool) {
	k := internKey{list, s}
	if n, known = t.numbers[k]; !known {
		n = uint64(len(t.numbers) + 1)
		t.numbers[k] = n
		t.bytes += len(s)
	}
	return n, known
}

func integer(b []byte, f protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, f, protowire.VarintType), v)
}

func message(b []byte, f protowire.Number, m []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, f, protowire.BytesType), m)
}

// text appends a string unless it is empty.
func text(b []byte, f protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return message(b, f, utf8(s))
}

// utf8 returns a string's bytes, with those replaced that are no UTF-8: names of files
// can be anything, a protobuf string cannot.
func utf8(s string) []byte { return []byte(strings.ToValidUTF8(s, "\uFFFD")) }
