// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/bytesize"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/sink"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/rotate"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/seal"
)

// Rotate says when a recording goes on in another tape, and how many tapes of it are kept.
type Rotate struct {
	Bytes int64         // of the stream of a part; 0: no limit
	Every time.Duration // 0: no limit
	Keep  int           // the last so many tapes; 0: all
}

// minRotate is the least size of a part: each begins with the state of processes and descriptors.
const minRotate = 64 << 10

// ParseRotate reads what the flag --rotate of iotape record says; nil if that is nothing.
func ParseRotate(text string) (*Rotate, error) {
	if text == "" {
		return nil, nil
	}
	r := &Rotate{}
	for item := range strings.SplitSeq(text, ",") {
		if n, isKeep := strings.CutPrefix(item, "keep="); isKeep {
			var err error
			if r.Keep, err = strconv.Atoi(n); err != nil || r.Keep < 1 {
				return nil, fmt.Errorf("--rotate %s: keep=%s: the value must be a number of tapes, 1 or more", text, n)
			}
		} else if d, err := time.ParseDuration(item); err == nil && d > 0 && r.Every == 0 {
			r.Every = d
		} else if size, err := bytesize.Parse(item); err == nil && size > 0 && r.Bytes == 0 {
			r.Bytes = size
		} else {
			return nil, fmt.Errorf("--rotate %s: %q is no size such as 512M, no time such as 10m, and no keep=N", text,
				item)
		}
	}
	switch {
	case r.Bytes == 0 && r.Every == 0:
		return nil, fmt.Errorf("--rotate %s: a size or a time is missing, such as 512M or 10m", text)
	case r.Bytes != 0 && r.Bytes < minRotate:
		return nil, fmt.Errorf("--rotate %s: the size must be %s or more", text, report.Bytes(minRotate))
	}
	return r, nil
}

// CheckRotate returns what of the plan does not go with rotation, if it has one.
func (p *Plan) CheckRotate() error {
	switch {
	case p.Rotate == nil:
	case p.Flight != nil:
		return errors.New("--rotate cannot be used with --last, which keeps the recording in memory")
	case p.To == "-" || strings.HasPrefix(p.To, "device:"):
		return fmt.Errorf("--rotate cannot be used with --to %s, where one recording cannot follow another", p.To)
	case p.To != "" && p.Rotate.Keep > 0 && !toFile(p.To):
		return errors.New("--rotate keep=N cannot be used with a connection: the recordings are at its other end")
	}
	return nil
}

// rotation is one rotated recording under way.
type rotation struct {
	p     *Plan
	quiet sealing.Reporter // without progress: the terminal is the command's
	split *rotate.Splitter
	parts []*part // by number, from 1
	ctx   context.Context

	full   chan *part
	worker sync.WaitGroup
	bytes  int64 // written to where --to says, by parts that are full

	mu    sync.Mutex
	tapes []string // sealed or written elsewhere, and not removed
	count int      // of all such
	err   error    // the first of sealing
}

// partName names the tape of a part.
func (p *Plan) partName(n int) string { return fmt.Sprintf("%s-%d.tape", sealing.TrimTape(p.Tape), n) }

// recordRotated records to one tape after the other.
func recordRotated(ctx context.Context, p *Plan) (*Result, error) {
	if err := p.CheckRotate(); err != nil {
		return nil, err
	}
	p.Capture.Sizes = true // what was written before a part shows in nothing else
	r := &rotation{p: p, quiet: sealing.Quiet(p.reporter()), full: make(chan *part, 1024)}
	sig := p.signals()
	defer sig.Stop()
	r.ctx = sig.Context()
	r.begin()
	started := false
	done := p.Capture.Started
	p.Capture.Started = func(pid int) {
		started = true
		if p.Capture.Running() {
			p.note("recording%s", p.length())
		}
		if done != nil {
			done(pid)
		}
	}
	if err := r.prepare(ctx); err != nil {
		r.discard()
		return nil, err
	}
	r.worker.Go(r.work)
	out := &output{sink: r}
	res, err := p.AnyBackend(func(b *Backend) (*capture.Result, error) { return p.captureWith(b, out) }, func() error {
		out.abort()
		r.discard()
		r.begin()
		return r.prepare(ctx)
	})
	close(r.full)
	var never *CommandError // it was not executed
	started = (started || res != nil) && !errors.As(err, &never)
	if err != nil {
		r.worker.Wait()
		if started {
			if p.To != "" {
				return nil, err
			}
			return nil, hint.With(err, "what was recorded is kept: iotape seal %s", r.last().partial)
		}
		r.discard()
		return nil, err
	}
	return r.finish(sig.Sealing(), res)
}

// begin makes the splitter of a recording that begins.
func (r *rotation) begin() {
	r.split = rotate.New(&rotate.Options{Bytes: r.p.Rotate.Bytes, Every: r.p.Rotate.Every, Open: r.open, Full: r.isFull,
		Files: seal.Here, Now: capture.Clocks})
}

// prepare makes the directory of the first part, with the snapshots in it.
func (r *rotation) prepare(ctx context.Context) error {
	t, err := r.reserve(ctx, 1)
	if err != nil {
		return err
	}
	r.parts = append(r.parts, t)
	if len(r.p.Snapshots) > 0 {
		return sealing.Snapshot(ctx, r.p.Reporter, filepath.Join(t.partial, sealing.BeforeName), r.p.Snapshots,
			r.p.program())
	}
	return nil
}

// Write takes the stream of the recording.
func (r *rotation) Write(b []byte) (int, error) { return r.split.Write(b) }

