// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
)

// Apply takes a stream through layers.
func Apply(ctx context.Context, out io.Writer, in io.Reader, spec *chain.Spec) error {
	w, err := pipe.NewWriter(out, spec.Layers, &spec.Options)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, contextReader{ctx, in}); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// Undo takes all layers off again, with the keys of the context (chain.WithKeys). open is
// called for where to write when the stream's header is sound. What is wrong with a block
// ends it with an error that wraps a *pipe.Fault, unless fault is given, which is then told.
func Undo(ctx context.Context, in io.Reader, open func() (io.WriteCloser, error), fault func(*pipe.Fault)) error {
	var o pipe.ReadOptions
	if fault != nil {
		o.OnFault = func(f *pipe.Fault) error {
			fault(f)
			return nil
		}
	}
	r, err := pipe.NewReader(in, chain.KeysOf(ctx).Open, &o)
	if err != nil {
		return err
	}
	out, err := open()
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, contextReader{ctx, r}); err != nil {
		return err
	}
	return out.Close()
}

// A BlockError says where a stream that is copied is wrong.
type BlockError struct {
	Offset int64 // in the stream, in bytes
	Err    error
}

// Error returns the message with the offset.
func (e *BlockError) Error() string { return fmt.Sprintf("at offset %d: %v", e.Offset, e.Err) }

// Unwrap returns Err.
func (e *BlockError) Unwrap() error { return e.Err }

// Copy brings the blocks of a piped stream somewhere else, as they are.
func Copy(out io.Writer, s *pipe.Scanner) error {
	if _, err := out.Write(s.Encoded()); err != nil {
		return err
	}
	var block []byte
	for {
		h, payload, err := s.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &BlockError{s.Offset(), err}
		}
		block = append(append(block[:0], make([]byte, pipe.BlockHeaderBytes)...), payload...)
		h.Put(block)
		if _, err := out.Write(block); err != nil {
			return err
		}
	}
}

// isDevice reports whether a file is longer than what is on it.
func isDevice(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeDevice != 0
}

// contextReader stops reading when the context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (r contextReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}
