// SPDX-License-Identifier: Apache-2.0

package viewmodel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web/spanindex"
)

// tape is a tape with the index of its lanes.
type tape struct {
	*trace.Tape
	contents
	index *spanindex.Index
	close func() error
	hosts []hostState
	rows  []int // of lanes: the row that shows it alone, or its process
}

// hostState is where a host's times are in the picture.
type hostState struct {
	shift int64 // added to its monotonic times, ns
	row   int
}

// build writes the index of a tape.
func build(ctx context.Context, t *trace.Tape, w io.Writer, progress func(done uint64)) error {
	buffered := bufio.NewWriterSize(w, 1<<20)
	b := spanindex.NewBuilder(buffered)
	l := &laner{contents: contents{Version: indexVersion, Tape: t.Identity()}, now: map[threadKey]int{}}
	number := &contentNumber{hashes: t.NewHashReader()}
	n := uint64(0)
	for ev, err := range t.Events() {
		if n++; n&0xfff == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if progress != nil {
				progress(n)
			}
		}
		if err != nil {
			l.Damaged++
			continue
		}
		if i, s, ok := l.see(ev, number); ok {
			if err := b.Add(i, &s); err != nil {
				return err
			}
		}
	}
	extra, err := json.Marshal(&l.contents)
	if err != nil {
		return err
	}
	if err := b.Finish(extra); err != nil {
		return err
	}
	return buffered.Flush()
}

// openTape opens the index that a tape has, or makes it: in the tape, if that can be
// written, else in a file without a name.
func openTape(ctx context.Context, t *trace.Tape, progress func(done uint64)) (*tape, error) {
	if f, err := t.OpenDerived(trace.TimelineName); err == nil {
		if x, err := load(t, f); err == nil {
			return x, nil
		}
		f.Close() // of another state of the tape, another version, or damaged: made again
	}
	f, err := makeIndex(ctx, t, progress)
	if err != nil {
		return nil, err
	}
	x, err := load(t, f)
	if err != nil {
		f.Close()
	}
	return x, err
}

// makeIndex makes the index in the tape or, if that cannot be written, in a file without a
// name.
func makeIndex(ctx context.Context, t *trace.Tape, progress func(done uint64)) (*os.File, error) {
	if f, err := t.CreateDerived(trace.TimelineName); err == nil {
		defer f.Close()
		if err := build(ctx, t, f, progress); err != nil {
			return nil, err
		}
		if err := f.Commit(); err == nil {
			return t.OpenDerived(trace.TimelineName)
		}
	}
	f, err := os.CreateTemp("", "iotape-timeline")
	if err != nil {
		return nil, fmt.Errorf("make the index of the time line: %w", err)
	}
	os.Remove(f.Name()) // it stays open
	if err := build(ctx, t, f, progress); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// inMemory makes the index of a tape in memory.
func inMemory(ctx context.Context, t *trace.Tape, progress func(done uint64)) (*tape, error) {
	var b bytes.Buffer
	if err := build(ctx, t, &b, progress); err != nil {
		return nil, err
	}
	return newTape(t, bytes.NewReader(b.Bytes()), int64(b.Len()), func() error { return nil })
}

func load(t *trace.Tape, f *os.File) (*tape, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", f.Name())
	}
	return newTape(t, f, st.Size(), f.Close)
}

func newTape(t *trace.Tape, r io.ReaderAt, size int64, closing func() error) (*tape, error) {
	index, err := spanindex.Open(r, size)
	if err != nil {
		return nil, err
	}
	x := &tape{Tape: t, index: index, close: closing}
	if err := json.Unmarshal(index.Extra(), &x.contents); err != nil {
		return nil, fmt.Errorf("index of the time line: %w: %w", err, trace.ErrCorrupt)
	}
	if x.Version != indexVersion || x.contents.Tape != t.Identity() || len(x.Lanes) < index.Lines() ||
		len(x.Lanes) > maxLanes+1 || len(x.Places) > maxPlace {
		return nil, fmt.Errorf("the index of the time line is not the tape's: %w", trace.ErrCorrupt)
	}
	return x, nil
}

// sum returns all of a lane as one mark.
func (t *tape) sum(lane int) (m spanindex.Mark) {
	if lane < t.index.Lines() {
		m = t.index.Sum(lane)
	}
	return m
}
