// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// part is a part of a rotated recording.
type part struct {
	tape, partial string
	lock          *wholefile.Dir
	guard         *spaceGuard

	to      string // where the part is written to, and no tape made; "" for a tape
	sink    io.WriteCloser
	counted *countingWriter

	spec   *chain.Spec  // nil: it is written as it is, and can be cut in its file
	layers *pipe.Writer // of the spec; nil until more than the head is written
	held   []byte       // what the layers have not got, because it may be cut
	from   int64        // where that begins in the stream
}

// toFile reports whether --to names a file.
func toFile(to string) bool { return sink.Numbered(to, 1) != to }

// reserve makes the directory of a part, or opens where it is written to.
func (r *rotation) reserve(ctx context.Context, n int) (*part, error) {
	if r.p.To != "" {
		t := &part{to: sink.Numbered(r.p.To, n)}
		w, err := sink.Open(ctx, t.to, &sink.Options{New: true, Note: r.p.reporter().Note})
		if err != nil {
			return nil, fmt.Errorf("--to %w", err)
		}
		t.sink, t.counted = w, &countingWriter{w: w}
		return t, nil
	}
	t := &part{tape: r.p.partName(n)}
	if err := sealing.MustNotExist(t.tape, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	t.partial = t.tape + sealing.PartialSuffix
	var err error
	t.lock, err = sealing.Reserve(t.partial)
	return t, err
}

// open begins the part's stream.
func (t *part) open(p *Plan) (err error) {
	if t.spec = p.Pipe; t.sink == nil {
		t.guard, err = guardStream(t.partial)
	} else if t.spec == nil {
		t.spec = &chain.Spec{}
	}
	return err
}

// Write implements rotate.File.
func (t *part) Write(b []byte) (int, error) {
	if t.spec == nil {
		return t.guard.Write(b)
	}
	t.held = append(t.held, b...)
	return len(b), nil
}

// Cut implements rotate.File.
func (t *part) Cut(length int64) error {
	if t.spec != nil {
		if length < t.from || length > t.from+int64(len(t.held)) {
			return fmt.Errorf("cut a stream at %d, of which %d bytes are written", length, t.from)
		}
		t.held = t.held[:length-t.from]
		return nil
	}
	t.guard.written = length
	_, err := t.guard.f.Seek(length, 0)
	return errors.Join(err, t.guard.f.Truncate(length))
}

// Settled implements rotate.File.
func (t *part) Settled(length int64) error {
	if t.spec == nil || length <= t.from {
		return nil
	}
	if t.layers == nil {
		var w io.Writer = t.counted
		if t.sink == nil {
			w = t.guard
		}
		var err error
		if t.layers, err = pipe.NewWriter(w, t.spec.Layers, &t.spec.Options); err != nil {
			return err
		}
	}
	n := min(length-t.from, int64(len(t.held)))
	if _, err := t.layers.Write(t.held[:n]); err != nil {
		return err
	}
	t.held, t.from = append(t.held[:0], t.held[n:]...), t.from+n
	return nil
}

// repair ends the stream of a file whose writer failed. One with layers stays as it is: it is known to be cut off.
func (t *part) repair(end *trace.End) error {
	if t.spec != nil {
		return nil
	}
	t.guard.release()
	return endStream(t.guard.f, end)
}

// end writes what the stream has, and ends the use of its file.
func (t *part) end() (err error) {
	if t.spec != nil {
		if err = t.Settled(t.from + int64(len(t.held))); err == nil && t.layers != nil {
			err = t.layers.Close()
		}
	}
	if t.guard != nil {
		t.guard.release()
		err = errors.Join(err, t.guard.f.Close())
	}
	return err
}

// discard takes away what was made, for a recording that did not begin.
func (t *part) discard() {
	if t.layers != nil {
		t.layers.Abort()
	}
	if t.sink != nil {
		t.sink.Close()
		if t.counted.n == 0 {
			_ = removeFiles(t.to)
		}
		return
	}
	if t.guard != nil {
		t.guard.release()
		t.guard.f.Close()
	}
	os.RemoveAll(t.partial)
	if t.lock != nil {
		t.lock.Unlock()
	}
}
