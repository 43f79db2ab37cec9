// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// While a recording is made it is in the directory NAME.tape.partial, which has:
const (
	PartialSuffix = ".partial"    // of the directory's name
	StreamName    = "stream"      // the recording itself
	BeforeName    = "before.tape" // the state of the snapshot directories, a tape without events
	HoldName      = "hold"        // room on the disk that sealing will need
	tapeName      = "tape"        // what is being sealed; renamed in the end
)

// Indexer makes the files that are derived from a whole tape. Package store has one.
type Indexer func(ctx context.Context, t *trace.Tape) error

// Job says what stream is sealed, and to which tape.
type Job struct {
	Stream string // file
	Before string // a tape with the snapshots; it may not exist
	Work   string // directory on the file system of Out, for the unfinished tape
	Out    string // the tape
	// Final takes the state of the files that the recording touched, as it is now.
	Final bool
	// Here says that the recording was made on this machine just now.
	Here bool
	// Local lets names be resolved with this machine's files if the recording was made here since the machine started.
	Local bool
	Index Indexer // called when the tape has its name; nil: nobody
	// IndexFrom is of how many events on a tape is indexed; who needs the index of a smaller one makes it.
	IndexFrom uint64
	Keys      *chain.Keys     // the stream is read with them; nil: those of the context
	Assembly  *trace.Assembly // the part of a longer recording that this is; nil: none
	Missing   string          // what is declared missing, beside what the stream itself says
	StreamTo  string          // where the stream goes when it is sealed; "" leaves it where it is
	Program   string          // name and version of the program, for the manifest
	Reporter  Reporter        // nil: Silent
	// Messages is a file that the Reporter writes to: its own state is not taken. nil: none.
	Messages *os.File
}

// Plan finds out what is to be sealed: path is a directory NAME.tape.partial or a stream. An
// empty out is derived from it.
func Plan(path, out string) (*Job, error) {
	path = strings.TrimRight(path, "/")
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	j := &Job{Stream: path, Out: out}
	if fi.IsDir() {
		j.Stream, j.Before, j.Work = filepath.Join(path, StreamName), filepath.Join(path, BeforeName), path
		if _, err := os.Stat(j.Stream); err != nil {
			return nil, hint.With(fmt.Errorf("%s has no stream to seal", path),
				"it is a tape already? iotape check %s", path)
		}
		if j.Out == "" {
			j.Out = strings.TrimSuffix(path, PartialSuffix)
		}
		if j.Out == path {
			return nil, ErrNoName
		}
	} else {
		if j.Out == "" {
			j.Out = strings.TrimSuffix(path, ".stream") + ".tape"
		}
		j.Work = j.Out + PartialSuffix
	}
	return j, MustNotExist(j.Out, "choose another name, or remove it")
}

// ErrNoName is returned by Plan if no name can be derived for the tape.
var ErrNoName = errors.New("no name can be derived for the tape: name it with -o")

// Result is what came of a Job.
type Result struct {
	Stats    *seal.Stats
	Tape     string // its name
	Took     time.Duration
	Indexing time.Duration
	Size     int64         // bytes of the tape
	Picked   *slice.Result // by the recording's filter; nil if it has none
	Piped    bool          // the stream was: its bytes in Stats are those before its layers
}

// Summary describes the tape in a line.
func (r *Result) Summary() string {
	lost := LostText(r.Stats.Lost)
	took := "sealed in " + report.Duration(r.Took.Nanoseconds())
	if r.Indexing > 0 {
		took += ", indexed in " + report.Duration(r.Indexing.Nanoseconds())
	}
	if p := r.Picked; p != nil {
		return fmt.Sprintf("%s events fit the filter, %s with them of %s that were recorded, %s; %s to %s (%s)",
			report.Count(p.Picked), report.Count(p.Context), report.Count(r.Stats.Events), lost, took,
			r.Tape, report.Bytes(uint64(r.Size)))
	}
	content := report.Bytes(uint64(max(r.Stats.Bytes, 0))) + " of content"
	if h := r.Stats.Head; h != nil && h.Content == noContent {
		content = "no content"
	}
	return fmt.Sprintf("%s events, %s, %s; %s to %s (%s)", report.Count(r.Stats.Events), content, lost, took, r.Tape,
		report.Bytes(uint64(r.Size)))
}

// LostText says how many records are lost, in capitals if there are any.
func LostText(records uint64) string {
	if records > 0 {
		return "LOST " + report.Count(records)
	}
	return "lost 0"
}

// Run seals. When it fails the stream is as it was, and there is no tape.
func (j *Job) Run(ctx context.Context) (*Result, error) {
	in, err := wholefile.OpenGiven(ctx, j.Stream)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := Claim(in); err != nil {
		return nil, err
	}
	fi, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(j.Work, HoldName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // what a killed recorder held for this
	}
	u, err := j.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer u.Abandon()
	progress := u.Reporter.Progress(report.Bytes)
	defer progress.Done()
	if err := u.Seal(ctx, in, func(done int64) {
		total := fi.Size()
		if u.piped {
			total = 0 // what is done is counted before the layers
		}
		progress.Update("sealing", done, total)
	}); err != nil {
		return nil, err
	}
	progress.Done()
	return u.Finish(ctx)
}

// Unfinished is a tape that is being sealed. Begin makes it; Seal fills it; Finish gives it
// its name; Abandon removes it, unless it is finished.
type Unfinished struct {
	Job
	dir   string
	tw    *trace.TapeWriter
	stats *seal.Stats
	start time.Time
	piped bool // the stream was
	done  bool
	lock  *wholefile.Dir // of Work, unless that is a recording
}

