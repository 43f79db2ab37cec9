// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"fmt"
	"io"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// frames is where a stream's frames come from: a trace.FrameReader.
type frames interface {
	Next() (trace.Frame, []byte, error)
	Offset() int64
}

// streamSink is the sink of a whole stream.
type streamSink interface {
	sink
	store
	// head takes the recording's head, before all events.
	head(*trace.Head) error
	// filterChanged takes the head after the filter in it changed.
	filterChanged(*trace.Head) error
}

// stream takes a whole stream, from its head to its end, through the stages.
type stream struct {
	assembler *assembler
	resolver  *resolver
	sink      streamSink
	stats     *Stats
	local     bool // Here is asked if the head is of this machine
}

func newStream(sink streamSink, stats *Stats) *stream {
	r := newResolver(sink)
	return &stream{assembler: newAssembler(slackNS, sink, r), resolver: r, sink: sink, stats: stats}
}

// ask lets the model ask files, or Here as Options.Local says.
func (s *stream) ask(files posix.FileSystem, local bool) {
	s.local = local && files == nil
	s.resolver.model.Ask(files)
	s.resolver.stacks.symbols.Here = files != nil
}

// read takes the frames up to the end, or to where the stream is damaged.
func (s *stream) read(ctx context.Context, fr frames, progress func(done int64)) error {
	for n := 0; s.stats.End == nil; n++ {
		if n%64 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress(fr.Offset())
			}
		}
		f, payload, err := fr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			if s.stats.Head == nil {
				return err
			}
			s.stats.Damage = err
			break
		}
		if err := s.frame(&f, payload); err != nil {
			return err
		}
	}
	if s.stats.Head == nil && fr.Offset() == 0 {
		return trace.ErrEmpty
	}
	if s.stats.Head == nil {
		return fmt.Errorf("stream without a head frame: %w", trace.ErrTruncated)
	}
	s.stats.Running, s.stats.Until = len(s.assembler.threads), int64(s.assembler.until)
	if err := s.assembler.emit(^uint64(0), true); err != nil {
		return err
	}
	s.stats.Late = s.assembler.late
	s.stats.lose(s.assembler.losses)
	s.stats.Stream = fr.Offset()
	return nil
}

func (s *stream) frame(f *trace.Frame, payload []byte) (err error) {
	switch f.Kind {
	case trace.FrameHead:
		return s.head(payload)
	case trace.FrameEnd:
		s.stats.End, err = trace.ReadEnd(payload)
		return err
	case trace.FrameFilter:
		return s.refilter(payload)
	case trace.FrameRecords:
		if s.stats.Head == nil {
			return fmt.Errorf("records before the head frame: %w", trace.ErrCorrupt)
		}
		if err := s.assembler.begin(f); err != nil {
			return err
		}
		return s.assembler.records(payload)
	}
	return nil // of a newer version
}

// head takes the head. A second one, of streams that were joined, says nothing new.
func (s *stream) head(payload []byte) error {
	if s.stats.Head != nil {
		return nil
	}
	h, err := trace.ReadHead(payload)
	if err != nil {
		return err
	}
	arch, ok := event.ParseArch(h.Arch)
	if !ok {
		return fmt.Errorf("stream of architecture %q, known are amd64 and arm64: %w", h.Arch, trace.ErrNewer)
	}
	s.stats.Head, s.assembler.arch, s.resolver.step = h, arch, h.ResolutionNS
	if s.local && isHere(h) {
		s.ask(Here, false)
	}
	if h.BlockRequests {
		s.resolver.blocks = blocks{}
	}
	if r := h.Rotation; r != nil && r.StateNS != 0 {
		s.resolver.stateAt = r.StateNS
		s.resolver.model.Resume(r.Opens)
	}
	if err := s.resolver.stacks.configure(h, arch); err != nil {
		return err
	}
	return s.sink.head(h)
}

// refilter takes a change of the recording's filter.
func (s *stream) refilter(payload []byte) error {
	if s.stats.Head == nil {
		return fmt.Errorf("a filter before the head frame: %w", trace.ErrCorrupt)
	}
	c, err := trace.ReadFilterChange(payload)
	if err != nil {
		return err
	}
	s.stats.Head.ChangeFilter(c)
	return s.sink.filterChanged(s.stats.Head)
}