// open implements rotate.Options.Open.
func (r *rotation) open(n int) (_ rotate.File, err error) {
	if n > len(r.parts) {
		t, err := r.reserve(r.ctx, n)
		if err != nil {
			return nil, err
		}
		r.parts = append(r.parts, t)
	}
	t := r.parts[n-1]
	return t, t.open(r.p)
}

// isFull implements rotate.Options.Full.
func (r *rotation) isFull(n int) error {
	t := r.parts[n-1]
	err := t.end()
	r.full <- t
	return err
}

// last returns the part that is written.
func (r *rotation) last() *part { return r.parts[len(r.parts)-1] }

// discard takes away what was made, for a recording that did not begin.
func (r *rotation) discard() {
	for _, t := range r.parts {
		t.discard()
	}
	r.parts = nil
}

// work seals parts that are full, one after the other. It is a goroutine.
func (r *rotation) work() {
	for t := range r.full {
		if err := r.seal(r.ctx, t, false); err != nil {
			r.mu.Lock()
			if r.err == nil {
				r.err = err
			}
			r.mu.Unlock()
			r.quiet.Problem(err)
		}
	}
}

// seal makes the tape of a part, and removes tapes beyond those that are kept.
func (r *rotation) seal(ctx context.Context, t *part, final bool) error {
	if t.sink != nil {
		return r.sent(t)
	}
	defer r.p.Owner.Give(t.partial, t.tape, streamBeside(t.tape))
	defer t.lock.Unlock()
	if r.p.Seal == SealNever {
		return nil
	}
	job := r.p.job(t.tape)
	job.Here, job.Final, job.Reporter = true, final, r.quiet
	if !final {
		job.Index = nil // iotape query and iotape index make it
	}
	done, err := job.Run(ctx)
	if errors.Is(err, sealing.ErrNothingFits) {
		return os.RemoveAll(t.partial)
	}
	if err != nil {
		return kept(err, "the part of the recording is kept", t.partial)
	}
	r.p.note("%s", done.Summary())
	return r.keep(t.tape)
}

// sent ends the use of where a part was written to.
func (r *rotation) sent(t *part) error {
	defer func() { r.p.Owner.Give(sink.Files(t.to)...) }()
	if err := t.sink.Close(); err != nil {
		return fmt.Errorf("--to %s: %w", t.to, err)
	}
	r.mu.Lock()
	r.bytes += t.counted.n
	r.mu.Unlock()
	return r.keep(t.to)
}

// keep counts what was made of a part, and removes that of earlier ones beyond those that are kept.
func (r *rotation) keep(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tapes = append(r.tapes, name)
	r.count++
	for r.p.Rotate.Keep > 0 && len(r.tapes) > r.p.Rotate.Keep {
		err := os.RemoveAll(r.tapes[0])
		if r.p.To != "" {
			err = removeFiles(r.tapes[0])
		}
		if err != nil {
			return fmt.Errorf("remove the part before the last %d: %w", r.p.Rotate.Keep, err)
		}
		r.tapes = r.tapes[1:]
	}
	return nil
}

// finish ends and seals the last part.
func (r *rotation) finish(ctx context.Context, res *capture.Result) (*Result, error) {
	p, t := r.p, r.last()
	if res.WriteErr != nil {
		p.note("the recording is not whole: %v", res.WriteErr)
		end := EndOf(res)
		end.Lost -= min(end.Lost, r.split.LostBefore())
		if err := t.repair(end); err != nil {
			p.note("end the recording: %v", err)
		}
	}
	err := t.end()
	r.worker.Wait()
	if err != nil && res.WriteErr == nil {
		return nil, err
	}
	if p.To != "" {
		return r.finishSent(t, res)
	}
	if p.Seal == SealNever {
		err = r.seal(ctx, t, true)
		p.note("recorded in %s; to make the tapes: iotape seal", report.Plural(len(r.parts), "part", "parts"))
		return &Result{Capture: res, Partial: t.partial}, err
	}
	if err := r.seal(ctx, t, true); err != nil {
		return nil, err
	}
	if r.err != nil {
		return nil, r.err
	}
	if r.count == 0 {
		p.note("%v", sealing.ErrNothingFits)
		return &Result{Capture: res}, nil
	}
	text := report.Plural(r.count, "tape", "tapes")
	if n := r.count - len(r.tapes); n > 0 {
		text += fmt.Sprintf(", of which the first %d are removed", n)
	}
	p.note("%s: %s", text, strings.Join(ends(r.tapes), " … "))
	return &Result{Capture: res, Tape: t.tape}, nil
}

// finishSent ends the use of where the last part was written to.
func (r *rotation) finishSent(t *part, res *capture.Result) (*Result, error) {
	err := r.sent(t)
	if r.err != nil {
		err = r.err
	}
	if err != nil && res.WriteErr == nil {
		res.WriteErr = err
		r.p.note("the recording is not whole: %v", err)
	}
	where := r.p.To
	if toFile(where) {
		where = strings.Join(ends(r.tapes), " … ")
	}
	r.p.note("%s calls, %s; %s written in %s: %s", report.Count(res.Events), sealing.LostText(res.Lost),
		report.Bytes(uint64(r.bytes)), report.Plural(r.count, "part", "parts"), where)
	return &Result{Capture: res}, nil
}

// ends returns the first and the last of a list.
func ends(list []string) []string {
	if len(list) > 2 {
		return []string{list[0], list[len(list)-1]}
	}
	return list
}
