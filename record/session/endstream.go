// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/trace"
)

// endStream ends a stream in order whose writer failed: it cuts what was written
// in part, marks the loss and writes the end frame.
func endStream(f *os.File, end *trace.End) error {
	last, lost, off, err := goodFrames(f)
	if err != nil {
		return err
	}
	if err := f.Truncate(off); err != nil {
		return err
	}
	var tail []byte
	frame := func(kind trace.FrameKind, payload []byte) {
		last.Seq++
		h := trace.Frame{Kind: kind, Stream: last.Stream, Seq: last.Seq, Round: last.Round + 1,
			Until: uint64(end.ClockNS)}
		var b [trace.FrameHeaderBytes]byte
		h.Put(b[:], payload)
		tail = append(append(tail, b[:]...), payload...)
	}
	if end.Lost > lost {
		frame(trace.FrameRecords,
			trace.AppendRecord(nil, &trace.Record{Type: trace.RecLoss, Exit: uint64(end.ClockNS),
				Count: end.Lost - lost, Reason: trace.LossDisk}))
	}
	b, err := json.Marshal(end)
	if err != nil {
		return err
	}
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	frame(trace.FrameEnd, b)
	_, err = f.WriteAt(tail, off)
	return err
}

// goodFrames reads a stream to its last good frame. It returns that frame, the
// records that the stream says are lost, and where the frame ends.
func goodFrames(f *os.File) (last trace.Frame, lost uint64, off int64, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return last, 0, 0, err
	}
	fr := trace.NewFrameReader(bufio.NewReaderSize(f, 1<<20))
	var rec trace.Record
	for {
		h, payload, err := fr.Next()
		if err == io.EOF || errors.Is(err, trace.ErrTruncated) || errors.Is(err, trace.ErrCorrupt) ||
			errors.Is(err, trace.ErrNotATrace) {
			if fr.Offset() == 0 {
				return last, 0, 0, fmt.Errorf("nothing of it was written: %w", trace.ErrTruncated)
			}
			return last, lost, fr.Offset(), nil
		}
		if err != nil {
			return last, 0, 0, err
		}
		last = h
		lost += h.Lost
		if h.Kind != trace.FrameRecords {
			continue
		}
		for body, err := range trace.Records(payload) {
			if err == nil && rec.Decode(body) == nil && rec.Type == trace.RecLoss {
				lost += rec.Count
			}
		}
	}
}
