package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// sealing turns a stream into a tape.
type sealing struct {
	stream   string
	before   string // a tape with the snapshots; it may not exist
	work     string // directory on the file system of out, for the unfinished tape
	out      string
	final    bool            // take the state of the files that the recording touched, as it is now
	index    bool            // make the Parquet files
	keys     *chain.Keys     // that the stream is read with; nil: those of the context
	assembly *trace.Assembly // what part of a longer recording it is; nil: none
	missing  string          // what is declared missing, beside what the stream itself says
	streamTo string          // where the stream goes when it is sealed; "" leaves it where it is
}

// sealed is what came of it.
type sealed struct {
	stats  *seal.Stats
	out    string
	took   time.Duration
	index  time.Duration
	size   int64         // bytes of the tape
	picked *slice.Result // by the recording's filter; nil if it has none
	piped  bool          // the stream was: its bytes in stats are those before its layers
}

// run seals. When it fails the stream is as it was, and there is no tape.
func (s *sealing) run(ctx context.Context, c *console) (*sealed, error) {
	in, err := os.Open(s.stream)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := claim(in); err != nil {
		return nil, err
	}
	fi, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(s.work, holdName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // what a killed recorder held for this
	}
	u, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer u.abandon()
	progress := c.progress(report.Bytes)
	defer progress.Done()
	if err := u.seal(ctx, in, func(done int64) {
		total := fi.Size()
		if u.piped {
			total = 0 // what is done is counted before the layers
		}
		progress.Update("sealing", done, total)
	}); err != nil {
		return nil, err
	}
	progress.Done()
	return u.finish(ctx, c)
}

// unfinished is a tape that is being sealed.
type unfinished struct {
	*sealing
	dir   string
	tw    *trace.TapeWriter
	stats *seal.Stats
	start time.Time
	piped bool // the stream was
	done  bool
}

// begin makes an unfinished tape with the snapshots in it.
func (s *sealing) begin(ctx context.Context) (*unfinished, error) {
	u := &unfinished{sealing: s, dir: filepath.Join(s.work, sealingName), start: time.Now()}
	if err := os.RemoveAll(u.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(s.work, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	var err error
	if u.tw, err = trace.CreateTape(u.dir); err == nil {
		err = stopped(copySnapshots(ctx, u.tw, s.before))
	}
	if err != nil {
		u.abandon()
		return nil, err
	}
	return u, nil
}

// seal reads the stream.
func (u *unfinished) seal(ctx context.Context, in io.Reader, progress func(done int64)) (err error) {
	if u.keys != nil {
		ctx = chain.WithKeys(ctx, u.keys)
	}
	stream, piped, err := chain.Plain(ctx, bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return fmt.Errorf("%s: %w", u.stream, err)
	}
	u.piped = piped
	u.stats, err = seal.Seal(ctx, stream, u.tw, &seal.Options{Progress: progress})
	return stopped(err)
}

// finish completes the tape and gives it its name.
func (u *unfinished) finish(ctx context.Context, c *console) (*sealed, error) {
	m := u.stats.Manifest(program())
	u.assemble(m)
	filter := m.Hosts[0].Filter
	if u.final && filter == "" {
		u.stats.Touched.Leave(c.err) // it has what was said here, too
		kept := m.Hosts[0].Content == capture.Content{}.String()
		if _, err := seal.Final(ctx, u.tw, &u.stats.Touched, kept); err != nil {
			return nil, stopped(fmt.Errorf("take the state of the files: %w", err))
		}
	}
	if err := u.tw.Close(m); err != nil {
		return nil, err
	}
	res := &sealed{stats: u.stats, out: u.out}
	dir := u.dir
	if filter != "" {
		var err error
		if dir, res.picked, err = u.pick(ctx, c, filter); err != nil {
			return nil, err
		}
	}
	if err := u.publish(dir); err != nil {
		return nil, err
	}
	u.done = true
	res.took = time.Since(u.start)
	res.piped = u.piped
	if u.index {
		if err := u.indexOut(ctx, c); err != nil {
			c.say("%v", withHint(err, "the tape is whole without; to make it later: iotape index %s", u.out))
		}
		res.index = time.Since(u.start) - res.took
	}
	res.size = dirBytes(u.out)
	return res, nil
}

// assemble puts into a manifest what is known of the recording beside the stream. A part
// of a longer recording has no end of its own: that it is whole is said elsewhere.
func (u *unfinished) assemble(m *trace.Manifest) {
	m.Assembly = u.assembly
	switch st := u.stats; {
	case u.missing != "":
		m.Incomplete, m.Reason = true, u.missing
	case u.assembly != nil && st.End == nil && st.Damage == nil && st.Lost == 0:
		m.Incomplete, m.Reason = false, ""
	}
}

// abandon takes an unfinished tape away. After finish it does nothing.
func (u *unfinished) abandon() {
	if u.done {
		return
	}
	u.done = true
	if u.tw != nil {
		u.tw.Abort()
	}
	os.RemoveAll(u.dir)
	os.Remove(u.work) // unless the stream is in it
}

// indexOut makes the Parquet files of the new tape.
func (s *sealing) indexOut(ctx context.Context, c *console) error {
	t, err := trace.OpenTape(s.out)
	if err != nil {
		return err
	}
	defer t.Close()
	return index(ctx, c, t)
}

// claim keeps other iotapes from a stream that this one writes or seals, as long as
// the file is open.
func claim(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("%s is being recorded or sealed by another iotape", f.Name())
	}
	return nil // a file system without locks
}

// stopped gives an interrupted sealing its words.
func stopped(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return errors.New("sealing was stopped")
	}
	return fmt.Errorf("seal: %w", err)
}

