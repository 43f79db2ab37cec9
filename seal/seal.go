package seal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// Options for Seal. Nil and zero values are the defaults.
type Options struct {
	// Progress is called now and then with bytes of the stream.
	Progress func(done int64)
}

// Stats says what was sealed.
type Stats struct {
	Head    *trace.Head
	End     *trace.End // nil if the recording did not end in order
	Events  uint64     // of all kinds
	Calls   uint64
	Lost    uint64 // records
	Late    uint64 // events that came out of order
	Missing int64  // bytes of content that could not be recorded
	Refused uint64 // requests to trace a thread that had a tracer: the recorder
	Running int    // threads that had not ended
	Until   int64  // monotonic clock, ns, up to which the recording is complete
	Bytes   int64  // of content that the calls moved
	Stream  int64  // bytes of the stream that were read
	Losses  []trace.Loss
	Damage  error   // why the stream could not be read to its end; nil if it was
	Touched Touched // what the calls named
	nLosses map[uint32]uint64
}

// Seal reads a stream to its end and writes its events and content to a tape. The
// caller adds other files and closes the tape with the Manifest of the Stats. A
// damaged stream is not an error: what is good of it is sealed.
func Seal(ctx context.Context, in io.Reader, tw *trace.TapeWriter, o *Options) (*Stats, error) {
	if o == nil {
		o = &Options{}
	}
	return newSealer(tw).read(ctx, trace.NewFrameReader(in), o)
}

func newSealer(tw *trace.TapeWriter) *sealer {
	return &sealer{
		tw: tw, model: posix.New(), slack: slackNS,
		stats:    &Stats{nLosses: map[uint32]uint64{}, Touched: newTouched()},
		threads:  map[uint32]*thread{},
		requests: map[callKey]request{},
		open:     map[callKey]*item{}, positions: newPositions(),
	}
}

// frames is where a sealer gets a stream's frames: a trace.FrameReader.
type frames interface {
	Next() (trace.Frame, []byte, error)
	Offset() int64
}

// read takes a stream to its end.
func (s *sealer) read(ctx context.Context, fr frames, o *Options) (*Stats, error) {
	for n := 0; ; n++ {
		if n%64 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if o.Progress != nil {
				o.Progress(fr.Offset())
			}
		}
		f, payload, err := fr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if s.stats.Head == nil {
				return nil, err
			}
			s.stats.Damage = err
			break
		}
		if err := s.frame(&f, payload); err != nil {
			return nil, err
		}
		if s.stats.End != nil {
			break
		}
	}
	if s.stats.Head == nil {
		return nil, fmt.Errorf("stream without a head frame: %w", trace.ErrTruncated)
	}
	if err := s.finish(); err != nil {
		return nil, err
	}
	s.stats.Stream = fr.Offset()
	return s.stats, nil
}

// sealer is one Seal under way.
type sealer struct {
	tw      *trace.TapeWriter           // nil in a Follower
	applied func(*item, []event.OpenID) // takes events in a Follower, with the open files that each closed
	watched func(*event.Event) error    // takes events in a Watch
	// refiltered is told in a Watch that the recording's filter changed.
	refiltered func(*trace.Head) error
	at         uint64 // where the record at hand is
	model      *posix.Model
	stats      *Stats
	arch       event.Arch
	threads    map[uint32]*thread
	requests   map[callKey]request // under way
	open       map[callKey]*item   // calls whose RecData records are still to come
	queue      queue
	positions  positions
	pages      pages
	order      uint64 // of arrival, to keep equal times stable
	round      uint32
	until      uint64 // clock of the present round
	slack      uint64 // ns; see slackNS
	sealed     uint64 // everything that returned before this is out
	rec        trace.Record
	batch      []*item
	free       []*item
}

// thread is what is known of a thread between its records.
type thread struct {
	ppid, pgid, sid, uid, gid uint32
	nspid, nstid              uint32
	comm                      string
	announced                 bool    // the above is from its own RecTask
	entries                   []entry // from RecEnter, for its next call
	unfinished                uint64  // when its last call began, whose content may still come; 0: none
}

