package recorder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"iotape/capture"
	"iotape/event"
	"iotape/trace"
)

// synthetic is what to make up: RATE/s of calls that write SIZE bytes each, from their
// own counter: the offset of the nth write is n, so that each event is told from all
// others of its host.
type synthetic struct {
	rate  float64 // events a second
	size  int     // bytes that each writes
	total uint64  // ends after so many; 0: it does not
	count string  // file in which the number of events made is kept, mapped into memory
}

const (
	syntheticTick  = 100 * time.Millisecond
	maxSyntheticKB = 64
)

// parseSynthetic reads "rate=1000,size=100,total=0,count=FILE".
func parseSynthetic(s string) (*synthetic, error) {
	y := &synthetic{rate: 100, size: 64}
	for item := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(item, "=")
		var err error
		switch key {
		case "rate":
			y.rate, err = strconv.ParseFloat(value, 64)
		case "size":
			y.size, err = strconv.Atoi(value)
		case "total":
			y.total, err = strconv.ParseUint(value, 10, 64)
		case "count":
			y.count = value
		default:
			return nil, fmt.Errorf("synthetic: %q is none of rate, size, total and count", key)
		}
		if err != nil {
			return nil, fmt.Errorf("synthetic: %s: %w", key, err)
		}
	}
	if !(y.rate > 0 && y.rate <= 1e7) || y.size < 0 || y.size > maxSyntheticKB<<10 {
		return nil, errors.New("synthetic: rate is up to 10000000, size up to 65536")
	}
	return y, nil
}

// made counts the events of all runs, in a file, so that a kill does not lose the count.
type made struct {
	page []byte
	c    *counts
}

// counts is the layout of the file.
type counts struct {
	made   atomic.Uint64 // events made up
	handed atomic.Uint64 // of these, events that the agent was given, or that an earlier run left
	limbo  atomic.Uint64 // events that were made and perhaps not given to the agent when it was killed
}

const countBytes = 24

func openMade(name string) (*made, error) {
	if name == "" {
		return &made{c: &counts{}}, nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() < countBytes {
		if _, err := f.WriteAt(make([]byte, countBytes), 0); err != nil {
			return nil, err
		}
	}
	page, err := unix.Mmap(int(f.Fd()), 0, countBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	m := &made{page, (*counts)(unsafe.Pointer(&page[0]))}
	m.c.limbo.Add(m.c.made.Load() - m.c.handed.Load())
	m.c.handed.Store(m.c.made.Load())
	return m, nil
}

func (m *made) close() {
	if m.page != nil {
		_ = unix.Munmap(m.page)
	}
}

// Made returns how many events were made up with a file of counts, and of how many of
// these it is not known whether the agent was given them before it was killed.
func Made(name string) (n, limbo uint64, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, err
	}
	if len(b) < countBytes {
		return 0, 0, fmt.Errorf("%s is no count", name)
	}
	le := binary.LittleEndian
	n = le.Uint64(b)
	return n, le.Uint64(b[16:]) + n - le.Uint64(b[8:]), nil
}

// synthesize makes a stream up.
func synthesize(ctx context.Context, text, program string, f *frames) error {
	y, err := parseSynthetic(text)
	if err != nil {
		return err
	}
	count, err := openMade(y.count)
	if err != nil {
		return err
	}
	defer count.close()
	h := head(program, "synthetic", &capture.Options{})
	sw, err := trace.NewStreamWriterTo(f, streamID(), h)
	if err != nil {
		return err
	}
	const pid = 7
	data := make([]byte, y.size)
	var payload []byte
	began, due, done, round := time.Now(), 0.0, uint64(0), uint32(0)
	tick := time.NewTicker(syntheticTick)
	defer tick.Stop()
	for ctx.Err() == nil && (y.total == 0 || count.c.made.Load() < y.total) {
		due = time.Since(began).Seconds() * y.rate
		for n := uint64(due) - min(done, uint64(due)); n > 0 && ctx.Err() == nil; {
			payload = payload[:0]
			part := min(n, uint64(1+256<<10/(y.size+256)))
			if y.total > 0 {
				if part = min(part, y.total-min(count.c.made.Load(), y.total)); part == 0 {
					break
				}
			}
			clock, _ := capture.Clocks()
			first := count.c.made.Load()
			for i := range part {
				payload = trace.AppendRecord(payload, &trace.Record{
					Type: trace.RecCall, Op: uint16(event.OpPwrite64), PID: pid, TID: pid, Enter: uint64(clock), Exit: uint64(clock) + i, NR: 18,
					Ret: int64(y.size), Args: [6]uint64{3, 0x1000, uint64(y.size), first + i}, Pieces: []trace.Piece{{Arg: 1, Len: uint32(y.size), Data: data}},
				})
			}
			count.c.made.Add(part)
			if err := sw.WriteRecords(trace.Frame{Round: round, Until: uint64(clock) + part}, payload); err != nil {
				return err
			}
			count.c.handed.Add(part)
			round++
			n -= part
			done += part
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	clock, wall := capture.Clocks()
	return sw.Close(&trace.End{Lost: f.lost, ClockNS: clock, WallNS: wall})
}

// Numbers calls f with the number of each made-up event in a stream's payload.
func Numbers(payload []byte, f func(n uint64)) error {
	var r trace.Record
	for body, err := range trace.Records(payload) {
		if err != nil {
			return err
		}
		if err := r.Decode(body); err != nil {
			return err
		}
		if r.Type == trace.RecCall && r.PID == 7 {
			f(r.Args[3])
		}
	}
	return nil
}
