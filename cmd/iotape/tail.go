package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/wire"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// tailing prints events as they come.
type tailing struct {
	json   bool
	end    bool // of what is there
	max    int  // bytes shown of a buffer
	listen listenFlags
	filter filterFlags
}

func newTail(c *console) *cobra.Command {
	var t tailing
	cmd := &cobra.Command{
		Use:   "tail ADDRESS|STREAM|TAPE.partial",
		Short: "Print events while they are recorded",
		Long: `Tail prints the events of a recording that is being made, in the form of iotape print.

With an ADDRESS, unix:PATH, tcp://HOST:PORT or tls://HOST:PORT, it listens there in the
place of iotape receive, for iotape record --to, and keeps nothing. With a file it reads
what is there and waits for more, until the recording ends; that can be a file of iotape
record --to, of iotape receive, or the directory TAPE.partial of a recording.

Of a buffer there are the first 64 bytes. Events wait until nothing that comes before
them can arrive, and blocks until they are full, for 200 ms (flush:TIME in --pipe).`,
		Example: `  iotape tail db.tape.partial
  iotape tail tcp://:7070 & iotape record --to tcp://127.0.0.1:7070 -- make
  iotape tail tcp://:7070 --filter 'latency > 10ms and class = data'
  iotape tail --identity reader.key streams/8f3e2a7c11d09b46.stream`,
		Args:        cobra.ExactArgs(1),
		Annotations: exits("0  the recording ended", "1  it broke off, or is damaged", "2  failed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.max < 1 || t.max > 64 {
				return usageError{fmt.Errorf("--max-bytes %d: there are 1 to 64", t.max)}
			}
			if _, err := t.filter.expr(); err != nil {
				return err
			}
			if strings.HasPrefix(args[0], "unix:") || strings.Contains(args[0], "://") {
				return t.fromListener(cmd.Context(), c, args[0])
			}
			return t.fromFile(cmd.Context(), c, args[0])
		},
	}
	f := cmd.Flags()
	f.BoolVar(&t.json, "json", false, "one JSON object per line")
	f.BoolVar(&t.end, "no-wait", false, "print what is there of a file, and do not wait for more")
	f.IntVar(&t.max, "max-bytes", 32, "show the first `N` bytes of each buffer, up to 64")
	t.filter.add(f)
	t.listen.add(cmd)
	return cmd
}

func (t *tailing) fromFile(ctx context.Context, c *console, path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, sealing.StreamName)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	growing := sealing.NewGrowing(f)
	defer growing.Close()
	defer context.AfterFunc(ctx, growing.Close)()
	if t.end {
		growing.Close()
	}
	complete, err := t.print(ctx, c, growing)
	if err == nil && !complete {
		return &statusError{Status: exitFound}
	}
	return err
}

func (t *tailing) fromListener(ctx context.Context, c *console, address string) error {
	ln, err := t.listen.listen(ctx, address)
	if err != nil {
		return err
	}
	defer ln.Close()
	c.say("listening at %s", addressOf(ln, address))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &printed{t: t, c: c, ctx: ctx, ended: cancel}
	err = (&wire.Server{Store: store, Limits: wire.Limits{Conns: 8}, Note: func(line string) { c.say("%s", line) }}).Serve(ctx, ln)
	if printErr := store.wait(); err == nil {
		err = printErr
	}
	if err == nil && !store.complete {
		return &statusError{Status: exitFound}
	}
	return err
}

// print prints a stream to its end. It reports whether that was the recording's.
func (t *tailing) print(ctx context.Context, c *console, in io.Reader) (complete bool, err error) {
	stream, _, err := chain.Plain(ctx, in)
	if err != nil {
		return false, err
	}
	w := bufio.NewWriterSize(c.out, 64<<10)
	var pr *stracetext.Printer
	var m *predicate.Matcher
	var line []byte
	stats, err := seal.Watch(ctx, stream, func(h *trace.Head) (err error) {
		m, err = t.matcher(c, h)
		pr = stracetext.New(&stracetext.Options{MaxBytes: t.max, Clock: stracetext.Elapsed, Hosts: []trace.Host{{Head: *h}}, StartNS: h.ClockNS})
		return err
	}, func(ev *event.Event) error {
		if m != nil && !m.Match(ev) {
			return nil
		}
		if t.json {
			line = pr.AppendJSON(line[:0], ev)
		} else {
			line = pr.Append(line[:0], ev)
		}
		_, err := w.Write(line)
		return err
	}, w.Flush)
	if flushErr := w.Flush(); err == nil {
		err = flushErr
	}
	if errors.Is(err, context.Canceled) {
		return false, nil // by Ctrl-C
	}
	if err != nil {
		return false, err
	}
	if stats.Damage != nil {
		c.say("%v", stats.Damage)
	}
	return stats.End != nil, nil
}

// matcher returns what picks events: by the recording's own filter, of which a recorder
// does only a part, and by that of the flags. It is nil if there is neither.
func (t *tailing) matcher(c *console, h *trace.Head) (*predicate.Matcher, error) {
	x, err := t.filter.expr()
	if err != nil {
		return nil, err
	}
	g, err := slice.StreamFilter(h, x)
	if err != nil {
		return nil, usageError{err}
	}
	if g == nil {
		return nil, nil
	}
	c.warn(g)
	return g.NewMatcher(), nil
}

// printed is a wire.Store that prints one stream and keeps nothing.
type printed struct {
	t     *tailing
	c     *console
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
		if p.complete, err = p.t.print(p.ctx, p.c, r); err == nil {
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
