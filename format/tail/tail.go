// SPDX-License-Identifier: Apache-2.0

package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/pipe/wire"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// Options for File and Serve.
type Options struct {
	JSON     bool              // one object per line
	Stacks   bool              // below the lines of calls that have them
	MaxBytes int               // shown of a buffer, 1 to 64
	Clock    stracetext.Clock  // "" is Elapsed
	Location *time.Location    // of wall-clock times; nil: local time
	Style    term.Style        // of the lines
	Filter   *predicate.Expr   // of the events that are printed; nil: all
	Out      io.Writer         // takes the lines, whole ones only
	Note     func(line string) // takes what people should know
	// See, if set, gets the events that fit in the place of Out.
	See func(ev *event.Event)
}

// File prints a stream, or that of a recording's directory, and if wait is set what is added
// to it until the recording ends. It reports whether all of the recording was there.
func File(ctx context.Context, path string, wait bool, o *Options) (complete bool, err error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		if _, err := os.Stat(filepath.Join(path, trace.ManifestName)); err == nil {
			return false, hint.With(fmt.Errorf("%s: the recording has ended", path), "iotape print %s", path)
		}
		path = filepath.Join(path, sealing.StreamName)
	}
	f, err := wholefile.OpenGiven(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return false, hint.With(err, "name a recording that is not sealed, NAME.tape.partial, or the output of --to")
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	growing := sealing.NewGrowing(f)
	defer growing.Close()
	defer context.AfterFunc(ctx, growing.Close)()
	if !wait {
		growing.Close()
	}
	return print(ctx, growing, o)
}

// Serve listens in the place of iotape receive, prints the one stream that is sent, and keeps
// nothing. It reports whether all of the recording came. It returns with the stream's end.
func Serve(ctx context.Context, ln net.Listener, o *Options) (complete bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &printed{o: o, ctx: ctx, ended: cancel}
	err = (&wire.Server{Store: store, Limits: wire.Limits{Conns: 8}, Note: o.Note}).Serve(ctx, ln)
	if printErr := store.wait(); err == nil {
		err = printErr
	}
	return store.complete, err
}

// print prints a stream to its end. It reports whether that was the recording's.
func print(ctx context.Context, in io.Reader, o *Options) (complete bool, err error) {
	stream, _, err := chain.Plain(ctx, in)
	if err != nil {
		return false, err
	}
	p := newPrinter(o)
	stats, err := seal.Watch(ctx, stream, &seal.Viewer{Started: p.head, Seen: p.event, Idle: p.w.Flush, Local: true})
	if flushErr := p.w.Flush(); err == nil {
		err = flushErr
	}
	if errors.Is(err, context.Canceled) {
		return false, nil // by Ctrl-C
	}
	if err != nil {
		return false, err
	}
	if stats.Damage != nil {
		o.Note(stats.Damage.Error())
	}
	return stats.End != nil, nil
}

// matcher returns what picks events: by the recording's own filter, of which a recorder
// does only a part, and by that of the options. It is nil if there is neither.
func matcher(h *trace.Head, o *Options) (*predicate.Matcher, error) {
	g, err := slice.StreamFilter(h, o.Filter)
	if g == nil || err != nil {
		return nil, err
	}
	for _, w := range g.Warnings() {
		o.Note("filter: " + w.Message)
	}
	return g.NewMatcher(), nil
}

// printed is a wire.Store that prints one stream and keeps nothing.
type printed struct {
	o     *Options
	ctx   context.Context
	ended func()

	mu       sync.Mutex
	serial   uint64
	next     uint64
	final    bool // all of it is there
	w        *io.PipeWriter
	done     chan error
	complete bool
}

var errOnlyOne = fmt.Errorf("tail prints one stream at a time: %w", wire.ErrRefused)

// Open implements wire.Store.
func (p *printed) Open(h *pipe.Header, encoded []byte) (wire.Log, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w != nil {
		if p.serial != h.Serial {
			return nil, errOnlyOne
		}
		return p, nil
	}
	var r *io.PipeReader
	r, p.w = io.Pipe()
	p.serial, p.done = h.Serial, make(chan error, 1)
	go func() {
		var err error
		if p.complete, err = print(p.ctx, r, p.o); err == nil {
			_, _ = io.Copy(io.Discard, r) // what follows the recording's end, up to the final block
		}
		r.CloseWithError(err)
		p.done <- err
		p.ended()
	}()
	if _, err := p.w.Write(encoded); err != nil {
		return nil, fmt.Errorf("%w: %w", wire.ErrRefused, err)
	}
	return p, nil
}

// Next implements wire.Log.
func (p *printed) Next() uint64 { return p.next }

// Append implements wire.Log.
func (p *printed) Append(h *pipe.BlockHeader, block []byte) error {
	if _, err := p.w.Write(block); err != nil {
		return fmt.Errorf("%w: %w", wire.ErrRefused, err)
	}
	p.next, p.final = h.Number+1, h.Final
	return nil
}

// Sync implements wire.Log.
func (p *printed) Sync() error { return nil }

// Close implements wire.Log. Unless it has the whole stream, the sender may come back.
func (p *printed) Close() error {
	if p.final {
		return p.w.Close()
	}
	return nil
}

// wait returns how printing ended.
func (p *printed) wait() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		p.complete = true // nothing came
		return nil
	}
	p.w.CloseWithError(io.ErrUnexpectedEOF)
	return <-p.done
}
