// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/iotape/iotape/trace"
)

// Dump writes a stream as text. Of a damaged stream it writes what is good, and
// returns the reader's error.
func Dump(w io.Writer, stream io.Reader) error {
	d := dumper{w: bufio.NewWriter(w)}
	err := d.stream(trace.NewFrameReader(stream))
	return errors.Join(err, d.w.Flush())
}

type dumper struct {
	w   *bufio.Writer
	rec trace.Record
	id  uint64 // of the stream
	seq uint64 // of the next frame
}

func (d *dumper) stream(fr *trace.FrameReader) error {
	for first := true; ; first = false {
		f, payload, err := fr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.frame(&f, payload, first); err != nil {
			return fmt.Errorf("frame %d: %w", f.Seq, err)
		}
	}
}

func (d *dumper) frame(f *trace.Frame, payload []byte, first bool) error {
	// What Build would give by itself is not written.
	h := *f
	if !first && h.Stream == d.id {
		h.Stream = 0
	}
	d.id = f.Stream
	if h.Seq == d.seq {
		h.Seq = 0
	}
	d.seq = f.Seq + 1
	switch f.Kind {
	case trace.FrameHead, trace.FrameEnd, trace.FrameCounters, trace.FrameFilter:
		name := objects[f.Kind]
		if bytes.ContainsAny(payload, "\n\r") {
			return fmt.Errorf("%s with a line break: %w", name, trace.ErrCorrupt)
		}
		d.w.WriteString(name)
		fields(d.w, frameFields, &h)
		d.w.WriteByte(' ')
		d.w.Write(bytes.TrimRight(payload, " "))
		d.w.WriteByte('\n')
		return nil
	case trace.FrameRecords:
	default:
		fmt.Fprintf(d.w, "# a frame of kind %d and %d bytes\n", f.Kind, len(payload))
		return nil
	}
	d.w.WriteString("frame")
	fields(d.w, frameFields, &h)
	d.w.WriteByte('\n')
	for body, err := range trace.Records(payload) {
		if err != nil {
			return err
		}
		d.record(body)
	}
	return nil
}

func (d *dumper) record(body []byte) {
	r := &d.rec
	err := r.Decode(body)
	k := kindOf(r.Type)
	if err != nil || k == nil || !bytes.Equal(r.Append(nil), body) {
		fmt.Fprintf(d.w, "  junk %q\n", body)
		return
	}
	d.w.WriteString("  " + k.name)
	fields(d.w, k.fields, r)
	words(d.w, k.flags, r.Flags)
	d.w.WriteByte('\n')
	for i := range r.Objects {
		d.w.WriteString("    object")
		fields(d.w, objectFields, &r.Objects[i])
		d.w.WriteByte('\n')
	}
	for i := range r.Pieces {
		d.piece(&r.Pieces[i])
	}
}

func (d *dumper) piece(p *trace.Piece) {
	q := *p
	if p.Data != nil && p.Flags&trace.PieceHash == 0 {
		q.Len = 0 // the data says it
	}
	d.w.WriteString("    piece")
	fields(d.w, pieceFields, &q)
	words(d.w, pieceFlags, uint32(p.Flags))
	if p.Data != nil {
		d.w.WriteByte(' ')
		d.w.WriteString(data(p.Data))
	}
	d.w.WriteByte('\n')
}

// data writes bytes: zeros by their number, others as a string.
func data(b []byte) string {
	if len(b) > 16 && len(bytes.TrimLeft(b, "\x00")) == 0 {
		return "zero=" + strconv.Itoa(len(b))
	}
	return strconv.Quote(string(b))
}

func fields[T any](w *bufio.Writer, list []field[T], v *T) {
	for _, f := range list {
		if s := format(f.ref(v), f.base); s != "" {
			w.WriteString(" " + f.name + "=" + s)
		}
	}
}

func words(w *bufio.Writer, list []flag, v uint32) {
	for _, f := range list {
		if v&f.bit != 0 {
			w.WriteString(" " + f.name)
			v &^= f.bit
		}
	}
	if v != 0 {
		w.WriteString(" flags=0x" + strconv.FormatUint(uint64(v), 16))
	}
}

func kindOf(t trace.RecordType) *kind {
	for i := range kinds {
		if kinds[i].typ == t {
			return &kinds[i]
		}
	}
	return nil
}
