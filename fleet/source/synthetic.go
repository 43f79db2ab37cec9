// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// synthetic is what to make up: RATE/s of calls that write SIZE bytes each. The offset of
// a write is its number, so that each event is told from all others of its host. The
// numbers are those of the agent's ledger, which counts an event when it is handed over:
// so they have no gaps, wherever an agent is killed.
type synthetic struct {
	rate  float64 // events a second
	size  int     // bytes that each writes
	total uint64  // ends after so many, of all runs; 0: it does not
}

const (
	syntheticTick  = 100 * time.Millisecond
	maxSyntheticKB = 64
)

// parseSynthetic reads "rate=1000,size=100,total=0".
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
		default:
			return nil, fmt.Errorf("synthetic: %q is none of rate, size and total", key)
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

// synthesize makes a stream up.
func synthesize(ctx context.Context, text, program string, f *frames) error {
	y, err := parseSynthetic(text)
	if err != nil {
		return err
	}
	h := head(program, "synthetic", &capture.Options{})
	sw, err := trace.NewStreamWriterTo(f, trace.NewStreamID(), h)
	if err != nil {
		return err
	}
	const pid = 7
	data := make([]byte, y.size)
	var payload []byte
	began, due, done, round := time.Now(), 0.0, uint64(0), uint32(0)
	tick := time.NewTicker(syntheticTick)
	defer tick.Stop()
	for ctx.Err() == nil && (y.total == 0 || f.out.Handed() < y.total) {
		due = time.Since(began).Seconds() * y.rate
		for n := uint64(due) - min(done, uint64(due)); n > 0 && ctx.Err() == nil; {
			payload = payload[:0]
			part := min(n, uint64(1+256<<10/(y.size+256)))
			if y.total > 0 {
				if part = min(part, y.total-min(f.out.Handed(), y.total)); part == 0 {
					break
				}
			}
			clock, _ := capture.Clocks()
			first := f.out.Handed()
			for i := range part {
				payload = trace.AppendRecord(payload, &trace.Record{
					Type: trace.RecCall, Op: uint16(event.OpPwrite64), PID: pid, TID: pid, Enter: uint64(clock),
					Exit: uint64(clock) + i, NR: 18,
					Ret: int64(y.size), Args: [6]uint64{3, 0x1000, uint64(y.size), first + i},
					Pieces: []trace.Piece{{Arg: 1, Len: uint32(y.size), Data: data}},
				})
			}
			if err := sw.WriteRecords(trace.Frame{Round: round, Until: uint64(clock) + part}, payload); err != nil {
				return err
			}
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
