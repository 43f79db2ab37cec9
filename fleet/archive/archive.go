// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// Options for Run.
type Options struct {
	Data    string // the collector's directory
	Store   objectstore.Store
	Program string // name and version of the sealing program, for the tapes
	// Reporter reports what a filter leaves out of a tape. It may be nil.
	Reporter sealing.Reporter
	// Stored is called for each tape in the store, perhaps twice for one if a run was killed.
	// After an error the tape waits for the next run. It may be nil.
	Stored func(ctx context.Context, t *Stored) error
	// Settle is how long a stream waits, after its end, for one that continues it. 0 means
	// a minute, a negative value no time.
	Settle time.Duration
	Clock  func() time.Time        // nil is time.Now
	Note   func(line string)       // prints a message for the administrator; may be nil
	After  func(step string) error // called after each step, for tests; may be nil

	sealWith func(ctx context.Context, s *sealRequest) error // for tests; nil is sealStreams
}

// sealRequest describes a tape to make.
type sealRequest struct {
	Streams    []string // files, one after the other
	Bytes      []int64  // the end of the complete frames of each; of the last one its size
	Assembly   *trace.Assembly
	Incomplete string // what the tape lacks, "" if nothing
	Work       string // a directory for unfinished files, which the caller removes
	Out        string // the tape, on the same file system
}

// Stored is a tape in the store.
type Stored struct {
	Dir      string // the local copy of the tape, until the callback returns
	Location string
	Bytes    int64
}

// Result is what a run did.
type Result struct {
	Tapes, Streams int
	Bytes          int64 // of the tapes
	Refused        int   // streams that were quarantined
	Waiting        int   // streams that may still be continued
}

// stateName is the directory of jobs in the collector's data.
const stateName = "archive"

const (
	jobsName    = "jobs"
	refusedName = "refused"
	lockName    = "lock"
)

// run is one Run.
type run struct {
	Options
	result Result
}

// Run makes tapes of the staged streams that have ended, and stores them. First it continues
// the jobs that an earlier run left. It reports what it cannot read in the staging area.
func Run(ctx context.Context, o *Options) (Result, error) {
	r := &run{Options: *o}
	if r.sealWith == nil {
		r.sealWith = r.sealStreams
	}
	if r.Clock == nil {
		r.Clock = time.Now
	}
	if r.Note == nil {
		r.Note = func(string) {}
	}
	if r.After == nil {
		r.After = func(string) error { return nil }
	}
	switch {
	case r.Settle == 0:
		r.Settle = time.Minute
	case r.Settle < 0:
		r.Settle = 0
	}
	if err := wholefile.MkdirOwn(r.jobs(), 2, 0o700); err != nil {
		return r.result, err
	}
	unlock, err := r.lock()
	if err != nil {
		return r.result, err
	}
	defer unlock()
	return r.result, r.all(ctx)
}

func (r *run) state() string { return filepath.Join(r.Data, stateName) }
func (r *run) jobs() string  { return filepath.Join(r.state(), jobsName) }

// jobParts is how many of the last parts of a job directory's name are below the data.
const jobParts = 3

func (r *run) lock() (unlock func(), err error) {
	f, err := wholefile.OpenOwn(filepath.Join(r.state(), lockName), 2, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is being archived by another iotape", r.Data)
	}
	return func() { f.Close() }, nil
}

// all continues the jobs that exist, and begins new ones. If a job fails, the others go on,
// unless the store has failed: then all of them would fail.
func (r *run) all(ctx context.Context) error {
	entries, err := wholefile.ReadDirOwn(r.jobs(), 2)
	if err != nil {
		return err
	}
	var errs []error
	taken := map[string]bool{} // streams of jobs that failed
	end := func(j *job) (stop bool) {
		err := r.finish(ctx, j)
		if err == nil {
			return false
		}
		errs = append(errs, fmt.Errorf("%s of %s: %w", j.Plan.Streams[0], j.Plan.Assembly.Host, err))
		for _, name := range j.Plan.Streams {
			taken[r.streamDir(j, name)] = true
		}
		return ctx.Err() != nil || errors.As(err, new(storeError))
	}
	for _, e := range entries {
		dir := filepath.Join(r.jobs(), e.Name())
		j, err := openJob(dir)
		switch {
		case err != nil:
			return err // its streams are unknown
		case j == nil: // not begun yet, or ended
			if err := wholefile.RemoveOwn(dir, jobParts); err != nil {
				return err
			}
		case end(j):
			return errors.Join(errs...)
		}
	}
	streams, damaged, err := staging.Find(r.Data)
	if err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			r.Note(line)
		}
	}
	for i := range damaged {
		errs = append(errs, r.quarantine(&damaged[i]))
	}
	for _, g := range groups(streams, taken, r.Clock(), r.Settle) {
		if !g.ready {
			r.result.Waiting += len(g.streams)
			continue
		}
		j, err := r.begin(&g)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if end(j) {
			break
		}
	}
	return errors.Join(errs...)
}