// publish gives the tape its name and takes away what is no longer needed.
func (s *sealing) publish(unfinished string) error {
	if err := os.Rename(unfinished, s.out); err != nil {
		return err
	}
	if s.streamTo != "" {
		if err := os.Rename(s.stream, s.streamTo); err != nil {
			return err
		}
	}
	return os.RemoveAll(s.work)
}

func trimTape(name string) string {
	const ext = ".tape"
	if filepath.Ext(name) == ext {
		return name[:len(name)-len(ext)]
	}
	return name
}

func dirBytes(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
			n += fi.Size()
		}
		return nil
	})
	return n
}

// snapshot stores the state of directories in a tape without events.
func snapshot(ctx context.Context, c *console, name string, dirs []string) error {
	progress := c.progress(report.Bytes)
	defer progress.Done()
	tw, err := trace.CreateTape(name)
	if err != nil {
		return err
	}
	defer tw.Abort()
	for i, dir := range dirs {
		m, err := seal.Snapshot(ctx, tw, dir, i, func(_ int, bytes int64) { progress.Update("taking the snapshot of "+dir, bytes, 0) })
		if err != nil {
			return fmt.Errorf("snapshot %s: %w", dir, err)
		}
		for _, n := range m.Notes {
			c.say("snapshot: %s: %s", n.Path, n.Text)
		}
	}
	return tw.Close(&trace.Manifest{Program: program()})
}

// copySnapshots copies what snapshot stored into the tape that is being sealed.
func copySnapshots(ctx context.Context, tw *trace.TapeWriter, name string) error {
	if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) || name == "" {
		return nil
	}
	t, err := trace.OpenTape(name)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	defer t.Close()
	copier := trace.NewCopier(t, tw)
	for i := 0; ; i++ {
		file := seal.SnapshotFile(i)
		if _, ok := t.Manifest().Files[file]; !ok {
			return nil
		}
		if err := seal.CopyTree(ctx, copier, file, file); err != nil {
			return err
		}
	}
}

// signals collects what is sent to iotape while it records and seals.
type signals struct {
	c      chan os.Signal
	count  atomic.Int32
	ctx    context.Context
	cancel context.CancelFunc
	quit   chan struct{}
	active atomic.Bool // sealing: signals mean us
}

// catchSignals keeps signals from ending iotape. During the recording package
// internal/ptracer acts on them.
func catchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 4), quit: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var take []os.Signal
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(sig) {
			take = append(take, sig)
		}
	}
	if len(take) > 0 {
		signal.Notify(s.c, take...)
	}
	go s.loop()
	return s
}

func (s *signals) loop() {
	for {
		select {
		case <-s.quit:
			return
		case sig := <-s.c:
			// The first Ctrl-C may have been meant for the command, which ended
			// just before.
			if n := s.count.Add(1); s.active.Load() && (n > 1 || sig != os.Interrupt) {
				s.cancel()
			}
		}
	}
}

// context returns the context of the sealing: the second SIGINT ends it, and any
// SIGTERM or SIGHUP.
func (s *signals) context() context.Context {
	s.active.Store(true)
	return s.ctx
}

func (s *signals) stop() {
	signal.Stop(s.c)
	close(s.quit)
	s.cancel()
}
