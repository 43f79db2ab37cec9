// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/digest"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

const (
	frameBytes = 8 << 20 // of records from a ring

	pollMin = 2 * time.Millisecond // between two looks at busy rings
	pollMax = 20 * time.Millisecond

	// busyShare of the rings is what has to come between two looks for rings to be busy. To
	// look more often than that needs takes the processors from the programs: each look wakes
	// the Go runtime, whose monitor then looks every 20 µs at what its threads do. A build of
	// 1.8 s on two processors had 1,500 changes of context and 900 timer interrupts without a
	// recorder, 11,000 and 4,500 with looks every 2 ms, 6,600 and 2,900 with one every 20 ms,
	// and the recorder took half as long.
	busyShare = 1. / 16

	// clockMargin is how much later than its clock reading a hook's mark may be
	// seen: far more than a processor's store buffer.
	clockMargin = 10_000 // ns
)

// drain moves records from the rings to the stream. It alone uses the stream's
// writer while a recording runs.
type drain struct {
	p      *programs
	sw     *trace.StreamWriter
	digest *digest.Rewriter // nil if nothing is hashed
	tr     *ptracer.Engine

	content capture.Content
	env     running.Env
	note    func(string)
	holdMax time.Duration

	stores *stores // nil if mappings are not recorded
	blocks *blocks // nil if requests to block devices are not recorded

	most time.Duration // between two looks
	much uint64        // bytes; more than that between two looks, and the rings are busy

	// To wait for full rings, and for held threads: an epoll set, in the Go
	// runtime's own, so that waiting takes no processor from the tracing thread.
	epoll *os.File
	poll  syscall.RawConn
	event int

	// describing is when the description of what runs began, 0 if none is under way:
	// events after it wait for it.
	describing atomic.Uint64

	mu    sync.Mutex
	start []byte        // records of the start of recording
	fresh []*heldThread // threads that came to a stop
	done  bool

	held  []*heldThread // not yet resumed; changed under mu
	round uint32
	until uint64
	spans [][]span
	own   []byte // the recorder's records, for its frame
	seen  [maxShards]uint64
	told  [len(lossReasons)]uint64 // of what is lost otherwise than by full rings

	passes  atomic.Uint64
	asking  atomic.Bool // the tracer is to say that it hears (answer)
	serving *heldThread // whose content is read

	events, lost uint64
	err          error // of the writer: from then on records are lost
	stops        atomic.Uint64
}

// heldThread is a thread that waits for the recorder.
type heldThread struct {
	t      *ptracer.Tracee
	tid    int
	listed bool        // still, for the guardian
	free   atomic.Bool // it goes on
}

func newDrain(p *programs, sw *trace.StreamWriter, o *capture.Options) (*drain, error) {
	d := &drain{p: p, sw: sw, content: o.Content, env: o.Environ, holdMax: o.HoldMax, digest: digest.New(o.Content),
		spans: make([][]span, len(p.rings)), event: -1, most: pollMax}
	if d.note = o.Note; d.note == nil {
		d.note = func(string) {}
	}
	if o.Latency > 0 {
		d.most = o.Latency
	}
	for _, r := range p.rings {
		d.much += uint64(float64(r.size) * busyShare)
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make an epoll set: %w", err)
	}
	_ = unix.SetNonblock(epoll, true) // so that NewFile takes it for pollable
	d.epoll = os.NewFile(uintptr(epoll), "rings")
	if d.poll, err = d.epoll.SyscallConn(); err != nil {
		d.close()
		return nil, fmt.Errorf("wait for rings: %w", err)
	}
	if err := d.epoll.SetReadDeadline(time.Now()); err != nil {
		d.close()
		return nil, fmt.Errorf("wait for rings: %w", err)
	}
	if d.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		d.close()
		return nil, fmt.Errorf("make an event descriptor: %w", err)
	}
	d.stores, d.blocks = newStores(d), newBlocks(d)
	fds := []int{d.event}
	for _, r := range []*ring{p.touches, p.blocks} {
		if r != nil {
			fds = append(fds, r.m.FD())
		}
	}
	for _, r := range p.rings {
		fds = append(fds, r.m.FD())
	}
	for _, fd := range fds {
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&0xffffffff, Fd: int32(fd)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			d.close()
			return nil, fmt.Errorf("add to an epoll set: %w", err)
		}
	}
	return d, nil
}