type entry struct {
	time   uint64
	pieces []trace.Piece
}

// request is what was read when a request was submitted (RecEnter).
type request struct {
	pid    uint32
	op     uint16
	pieces []trace.Piece
}

type callKey struct {
	tid   uint32
	enter uint64
}

// slackNS is how long after its return a call's record may still be on its way
// into a ring.
const slackNS = 50e6

// maxQueue bounds the events that wait for their order; beyond it, the oldest go
// out as they are.
const maxQueue = 1 << 20

func (s *sealer) frame(f *trace.Frame, payload []byte) error {
	switch f.Kind {
	case trace.FrameHead:
		if s.stats.Head != nil {
			return nil
		}
		h, err := trace.ReadHead(payload)
		if err != nil {
			return err
		}
		arch, ok := event.ParseArch(h.Arch)
		if !ok {
			return fmt.Errorf("stream of architecture %q, known are amd64 and arm64: %w", h.Arch, trace.ErrNewer)
		}
		s.stats.Head, s.arch = h, arch
		if s.tw == nil {
			return nil
		}
		return trace.WriteHeads(s.tw, []trace.Host{{Head: *h}})
	case trace.FrameEnd:
		end, err := trace.ReadEnd(payload)
		s.stats.End = end
		return err
	case trace.FrameFilter:
		return s.refilter(payload)
	case trace.FrameRecords:
	default:
		return nil // of a newer version
	}
	if s.stats.Head == nil {
		return fmt.Errorf("records before the head frame: %w", trace.ErrCorrupt)
	}
	if err := s.begin(f); err != nil {
		return err
	}
	for body, err := range trace.Records(payload) {
		if err == nil {
			err = s.rec.Decode(body)
		}
		if err == nil {
			err = s.record(&s.rec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refilter takes a change of the recording's filter.
func (s *sealer) refilter(payload []byte) error {
	if s.stats.Head == nil {
		return fmt.Errorf("a filter before the head frame: %w", trace.ErrCorrupt)
	}
	c, err := trace.ReadFilterChange(payload)
	if err != nil {
		return err
	}
	s.stats.Head.ChangeFilter(c)
	if s.refiltered != nil {
		return s.refiltered(s.stats.Head)
	}
	return nil
}

// begin takes the header of a frame of records.
func (s *sealer) begin(f *trace.Frame) error {
	if f.Round != s.round {
		// All shards were drained up to the last round's clock.
		if err := s.emit(s.until-min(s.until, s.slack), false); err != nil {
			return err
		}
		s.round = f.Round
	}
	s.until = max(s.until, f.Until)
	if f.Lost > 0 {
		s.lost(f.Until, f.Lost, trace.LossRing)
	}
	return nil
}

// lost puts a mark into the trace and counts.
func (s *sealer) lost(at, n uint64, reason uint32) {
	s.stats.nLosses[reason] += n
	s.stats.Lost += n
	it := s.newItem(at)
	it.ev = event.Event{Kind: event.LossMark, Enter: int64(at), Exit: int64(at), Ret: int64(n), Offset: -1, Count: -1}
	it.ev.Args[0] = uint64(reason)
	s.queue.push(it)
}

// emit writes out, in order, what returned up to a time. Nothing overtakes an event
// whose content is not complete, unless all is to go.
func (s *sealer) emit(until uint64, all bool) error {
	s.batch = s.batch[:0]
	for s.queue.len() > 0 {
		it := s.queue.top()
		if it.key > until && s.queue.len() < maxQueue {
			break
		}
		if it.pending && !all && s.queue.len() < maxQueue {
			break
		}
		s.batch = append(s.batch, s.queue.pop())
	}
	s.positions.order(s.batch)
	for _, it := range s.batch {
		if err := s.write(it); err != nil {
			return err
		}
		s.free = append(s.free, it)
	}
	return nil
}

// byArgument orders an event's memory: the order of pieces is that of their way into
// the stream.
func byArgument(a, b event.Buf) int {
	return cmp.Or(cmp.Compare(a.Arg&15, b.Arg&15), cmp.Compare(a.Arg, b.Arg))
}

// write resolves one event and gives it to the tape.
func (s *sealer) write(it *item) error {
	ev := &it.ev
	if it.pending {
		s.partial(it)
	}
	if it.key < s.sealed {
		ev.Flags |= event.Late
		s.stats.Late++
	}
	s.sealed = max(s.sealed, it.key)
	slices.SortStableFunc(ev.Bufs, byArgument)
	if step := s.stats.Head.ResolutionNS; step > 1 { // their order is found
		ev.Enter -= ev.Enter % step
		ev.Exit -= ev.Exit % step
		for _, d := range [...]*uint32{&ev.DelayBefore, &ev.DelayWithin} {
			if *d != math.MaxUint32 { // which is all that is longer
				*d -= uint32(int64(*d) % step)
			}
		}
	}
	if ev.Op == event.OpMmapPread {
		s.pages.see(ev, it.before)
	}
	var released []event.OpenID
	if ev.Kind != event.LossMark && ev.Kind != event.NoteMark {
		released = s.model.Apply(ev)
	}
	if s.applied != nil {
		s.applied(it, released)
		return nil
	}
	s.stats.Touched.see(ev)
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		s.stats.Bytes += b.Len
		s.stats.Missing += b.Missing
	}
	if ev.Kind == event.Call {
		s.stats.Calls++
		if isRefused(ev) {
			s.stats.Refused++
		}
	}
	s.stats.Events++
	if s.watched != nil {
		return s.watched(ev)
	}
	return s.tw.Write(ev)
}

// isRefused reports whether a program asked to trace a thread that is traced.
func isRefused(ev *event.Event) bool {
	const traceMe, attach, seize = 0, 16, 0x4206 // PTRACE_* (linux/ptrace.h)
	return ev.Op == event.OpPtrace && ev.Errno == syscall.EPERM &&
		(ev.Args[0] == traceMe || ev.Args[0] == attach || ev.Args[0] == seize)
}

// finish writes what is left.
func (s *sealer) finish() error {
	s.stats.Running, s.stats.Until = len(s.threads), int64(s.until)
	if err := s.emit(^uint64(0), true); err != nil {
		return err
	}
	if s.stats.End != nil && s.stats.End.Lost > s.stats.Lost {
		s.stats.nLosses[trace.LossDisk] += s.stats.End.Lost - s.stats.Lost
		s.stats.Lost = s.stats.End.Lost
	}
	for _, reason := range []uint32{trace.LossRing, trace.LossDisk, trace.LossKilled, trace.LossTasks, trace.LossPartial, trace.LossMapped, trace.LossSpool, trace.LossCounted} {
		if n := s.stats.nLosses[reason]; n > 0 {
			s.stats.Losses = append(s.stats.Losses, trace.Loss{Reason: trace.LossReason(reason), Records: n})
		}
	}
	return nil
}

// Manifest returns what the tape's manifest says of the stream.
func (st *Stats) Manifest(program string) *trace.Manifest {
	m := &trace.Manifest{Program: program, Hosts: []trace.Host{{Head: *st.Head}}, Losses: st.Losses}
	switch {
	case st.End != nil:
		m.ExitStatus, m.Signal = st.End.ExitStatus, st.End.Signal
	case st.Damage != nil && !errors.Is(st.Damage, trace.ErrTruncated):
		m.Incomplete, m.Reason = true, "the stream is damaged: "+st.Damage.Error()
	default:
		m.Incomplete, m.Reason = true, "the recording did not end in order: its recorder was killed, or the machine stopped"
	}
	if st.Lost > 0 && !m.Incomplete {
		m.Incomplete, m.Reason = true, fmt.Sprintf("%d records were lost", st.Lost)
	}
	return m
}
