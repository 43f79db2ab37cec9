// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"io"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// Options for Seal. Nil and zero values are the defaults.
type Options struct {
	// Progress is called now and then with bytes of the stream.
	Progress func(done int64)
	// Files is what the recorded programs saw, as far as it is as they saw it: Here, if the
	// recording was made on this machine just now. It is asked where symbolic links lead.
	Files posix.FileSystem
	// Local lets Here be asked if Files is nil and the stream was recorded on this machine since it started.
	Local bool
}

// Seal reads a stream to its end and writes its events and content to a tape. The
// caller adds other files and closes the tape with the Manifest of the Stats. A
// damaged stream is not an error: what is good of it is sealed.
func Seal(ctx context.Context, in io.Reader, tw *trace.TapeWriter, o *Options) (*Stats, error) {
	if o == nil {
		o = &Options{}
	}
	stats := newStats()
	s := newStream(&tape{w: tw, stats: stats}, stats)
	s.ask(o.Files, o.Local)
	if err := s.read(ctx, trace.NewFrameReader(in), o.Progress); err != nil {
		return nil, err
	}
	return stats, nil
}

// tape is the sink that writes a tape.
type tape struct {
	w     *trace.TapeWriter
	stats *Stats
}

var _ streamSink = (*tape)(nil)

func (t *tape) head(h *trace.Head) error { return trace.WriteHeads(t.w, []trace.Host{{Head: *h}}) }

// filterChanged does nothing: the manifest, which is written last, has the head.
func (t *tape) filterChanged(*trace.Head) error { return nil }

func (t *tape) event(it *item, _ []event.OpenID) error {
	t.stats.count(&it.ev)
	return t.w.Write(&it.ev)
}

func (t *tape) spill(b *event.Buf, base int64) error {
	data := b.Inline
	b.Inline = nil
	return t.chunks(b, base, data)
}

func (t *tape) add(b *event.Buf, base int64, p *trace.Piece) error {
	if err := t.spill(b, base); err != nil {
		return err
	}
	return t.chunks(b, base+int64(p.Off), p.Data)
}

// chunks cuts bytes at multiples of the chunk size in file offsets, so that the
// same page has the same chunk however it was moved.
func (t *tape) chunks(b *event.Buf, off int64, data []byte) error {
	for len(data) > 0 {
		// Unsigned: a damaged stream may say any offset.
		n := min(int64(len(data)), trace.ChunkBytes-int64(uint64(off)%trace.ChunkBytes))
		id, err := t.w.AddChunk(data[:n])
		if err != nil {
			return err
		}
		b.Refs = append(b.Refs, event.Ref{Chunk: id, Len: uint32(n)})
		data, off = data[n:], off+n
	}
	return nil
}
