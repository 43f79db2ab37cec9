// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// Stream is where the records go that a caller captures itself: the stream of a tape that
// is to be made, or a sink. Of several that one capture feeds each has a plan.
type Stream struct {
	*trace.StreamWriter
	p       Plan
	partial string // of a tape
	guard   *spaceGuard
	sink    io.WriteCloser
	counted *countingWriter
	out     *output
	patient *patientSink
	masked  func()         // says how much was masked
	dropped capture.Result // what the output did not accept
}

// OpenStream opens the stream of a plan, of which only the output counts. part numbers the
// recordings of one plan, from 1: files of a sink get the number.
func OpenStream(p *Plan, part int) (*Stream, error) {
	s := &Stream{p: *p}
	if s.p.To != "" {
		if err := s.openSink(part); err != nil {
			return nil, err
		}
		return s, nil
	}
	if err := s.p.CheckTape(); err != nil {
		return nil, err
	}
	s.partial = s.p.partial()
	lock, err := sealing.Reserve(s.partial)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock() // from then on the stream is locked
	if s.guard, err = guardStream(s.partial); err != nil {
		os.RemoveAll(s.partial)
		return nil, err
	}
	s.out = newOutput(s.p.Pipe, s.guard)
	return s, nil
}

func (s *Stream) openSink(part int) error {
	name := s.p.To
	if part > 1 && len(sink.Files(name)) > 0 {
		name = sink.Numbered(name, part)
	}
	w, err := sink.Open(context.Background(), name,
		&sink.Options{Stdout: s.p.stdout(), New: true, Note: func(line string) { s.p.note("%s: %s", s.p.Name, line) }})
	if err != nil {
		return err
	}
	s.p.To = name
	if s.p.Pipe == nil {
		s.p.Pipe = &chain.Spec{}
	}
	s.sink, s.counted = w, &countingWriter{w: w}
	s.out = &output{spec: s.p.Pipe, sink: s.counted}
	return nil
}

// Begin writes the head of the stream.
func (s *Stream) Begin(head *trace.Head) (err error) {
	note := func(format string, args ...any) { s.p.note("%s: "+format, append([]any{s.p.Name}, args...)...) }
	s.patient = newPatientSink(s.out.writer(), s.p.outputHoldMax(), note)
	s.p.markRedacted(head)
	masking, said := s.p.redacted(s.patient, note)
	s.masked = said
	s.StreamWriter, err = trace.NewStreamWriterTo(masking, trace.NewStreamID(), head)
	return err
}

// Close ends the stream.
func (s *Stream) Close(end *trace.End) error {
	defer s.patient.close()
	s.patient.settle(&s.dropped)
	s.masked()
	all := *end
	all.Lost += s.dropped.Lost
	writeErr, err := s.out.end(s.StreamWriter, &all)
	if writeErr == nil {
		writeErr = s.dropped.WriteErr
	}
	if s.guard != nil {
		s.guard.release()
		err = errors.Join(err, s.guard.f.Close())
	} else if closeErr := s.sink.Close(); writeErr == nil {
		writeErr = closeErr
	}
	if writeErr == nil {
		writeErr = err
	}
	return writeErr
}

// Discard takes away what was made, for a recording that did not begin.
func (s *Stream) Discard() {
	if s.patient != nil {
		s.patient.close()
	}
	s.out.abort()
	if s.guard != nil {
		s.guard.release()
		s.guard.f.Close()
		os.RemoveAll(s.partial)
		return
	}
	s.sink.Close()
	if s.counted.n == 0 {
		_ = removeFiles(s.p.To)
	}
}

// Finish makes the tape of a stream that was closed, and says in a line what came of it.
// lost counts the records that are not in it, writeErr is why. final: the target has ended,
// and files are as it left them.
func (s *Stream) Finish(ctx context.Context, lost uint64, writeErr error, final bool) (line string, err error) {
	lost += s.dropped.Lost
	defer s.p.Owner.Give(append(sink.Files(s.p.To), s.partial, s.p.Tape, s.p.keptStream())...)
	if writeErr != nil {
		s.p.note("%s: the recording is not whole: %v", s.p.Name, writeErr)
	}
	if s.p.To != "" {
		return fmt.Sprintf("%s; %s written to %s", sealing.LostText(lost), report.Bytes(uint64(s.counted.n)), s.p.To),
			nil
	}
	if s.p.Seal == SealNever {
		return fmt.Sprintf("%s recorded, %s; %s", report.Bytes(uint64(sealing.DirBytes(s.partial))),
			sealing.LostText(lost), s.p.unsealed()), nil
	}
	job := s.p.job(s.p.Tape)
	job.Final, job.Here = final, true
	done, err := job.Run(ctx)
	if errors.Is(err, sealing.ErrNothingFits) {
		return err.Error(), os.RemoveAll(s.partial)
	}
	if err != nil {
		return "", kept(err, "the recording is kept", s.partial)
	}
	return done.Summary(), nil
}

// removeFiles removes the files of a sink.
func removeFiles(to string) (err error) {
	for _, name := range sink.Files(to) {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