func (d *drain) close() {
	d.epoll.Close()
	if d.event >= 0 {
		unix.Close(d.event)
	}
}

// wake ends the drain's sleep.
func (d *drain) wake() {
	_, _ = unix.Write(d.event, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // EAGAIN: it is awake
}

// hold is called on the tracing thread when a thread was stopped for us.
func (d *drain) hold(t *ptracer.Tracee, listed bool) {
	d.stops.Add(1)
	d.mu.Lock()
	d.fresh = append(d.fresh, &heldThread{t: t, tid: t.TID, listed: listed})
	d.mu.Unlock()
	d.wake()
}

// begin hands over the records of the start of recording.
func (d *drain) begin(records []byte) {
	d.mu.Lock()
	d.start = append(d.start, records...)
	d.mu.Unlock()
}

// finish makes run end when the rings are empty.
func (d *drain) finish() {
	d.mu.Lock()
	d.done = true
	d.mu.Unlock()
	d.wake()
}

// run drains until finish was called.
func (d *drain) run() {
	pause := pollMin
	for {
		d.mu.Lock()
		done := d.done
		d.mu.Unlock()
		moved, busy := d.pass()
		if done && moved == 0 && !busy && len(d.held) == 0 {
			d.stores.finish()
			return
		}
		switch {
		case done || busy:
			pause = 0
		case moved > d.much:
			pause = pollMin
		default:
			pause = min(pause*5/4+time.Millisecond, d.most)
		}
		if len(d.held) > 0 || d.stores.busy() {
			pause = min(pause, time.Millisecond)
		}
		if pause > 0 {
			d.sleep(pause)
		}
	}
}

// sleep waits until a ring is a quarter full, a thread is held, or the time is up.
func (d *drain) sleep(pause time.Duration) {
	_ = d.epoll.SetReadDeadline(time.Now().Add(pause))
	var events [maxShards + 3]unix.EpollEvent
	_ = d.poll.Read(func(fd uintptr) bool {
		n, err := unix.EpollWait(int(fd), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
	var b [8]byte
	_, _ = unix.Read(d.event, b[:])
}

// pass writes what is in the rings now.
func (d *drain) pass() (moved uint64, busy bool) {
	d.passes.Add(1)
	d.answer()
	describing := d.describing.Load() // first: its records come before it is 0
	d.mu.Lock()
	d.held = append(d.held, d.fresh...)
	d.fresh = d.fresh[:0]
	start := d.start
	d.start = nil
	d.mu.Unlock()
	ready := len(d.held) // these stopped before what follows is looked at

	until := d.clock()
	if describing != 0 {
		until = min(until, describing)
	}
	for i, r := range d.p.rings {
		var b bool
		d.spans[i], b = r.scan(d.spans[i][:0], r.produced())
		busy = busy || b
	}
	if busy { // what stands behind an unfinished record is not in this round
		until = d.until
	}
	d.until = max(d.until, until)

	stacks, bytes := d.p.stacks.take() // of all calls that are in the rings
	moved += bytes
	d.writeOwn(append(start, stacks...))
	busy = d.stores.listen() || busy
	busy = d.blocks.listen() || busy
	for i, r := range d.p.rings {
		moved += d.writeSpans(i, r)
	}
	d.countLosses()
	d.p.places.refresh()
	d.addRequests()
	if !busy {
		d.serve(ready)
		d.stores.lookLater()
	}
	d.round++
	return moved, busy
}

// clock returns a time before which every record was in a ring when it was read.
func (d *drain) clock() uint64 {
	until := bpf.Now() - clockMargin
	for i := range d.p.shared.Cpus {
		c := &d.p.shared.Cpus[i]
		if atomic.LoadUint64(&c.Active) != 0 {
			until = min(until, atomic.LoadUint64(&c.Since))
		}
	}
	return until
}

// writeSpans writes a ring's records and gives the memory back.
func (d *drain) writeSpans(shard int, r *ring) (moved uint64) {
	if lost := atomic.LoadUint64(&d.p.shared.Lost[shard]) - d.seen[shard]; lost > 0 {
		d.writeLoss(shard, lost)
	}
	for _, s := range d.spans[shard] {
		records := r.bytes(s.from, s.to)
		if s.processes {
			records = d.env.Keep(records)
		}
		if d.write(shard, records, s.records) {
			d.events += s.calls
		}
		r.consume(s.to)
		moved += s.to - s.from
	}
	return moved
}

// writeLoss writes a frame without records that says how many a shard has lost, as of
// the time of the first: where in the trace they are missing.
func (d *drain) writeLoss(shard int, lost uint64) {
	d.seen[shard] += lost
	d.lost += lost
	at := min(atomic.SwapUint64(&d.p.shared.LostAt[shard], 0), d.until)
	if at == 0 { // the last round took it, with the first of these
		at = d.until
	}
	d.writeFrame(trace.Frame{Shard: uint32(shard), Until: at, Lost: lost}, nil)
}

// write writes a frame of records, or counts them as lost.
func (d *drain) write(shard int, payload []byte, records uint64) bool {
	if !d.writeFrame(trace.Frame{Shard: uint32(shard), Until: d.until}, d.digest.Payload(payload)) {
		d.lost += records
		return false
	}
	return true
}

func (d *drain) writeFrame(f trace.Frame, payload []byte) bool {
	f.Round = d.round
	if d.err == nil {
		d.err = d.sw.WriteRecords(f, payload)
	}
	return d.err == nil
}

// writeOwn writes the recorder's own records, in as many frames as that needs.
func (d *drain) writeOwn(records []byte) {
	for len(records) > 0 {
		n := len(records)
		if n > frameBytes {
			n = 0
			for n < frameBytes {
				_, next, err := trace.NextRecord(records, n)
				if err != nil {
					return // our own: cannot be
				}
				n = next
			}
		}
		d.write(len(d.p.rings), records[:n], 1)
		records = records[n:]
	}
}

// lossReasons are the reasons why programs lose what has room in its ring, as losses has them.
var lossReasons = [...]uint32{trace.LossTasks, trace.LossPages, trace.LossRequests, trace.LossBlocks,
	trace.LossLocked}

// losses returns what the programs have lost, by lossReasons.
func (d *drain) losses() [len(lossReasons)]uint64 {
	s := d.p.shared
	return [...]uint64{atomic.LoadUint64(&s.Untracked), atomic.LoadUint64(&s.Pages), atomic.LoadUint64(&s.Requests),
		atomic.LoadUint64(&s.Blocks), atomic.LoadUint64(&s.Unwritten)}
}

// countLosses records what was lost otherwise than by full rings, by reason.
func (d *drain) countLosses() {
	for i, total := range d.losses() {
		n := total - d.told[i]
		if n == 0 {
			continue
		}
		d.told[i] = total
		d.lose(n, lossReasons[i])
	}
}

// lose records that n records were lost.
func (d *drain) lose(n uint64, reason uint32) {
	d.lost += n
	d.writeOwn(trace.AppendRecord(nil, &trace.Record{Type: trace.RecLoss, Exit: bpf.Now(), Count: n, Reason: reason}))
}

// serve does what the first n held threads wait for, and lets them go on.
func (d *drain) serve(n int) {
	ready := slices.Clone(d.held[:n])
	for _, h := range ready {
		d.readPending(h)
	}
	d.mu.Lock()
	d.held = append(d.held[:0], d.held[n:]...)
	d.mu.Unlock()
	if len(ready) > 0 {
		d.tr.Do(func() {
			for _, h := range ready {
				d.letGo(h)
			}
		})
	}
}
