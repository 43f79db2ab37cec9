// SPDX-License-Identifier: Apache-2.0

// Package rows writes the events of a tape as rows for other programs, CSV and NDJSON:
// what iotape print shows with --csv and --json, as formats of iotape convert.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package rows

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// CSV has one line per event, with the columns of stracetext.CSVHeader: no arguments
// and no content.
var CSV = format.Format{
	Name:     "CSV",
	ID:       "csv",
	Suffixes: []string{".csv"},
	About:    "a table of the events, as of print --csv",
	Write: func(ctx context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
		if _, err := io.WriteString(out, stracetext.CSVHeader); err != nil {
			return nil, err
		}
		p := stracetext.New(&stracetext.Options{Hosts: t.Manifest().Hosts})
		return write(ctx, out, t, p.AppendCSV, func(*event.Event) {})
	},
}

// NDJSON has one object per line and event, with Options.ContentBytes of each buffer.
var NDJSON = format.Format{
	Name:     "NDJSON",
	ID:       "ndjson",
	Suffixes: []string{".ndjson", ".jsonl"},
	About:    "one JSON object per event, as of print --json",
	Write:    writeNDJSON,
}

// defaultBytes of a buffer's content are shown unless Options.ContentBytes says more.
const defaultBytes = 32

func writeNDJSON(ctx context.Context, out io.Writer, t *trace.Tape, o *format.Options) (*format.Done, error) {
	limit := min(cmp.Or(o.ContentBytes, defaultBytes), 1<<30)
	if limit < 0 {
		limit = 1 << 30
	}
	var cut uint64
	var scratch []byte
	damaged := error(nil)
	p := stracetext.New(&stracetext.Options{
		Hosts: t.Manifest().Hosts, MaxBytes: int(limit), Verbose: true,
		Content: func(b *event.Buf, n int) []byte {
			var err error
			if scratch, _, err = t.ContentZero(first(b, int64(n)), scratch[:0]); err != nil && damaged == nil {
				damaged = err
			}
			return scratch
		},
	})
	done, err := write(ctx, out, t, p.AppendJSON, func(ev *event.Event) {
		for i := range ev.Bufs {
			if b := &ev.Bufs[i]; !b.Omitted && (b.Kind == event.KindBuf || b.Kind == event.KindVec) && b.Len > limit {
				cut += uint64(b.Len - limit)
			}
		}
	})
	if err == nil {
		err = damaged
	}
	if err == nil && cut > 0 {
		done.LeftOut(fmt.Sprintf("bytes of content: of each buffer the first %d are there", limit), cut)
	}
	return done, err
}

// first returns a buffer's first n bytes.
func first(b *event.Buf, n int64) *event.Buf {
	if b.Len <= n {
		return b
	}
	c := *b
	c.Len, c.Refs = n, nil
	for _, r := range b.Refs {
		if n <= 0 {
			break
		}
		r.Len = uint32(min(int64(r.Len), n))
		c.Refs = append(c.Refs, r)
		n -= int64(r.Len)
	}
	return &c
}

// write writes a row for each event, and lets see look at it.
func write(ctx context.Context, out io.Writer, t *trace.Tape, row func([]byte, *event.Event) []byte,
	see func(*event.Event)) (*format.Done, error) {
	done := &format.Done{}
	var line []byte
	for ev, err := range t.Events() {
		if err == nil && done.Records&0xfff == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		line = row(line[:0], ev)
		if _, err := out.Write(line); err != nil {
			return nil, err
		}
		see(ev)
		for i := range ev.Bufs {
			done.Missing += ev.Bufs[i].Missing
		}
		done.Records++
	}
	return done, nil
}