// quarantine moves a directory that cannot be read, if it is not the collector's.
func (r *run) quarantine(d *staging.Damaged) error {
	why := strings.ReplaceAll(d.Err.Error(), "\n", "; ")
	if !d.Finished {
		r.Note(fmt.Sprintf("%s; the collector quarantines it when it starts", why))
		return nil
	}
	to, err := staging.Quarantine(d.Dir, filepath.Join(r.state(), refusedName), why)
	if err != nil {
		return fmt.Errorf("quarantine stream %s of %s: %w", d.Stream, d.Host, err)
	}
	r.result.Refused++
	r.Note(fmt.Sprintf("stream %s of %s cannot be read, and is quarantined in %s: %s", d.Stream, d.Host, to, why))
	return nil
}

// storeError is an error of the store: all other jobs would fail with it.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

// begin writes the plan of a job. The streams of earlier jobs are already removed.
func (r *run) begin(g *group) (*job, error) {
	p := g.plan()
	if err := p.check(); err != nil {
		return nil, err
	}
	j := &job{dir: filepath.Join(r.jobs(), p.Assembly.Host+"-"+p.Streams[0]), Plan: p}
	if err := wholefile.MkdirOwn(j.dir, jobParts, 0o700); err != nil {
		return nil, err
	}
	if err := staging.WriteFile(filepath.Join(j.dir, planName), jobParts+1, &p); err != nil {
		return nil, err
	}
	return j, r.After("plan")
}

// finish continues a job to its end.
func (r *run) finish(ctx context.Context, j *job) error {
	steps := []struct {
		done string // the file that marks the step as done
		do   func(context.Context, *job) error
	}{{tapeName, r.seal}, {storedName, r.store}, {toldName, r.tell}}
	at := 0
	for i, s := range steps {
		if _, err := os.Lstat(filepath.Join(j.dir, s.done)); err == nil {
			at = i + 1
		}
	}
	if b, err := wholefile.ReadOwn(filepath.Join(j.dir, refusedName), jobParts+1, maxPlan); err == nil {
		return r.refuse(j, strings.TrimSpace(string(b)))
	}
	if why := j.Plan.Headless; why != "" {
		return r.refuse(j, why)
	}
	for _, s := range steps[at:] {
		err := s.do(ctx, j)
		switch {
		case errors.Is(err, trace.ErrEmpty) && j.Plan.Events == 0:
			r.Note(fmt.Sprintf("stream %s of %s has no events, and no tape is made: %s", j.Plan.Streams[0],
				j.Plan.Assembly.Host, j.Plan.Incomplete))
			return r.remove(j)
		case errors.Is(err, sealing.ErrNothingFits):
			r.Note(fmt.Sprintf("%s: %v", j.Plan.Streams[0], err))
			return r.remove(j)
		case s.done == tapeName && unreadable(err):
			return r.refuse(j, err.Error())
		case err != nil:
			return err
		}
		if err := r.After(s.done); err != nil {
			return err
		}
	}
	return r.remove(j)
}

// unreadable reports whether an error is about the streams, not about this machine at the
// moment.
func unreadable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, sealing.ErrStopped) {
		return false
	}
	return !errors.As(err, new(*fs.PathError)) && !errors.As(err, new(*os.LinkError)) &&
		!errors.As(err, new(syscall.Errno))
}

func (r *run) streamDir(j *job, stream string) string {
	return staging.Dir(r.Data, j.Plan.Assembly.Host, stream)
}