// Begin makes an unfinished tape with the snapshots in it.
func (j *Job) Begin(ctx context.Context) (*Unfinished, error) {
	u := &Unfinished{Job: *j, dir: filepath.Join(j.Work, tapeName), start: time.Now()}
	u.Reporter = OrSilent(u.Reporter)
	if err := os.RemoveAll(u.dir); err != nil {
		return nil, err
	}
	var err error
	if _, err = os.Lstat(filepath.Join(j.Work, StreamName)); err != nil { // else it is the recording's own
		if u.lock, err = Reserve(j.Work); err != nil {
			return nil, err
		}
	}
	if u.tw, err = trace.CreateTape(u.dir); err == nil {
		err = stopped(copySnapshots(ctx, u.tw, j.Before))
	}
	if err != nil {
		u.Abandon()
		return nil, err
	}
	return u, nil
}

// Seal reads the stream. progress, if it is not nil, is called now and then with the bytes
// that were read.
func (u *Unfinished) Seal(ctx context.Context, in io.Reader, progress func(done int64)) (err error) {
	if u.Keys != nil {
		ctx = chain.WithKeys(ctx, u.Keys)
	}
	stream, piped, err := chain.Plain(ctx, bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return fmt.Errorf("%s: %w", u.Stream, err)
	}
	u.piped = piped
	o := &seal.Options{Progress: progress, Local: u.Local}
	if u.Final || u.Here {
		o.Files = seal.Here
	}
	u.stats, err = seal.Seal(ctx, stream, u.tw, o)
	return stopped(err)
}

// noContent is what it says of one that keeps none.
const noContent = "none"

// allContent is what the manifest of a recording says that keeps all bytes.
const allContent = "full"

// Finish completes the tape and gives it its name.
func (u *Unfinished) Finish(ctx context.Context) (*Result, error) {
	m := u.stats.Manifest(u.Program)
	u.assemble(m)
	filter := m.Hosts[0].Filter
	if u.Final && filter == "" {
		if u.Messages != nil {
			u.stats.Touched.Leave(u.Messages) // it has what was said here, too
		}
		kept := m.Hosts[0].Content == allContent && m.Hosts[0].Redact == ""
		if _, err := seal.Final(ctx, u.tw, &u.stats.Touched, kept); err != nil {
			return nil, stopped(fmt.Errorf("take the state of the files: %w", err))
		}
	}
	if err := u.tw.Close(m); err != nil {
		return nil, err
	}
	res := &Result{Stats: u.stats, Tape: u.Out, Piped: u.piped}
	dir := u.dir
	if filter != "" {
		var err error
		if dir, res.Picked, err = u.applyFilter(ctx, filter); err != nil {
			return nil, err
		}
	}
	if err := u.publish(dir); err != nil {
		return nil, err
	}
	u.done = true
	u.unlock()
	res.Took = time.Since(u.start)
	if u.Index != nil && u.stats.Events >= u.IndexFrom {
		u.index(ctx)
		res.Indexing = time.Since(u.start) - res.Took
	}
	res.Size = DirBytes(u.Out)
	return res, nil
}

// assemble puts into a manifest what is known of the recording beside the stream. A part
// of a longer recording has no end of its own: that it is whole is said elsewhere.
func (u *Unfinished) assemble(m *trace.Manifest) {
	m.Assembly = u.Assembly
	switch st := u.stats; {
	case u.Missing != "":
		m.Incomplete, m.Reason = true, u.Missing
	case u.Assembly != nil && st.End == nil && st.Damage == nil && st.Lost == 0:
		m.Incomplete, m.Reason = false, ""
	}
}

// Abandon takes an unfinished tape away. After Finish it does nothing.
func (u *Unfinished) Abandon() {
	if u.done {
		return
	}
	u.done = true
	if u.tw != nil {
		u.tw.Abort()
	}
	os.RemoveAll(u.dir)
	os.Remove(u.Work) // unless the stream is in it
	u.unlock()
}

func (u *Unfinished) unlock() {
	if u.lock != nil {
		u.lock.Unlock()
		u.lock = nil
	}
}

// index makes the derived files of the new tape.
func (j *Job) index(ctx context.Context) {
	if j.Index == nil {
		return
	}
	t, err := trace.Open(j.Out)
	if err == nil {
		err = errors.Join(j.Index(ctx, t), t.Close())
	}
	if err != nil {
		OrSilent(j.Reporter).Problem(hint.With(err, "the tape is whole without; to make it later: iotape index %s",
			j.Out))
	}
}

// Claim keeps other programs from a stream that this one writes or seals, as long as the
// file is open.
func Claim(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s is being recorded or sealed by another iotape", f.Name())
	}
	return nil // a file system without locks
}

// stopped says what failed, or that sealing was cancelled.
func stopped(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return ErrStopped
	}
	return fmt.Errorf("seal: %w", err)
}

// ErrStopped is returned if the context ended while a tape was being sealed.
var ErrStopped = errors.New("sealing was stopped")

// publish gives the tape its name and takes away what is no longer needed.
func (j *Job) publish(unfinished string) error {
	if err := os.Rename(unfinished, j.Out); err != nil {
		return err
	}
	if j.StreamTo != "" {
		if err := os.Rename(j.Stream, j.StreamTo); err != nil {
			return err
		}
	}
	return os.RemoveAll(j.Work)
}
