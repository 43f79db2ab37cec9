package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
)

// piping is what to do to a stream.
type piping struct {
	apply   string
	undo    bool
	salvage bool
	check   bool
	json    bool
	to      string
}

func newPipe(c *console) *cobra.Command {
	var p piping
	cmd := &cobra.Command{
		Use:   "pipe [--apply CHAIN | --undo | --check] [-o TO] [FILE]",
		Short: "Compress, checksum, encrypt a stream; undo that; or check it block by block",
		Long: `Pipe takes a file, or standard input, through a chain of layers in any order, as
iotape record --pipe does while it records:

  async[:BLOCKS]                a queue between the layers before and after it
  zstd[:LEVEL]                  compress; levels 1 to 22
  s2[:better|:best]             compress, faster
  checksum[:@FILE|:env:NAME]    keyed checksums; without a key, against accidents only
  encrypt:RECIPIENT[+…]         for the holders of secret keys: age1…, or @FILE
  block:SIZE  flush:TIME        bytes of a block, and how long they wait for it

--undo takes all layers off again, with --identity and --key. --check reads a piped stream,
names every block that was changed, replaced, removed, moved, replayed or is of another
stream, and whether the end was cut off, and says how many blocks are good. For what it
has no key it says so, and checks the rest. With neither, pipe says what the file is.

TO is a file, or what iotape record --to takes: docs/pipes.md. A piped FILE that goes
there as it is keeps its blocks.`,
		Example: `  iotape keygen --checksum -o sum.key
  iotape pipe --apply zstd:3,checksum:@sum.key -o db.piped db.stream
  iotape pipe --check --key sum.key db.piped
  iotape pipe --undo --key sum.key db.piped | iotape raw /dev/stdin
  iotape pipe -o tcp://collector:7070 db.piped`,
		Args:        cobra.MaximumNArgs(1),
		Annotations: exits("0  done; with --check, nothing is wrong", "1  done, and something is wrong with the stream; it is named", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := c.in
			if len(args) > 0 && args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			return p.run(cmd.Context(), c, in)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.apply, "apply", "", "take FILE through the layers of `CHAIN`")
	f.BoolVar(&p.undo, "undo", false, "take the layers off")
	f.BoolVar(&p.salvage, "salvage", false, "with --undo: name what is wrong, and go on with what is good")
	f.BoolVar(&p.check, "check", false, "name what is wrong")
	f.BoolVar(&p.json, "json", false, "with --check: one JSON object")
	f.StringVarP(&p.to, "output", "o", "-", "write `TO` there; standard output if not given")
	cmd.MarkFlagsMutuallyExclusive("apply", "undo", "check")
	return cmd
}

func (p *piping) run(ctx context.Context, c *console, in *os.File) error {
	switch {
	case p.salvage && !p.undo:
		return usageError{errors.New("--salvage goes with --undo")}
	case p.json && !p.check:
		return usageError{errors.New("--json goes with --check")}
	case p.check:
		return p.runCheck(ctx, c, in)
	case p.undo:
		return p.runUndo(ctx, c, in)
	case p.apply != "":
		return p.runApply(ctx, c, in)
	}
	if p.to != "-" {
		return p.runCopy(ctx, c, in)
	}
	h, err := pipe.ReadHeader(in)
	if err != nil {
		return err
	}
	return c.print(func(w *bufio.Writer) error {
		_, err := fmt.Fprintf(w, "stream %016x, layers %s, blocks of %s\n", h.Serial, h.Chain(), report.Bytes(uint64(h.BlockBytes)))
		return err
	})
}

// open opens what is to be written.
func (p *piping) open(ctx context.Context, c *console) (io.WriteCloser, error) {
	return sink.Open(ctx, p.to, &sink.Options{Stdout: c.out, New: true})
}

func (p *piping) runApply(ctx context.Context, c *console, in io.Reader) error {
	spec, err := chain.Parse(p.apply)
	if err != nil {
		return usageError{fmt.Errorf("--apply: %w", err)}
	}
	out, err := p.open(ctx, c)
	if err != nil {
		return err
	}
	defer out.Close()
	w, err := pipe.NewWriter(out, spec.Layers, &spec.Options)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, contextReader{ctx, in}); err != nil {
		w.Abort()
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

func (p *piping) runUndo(ctx context.Context, c *console, in io.Reader) error {
	faults := 0
	var o pipe.ReadOptions
	if p.salvage {
		o.OnFault = func(f *pipe.Fault) error {
			faults++
			c.say("%v", f)
			return nil
		}
	}
	r, err := pipe.NewReader(in, chain.KeysOf(ctx).Open, &o)
	if err != nil {
		return err
	}
	out, err := p.open(ctx, c)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, contextReader{ctx, r}); err != nil {
		var fault *pipe.Fault
		if errors.As(err, &fault) {
			return &statusError{exitFound, hint.With(fault, "--salvage goes on behind what is bad; what was written until here is good")}
		}
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if faults > 0 {
		return &statusError{Status: exitFound}
	}
	return nil
}

// runCopy brings the blocks of a piped stream somewhere else.
func (p *piping) runCopy(ctx context.Context, c *console, in io.Reader) error {
	s, err := pipe.NewScanner(in)
	if err != nil {
		return hint.With(err, "--apply makes a piped stream")
	}
	out, err := p.open(ctx, c)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(s.Encoded()); err != nil {
		return err
	}
	var block []byte
	for {
		h, payload, err := s.Next()
		if err == io.EOF {
			return out.Close()
		}
		if err != nil {
			return &statusError{exitFound, fmt.Errorf("at offset %d: %w", s.Offset(), err)}
		}
		block = append(append(block[:0], make([]byte, pipe.BlockHeaderBytes)...), payload...)
		h.Put(block)
		if _, err := out.Write(block); err != nil {
			return err
		}
	}
}

// checked is what --check found.
type checked struct {
	Serial  string        `json:"serial"`
	Chain   string        `json:"chain"`
	Good    uint64        `json:"good"`
	Bad     uint64        `json:"bad"`
	Bytes   int64         `json:"bytes"` // plain ones, of good blocks, if all layers could be undone
	Faults  []faultLine   `json:"faults"`
	Lacking string        `json:"lacking,omitempty"` // why not all layers were looked at
	faults  []*pipe.Fault // for people
}

type faultLine struct {
	Kind   string `json:"kind"`
	Block  uint64 `json:"block"`
	Last   uint64 `json:"last,omitempty"`
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

// maxFaults bounds what is listed.
const maxFaults = 10000

func (p *piping) runCheck(ctx context.Context, c *console, in *os.File) error {
	res := &checked{Faults: []faultLine{}}
	open := func(h *pipe.Header) ([]pipe.Decoder, error) {
		d, lacking, err := chain.KeysOf(ctx).OpenSome(h)
		if lacking != nil {
			res.Lacking = lacking.Error()
		}
		return d, err
	}
	found := 0
	o := &pipe.ReadOptions{Rest: !isDevice(in), OnFault: func(f *pipe.Fault) error {
		if found++; found <= maxFaults {
			res.faults = append(res.faults, f)
			res.Faults = append(res.Faults, faultLine{f.Kind.String(), f.Block, f.Last, f.Offset, f.Error()})
		}
		return ctx.Err()
	}}
	r, err := pipe.NewReader(contextReader{ctx, in}, open, o)
	if err != nil {
		return err
	}
	if err := r.Discard(); err != nil {
		return err
	}
	res.Serial, res.Chain = fmt.Sprintf("%016x", r.Header().Serial), r.Header().Chain()
	res.Good, res.Bad, res.Bytes = r.Counts()
	err = c.print(func(w *bufio.Writer) error {
		if p.json {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(res)
		}
		return res.text(w)
	})
	if err == nil && found > 0 {
		return &statusError{Status: exitFound}
	}
	return err
}

func (res *checked) text(w *bufio.Writer) error {
	for _, f := range res.faults {
		fmt.Fprintln(w, oneLine(f.Error()))
	}
	if len(res.faults) == maxFaults {
		fmt.Fprintln(w, "… and more")
	}
	if res.Lacking != "" {
		fmt.Fprintf(w, "not all was looked at: %s\n", res.Lacking)
	}
	_, err := fmt.Fprintf(w, "stream %s, layers %s: %s good, %s bad\n", res.Serial, res.Chain, report.Plural(int(res.Good), "block", "blocks"), report.Count(res.Bad))
	return err
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