func (r *run) seal(ctx context.Context, j *job) error {
	s := &sealRequest{Assembly: &j.Plan.Assembly, Incomplete: j.Plan.Incomplete, Work: filepath.Join(j.dir, workName),
		Out: filepath.Join(j.dir, tapeName)}
	for i, name := range j.Plan.Streams {
		file := filepath.Join(r.streamDir(j, name), staging.StreamFile)
		n, err := size(file)
		if err != nil {
			return err
		}
		if i < len(j.Plan.Streams)-1 { // an incomplete frame would hide those of the next stream
			if _, n, err = whole(file, false); err != nil && !errors.Is(err, trace.ErrTruncated) &&
				!errors.Is(err, errNoFrame) {
				return err
			}
		}
		s.Streams, s.Bytes = append(s.Streams, file), append(s.Bytes, n)
	}
	if err := wholefile.RemoveOwn(s.Work, jobParts+1); err != nil {
		return err
	}
	if err := r.sealWith(ctx, s); err != nil {
		return err
	}
	return objectstore.SyncDirs(j.dir, j.dir)
}

// size returns how long a staged stream is, if it is a regular file.
func size(stream string) (int64, error) {
	f, err := wholefile.OpenOwn(stream, staging.StreamParts, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return fi.Size(), nil
}

// sealStreams seals streams each of which continues the one before. After an error of this
// machine (a file, the context) another run tries again; after others they are quarantined.
func (r *run) sealStreams(ctx context.Context, s *sealRequest) error {
	job := &sealing.Job{
		Stream: s.Streams[0], Work: s.Work, Out: s.Out, Assembly: s.Assembly, Missing: s.Incomplete,
		Program: r.Program, Reporter: r.Reporter,
	}
	var parts []io.Reader
	for i, name := range s.Streams {
		f, err := wholefile.OpenOwn(name, staging.StreamParts, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		plain, _, err := chain.Plain(ctx, bufio.NewReaderSize(io.LimitReader(f, s.Bytes[i]), 1<<20))
		if err != nil {
			return err
		}
		parts = append(parts, plain)
	}
	u, err := job.Begin(ctx)
	if err != nil {
		return err
	}
	defer u.Abandon()
	if err := u.Seal(ctx, io.MultiReader(parts...), nil); err != nil {
		return err
	}
	_, err = u.Finish(ctx)
	return err
}

// manifestOf reads the manifest of a local tape and returns the expected files by name,
// including the manifest itself.
func manifestOf(dir string) (map[string]trace.FileSum, error) {
	b, err := os.ReadFile(filepath.Join(dir, trace.ManifestName))
	if err != nil {
		return nil, err
	}
	m, err := trace.ParseManifest(b)
	if err != nil {
		return nil, err
	}
	files := maps.Clone(m.Files)
	if files == nil {
		files = map[string]trace.FileSum{}
	}
	files[trace.ManifestName] = sumOf(b)
	return files, nil
}

func sumOf(b []byte) trace.FileSum {
	h := blake3.Sum256(b)
	return trace.FileSum{Bytes: int64(len(b)), BLAKE3: hex.EncodeToString(h[:])}
}

// order puts the manifest last.
func order(files map[string]trace.FileSum) []string {
	names := slices.Sorted(maps.Keys(files))
	names = slices.DeleteFunc(names, func(s string) bool { return s == trace.ManifestName })
	return append(names, trace.ManifestName)
}

// store puts a tape into the store, and reads it back.
func (r *run) store(ctx context.Context, j *job) error {
	dir := filepath.Join(j.dir, tapeName)
	files, err := manifestOf(dir)
	if err != nil {
		return err
	}
	t := Stored{Location: r.Store.Location(j.Plan.Key)}
	for _, name := range order(files) {
		key := j.Plan.Key + "/" + name
		if compare(ctx, r.Store, key, files[name]) != nil { // missing or incomplete
			if err := r.Store.Put(ctx, key, filepath.Join(dir, name)); err != nil {
				return storeError{err}
			}
			if err := compare(ctx, r.Store, key, files[name]); err != nil {
				return storeError{fmt.Errorf("read back the stored tape: %w", err)}
			}
		}
		t.Bytes += files[name].Bytes
		if err := r.After("put"); err != nil {
			return err
		}
	}
	return staging.WriteFile(filepath.Join(j.dir, storedName), jobParts+1, &t)
}

// compare reads a file of a store and returns how it differs from what is expected.
func compare(ctx context.Context, s objectstore.Store, key string, want trace.FileSum) error {
	in, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	defer in.Close()
	return copySum(ctx, io.Discard, in, s.Location(key), want)
}

// copySum copies a file and returns how it differs from what is expected.
func copySum(ctx context.Context, out io.Writer, in io.Reader, name string, want trace.FileSum) error {
	h := blake3.New()
	n, err := io.Copy(io.MultiWriter(out, h), io.LimitReader(objectstore.Reader(ctx, in), want.Bytes+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if n != want.Bytes || hex.EncodeToString(h.Sum(nil)) != want.BLAKE3 {
		return fmt.Errorf("%s is not what the tape's manifest says: %w", name, trace.ErrCorrupt)
	}
	return nil
}

// tell reports a stored tape.
func (r *run) tell(ctx context.Context, j *job) error {
	t := &Stored{Dir: filepath.Join(j.dir, tapeName), Location: r.Store.Location(j.Plan.Key)}
	files, err := manifestOf(t.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		t.Bytes += f.Bytes
	}
	if r.Stored != nil {
		if err := r.Stored(ctx, t); err != nil {
			return err
		}
	}
	if err := staging.WriteFile(filepath.Join(j.dir, toldName), jobParts+1, t); err != nil {
		return err
	}
	r.result.Tapes++
	r.result.Bytes += t.Bytes
	return nil
}

// remove removes the streams of a job, and then the job.
func (r *run) remove(j *job) error {
	// Without a tape, as no event matches its filter, all steps count as done.
	if _, err := os.Lstat(filepath.Join(j.dir, toldName)); errors.Is(err, fs.ErrNotExist) {
		if err := staging.WriteFile(filepath.Join(j.dir, toldName), jobParts+1, struct{}{}); err != nil {
			return err
		}
	}
	gone := filepath.Join(j.dir, removedName)
	if err := r.move(j, gone); err != nil {
		return err
	}
	r.result.Streams += len(j.Plan.Streams)
	return r.drop(j)
}

// move moves the streams of a job to another directory.
func (r *run) move(j *job, to string) error {
	within, err := filepath.Rel(r.Data, to)
	if err != nil {
		return err
	}
	if err := wholefile.MkdirBelow(r.Data, within, 0o700); err != nil {
		return err
	}
	for _, name := range j.Plan.Streams {
		from, err := filepath.Rel(r.Data, r.streamDir(j, name))
		if err == nil {
			err = ignoreGone(wholefile.RenameBelow(r.Data, from, filepath.Join(within, name)))
		}
		if err != nil {
			return err
		}
		if err := r.After("move"); err != nil {
			return err
		}
	}
	return objectstore.SyncDirs(to, to)
}

// drop ends a job by removing its plan.
func (r *run) drop(j *job) error {
	if err := ignoreGone(os.Remove(filepath.Join(j.dir, planName))); err != nil {
		return err
	}
	if err := r.After("drop"); err != nil {
		return err
	}
	return wholefile.RemoveOwn(j.dir, jobParts)
}

// refuse quarantines the streams of a job, with a file that says why.
func (r *run) refuse(j *job, why string) error {
	if err := writeText(filepath.Join(j.dir, refusedName), jobParts+1, why); err != nil {
		return err
	}
	to := filepath.Join(r.state(), refusedName, j.Plan.Assembly.Host)
	if err := r.move(j, to); err != nil {
		return err
	}
	if err := writeText(filepath.Join(to, j.Plan.Streams[0]+".why"), 4, why); err != nil {
		return err
	}
	r.result.Refused += len(j.Plan.Streams)
	r.Note(fmt.Sprintf("stream %s of %s cannot be sealed, and is quarantined in %s: %s", j.Plan.Streams[0],
		j.Plan.Assembly.Host, to, why))
	return r.drop(j)
}

// writeText makes a file with one line, whose last parts are below the data.
func writeText(name string, parts int, line string) error {
	f, err := wholefile.OpenOwn(name, parts, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
