// SPDX-License-Identifier: Apache-2.0

package count

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/internal/bpf"
)

// Options says what is counted, and when it is read out.
type Options struct {
	By aggregate.By
	// Interval is the time between two read-outs, from MinInterval to MaxInterval; 0 is
	// one second.
	Interval time.Duration
	// Rows is how many rows there is room for in an interval, besides the one for the
	// rest; 0 is as many as fit into 64 MiB, at most 16384: a row takes 1.2 KiB for each
	// CPU.
	Rows int
}

// Limits of Options.Interval. The kernel counts the calls of a bucket with 32 bits.
const (
	MinInterval = 100 * time.Millisecond
	MaxInterval = time.Minute

	countMemory  = 64 << 20
	maxCountRows = 16384
	minCountRows = 256
	countBatch   = 4 << 20 // bytes of a map that are read at a time

	idlePause = 100 * time.Millisecond // between two looks at whether there is an end
)

// otherOp is the operation of the row for the rest (bpf/count.c).
const otherOp = 0xffff

// Run counts the calls of what o says instead of recording them, and hands each
// read-out to each, the last one when all has ended. Of o, Content, Overflow, Mmap,
// RingBytes and Wakeups do not matter; Prefilter has to be exact (predicate.Graph.Exact).
//
// Nobody is traced with ptrace: what is counted can be recorded or debugged meanwhile,
// and any number of Runs go on side by side. If each returns an error, counting ends
// with it. Result.Events is the number of calls.
func Run(
	ctx context.Context, o *capture.Options, co *Options, each func(*aggregate.IntervalSnapshot) error,
) (*capture.Result, error) {
	if err := bpf.Check(); err != nil {
		return nil, err
	}
	c := &counter{o: o, co: *co}
	if c.co.Interval == 0 {
		c.co.Interval = time.Second
	}
	if c.co.Interval < MinInterval || c.co.Interval > MaxInterval {
		return nil, fmt.Errorf("interval %s is not from %s to %s", c.co.Interval, MinInterval, MaxInterval)
	}
	defer c.close() // also of what was made before an error
	if err := c.load(); err != nil {
		return nil, err
	}
	return c.run(ctx, each)
}

// Counting returns Run with its options bound, as package analyze/aggregate/meter takes it. What
// comes of it is put into res.
func Counting(
	o *capture.Options, rows int, res *capture.Result,
) func(context.Context, aggregate.By, time.Duration, func(*aggregate.IntervalSnapshot) error) error {
	return func(ctx context.Context, by aggregate.By, interval time.Duration,
		each func(*aggregate.IntervalSnapshot) error) error {
		r, err := Run(ctx, o, &Options{By: by, Interval: interval, Rows: rows}, each)
		if r != nil {
			*res = *r
		}
		return err
	}
}

// counter is a Run under way.
type counter struct {
	o       *capture.Options
	co      Options
	objects countingObjects
	links   []link.Link
	bss     []byte
	shared  *bpf.Common
	cpus    int
	rows    int
	maps    [2]*ebpf.Map // take turns
	using   int          // which of them is in use
	since   time.Time    // it was
	calls   uint64       // of all read-outs
	known   map[int]bool // threads that were found

	lost, untracked uint64 // as told

	keys   []countCountKey // of a part of a map that is being read
	values []countCounts
}

type countingObjects struct {
	CountEnter     *ebpf.Program `ebpf:"count_enter"`
	CountExit      *ebpf.Program `ebpf:"count_exit"`
	CountFork      *ebpf.Program `ebpf:"count_fork"`
	CountEnd       *ebpf.Program `ebpf:"count_end"`
	CountFollowed  *ebpf.Program `ebpf:"count_followed"`
	FollowListed   *ebpf.Program `ebpf:"follow_listed"`
	OnCgroupAttach *ebpf.Program `ebpf:"on_cgroup_attach"`
	InUse          *ebpf.Map     `ebpf:"in_use"`
	Table          *ebpf.Map     `ebpf:"table"`
	Tasks          *ebpf.Map     `ebpf:"tasks"`
	Listed         *ebpf.Map     `ebpf:"listed"`
	Bss            *ebpf.Map     `ebpf:".bss"`
}

func (c *counter) load() error {
	_ = rlimit.RemoveMemlock() // matters before Linux 5.11 only
	spec, err := loadCount()
	if err != nil {
		return fmt.Errorf("read the programs: %w", err)
	}
	if c.cpus, err = ebpf.PossibleCPU(); err != nil {
		return fmt.Errorf("count CPUs: %w", err)
	}
	var cgroup uint64
	if c.o.Cgroup != "" {
		if cgroup, err = bpf.CgroupID(c.o.Cgroup); err != nil {
			return err
		}
	}
	kernel, err := bpf.KernelTypes()
	if err != nil {
		return err
	}
	defer bpf.ForgetTypes()
	if _, _, err := bpf.Adapt(spec, kernel); err != nil {
		return err
	}
	suffixes, n := bpf.Suffixes(c.o.Prefilter)
	for name, v := range map[string]any{
		countVarWholeHost: c.o.All, countVarBegan: bpf.Now(), countVarCgroupId: cgroup,
		countVarSuffix: suffixes, countVarSuffixes: n,
		countVarExact: true, countVarBy: uint32(c.co.By),
	} {
		if err := spec.Variables[name].Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	spec.Maps[countMapWorks].MaxEntries = uint32(c.cpus)
	if c.co.By&aggregate.ByExtension == 0 {
		spec.Maps[countMapExtensions].MaxEntries = 1
	}
	if n == 0 {
		spec.Maps[countMapNames].MaxEntries = 1
		if c.co.By&aggregate.ByExtension == 0 {
			spec.Maps[countMapWorks].MaxEntries = 1
		}
	}
	each := 2 * c.cpus * int(unsafe.Sizeof(countCounts{}))
	if c.rows = c.co.Rows; c.rows <= 0 {
		c.rows = min(max(countMemory/each, minCountRows), maxCountRows)
	}
	inner := spec.Maps[countMapInUse].InnerMap.Copy()
	inner.MaxEntries = uint32(c.rows + 1)
	for i := range c.maps {
		if c.maps[i], err = ebpf.NewMap(inner); err != nil {
			return fmt.Errorf("make room for %d rows: %w", c.rows, err)
		}
		if err := c.clear(c.maps[i], nil); err != nil {
			return err
		}
	}
	if err := spec.LoadAndAssign(&c.objects, &ebpf.CollectionOptions{Cache: bpf.Types()}); err != nil {
		return bpf.Rejected(err)
	}
	if c.bss, c.shared, err = bpf.MapShared(c.objects.Bss); err != nil {
		return err
	}
	bpf.PutPrefilter(c.shared, c.o.Prefilter, c.o.Prefilter)
	return c.fill()
}

// fill fills the table of calls, and puts the first map to use.
func (c *counter) fill() error {
	arch, _ := bpf.Arch()
	for nr, r := range bpf.Rows(arch, capture.Content{}) {
		r.Prefilter = bpf.ExactRow(c.o.Prefilter, event.Op(r.Op))
		if err := c.objects.Table.Put(uint32(nr), r); err != nil {
			return fmt.Errorf("fill the table of calls: %w", err)
		}
	}
	return c.use(0)
}

// use puts a map to use. When it returns, no program uses the other one: the kernel
// waits for those that run when user space changes a map of maps.
func (c *counter) use(i int) error {
	if err := c.objects.InUse.Put(uint32(0), c.maps[i]); err != nil {
		return fmt.Errorf("change the counters in use: %w", err)
	}
	c.using = i
	return nil
}

// attach hooks the programs in, those first that end what others begin.
func (c *counter) attach() error {
	programs := []*ebpf.Program{c.objects.CountEnd, c.objects.CountFork, c.objects.CountExit, c.objects.CountEnter}
	if c.o.Cgroup != "" {
		programs = append(programs, c.objects.OnCgroupAttach)
	}
	links, err := bpf.Attach(nil, programs)
	if c.links = links; err != nil {
		return err
	}
	c.since = time.Now()
	return nil
}

func (c *counter) close() {
	for _, l := range c.links {
		l.Close()
	}
	for _, m := range c.maps {
		m.Close()
	}
	if c.bss != nil {
		_ = unix.Munmap(c.bss)
	}
	for _, p := range []*ebpf.Program{
		c.objects.CountEnter, c.objects.CountExit, c.objects.CountFork,
		c.objects.CountEnd, c.objects.CountFollowed, c.objects.FollowListed, c.objects.OnCgroupAttach,
	} {
		p.Close()
	}
	for _, m := range []*ebpf.Map{c.objects.InUse, c.objects.Table, c.objects.Tasks, c.objects.Listed, c.objects.Bss} {
		m.Close()
	}
}

// run counts to the end, or until ctx is done.
func (c *counter) run(ctx context.Context, each func(*aggregate.IntervalSnapshot) error) (*capture.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	ended := make(chan ending, 1)
	if !c.o.Running() {
		if err := c.attach(); err != nil {
			return nil, err
		}
		l, err := c.launch(cancel)
		if err != nil {
			return nil, err
		}
		defer l.Close()
		go func() {
			st, err := l.Wait()
			ended <- ending{st, err}
		}()
	} else if err := c.join(); err != nil {
		return nil, err
	}
	res := &capture.Result{}
	tick := time.NewTicker(c.co.Interval)
	defer tick.Stop()
	look := time.NewTicker(idlePause)
	defer look.Stop()
	for done, running := false, !c.o.Running(); ; {
		due := false
		select {
		case <-ctx.Done():
			done = true
		case e := <-ended:
			if e.err != nil {
				return nil, launchError(e.err)
			}
			running, res.ExitStatus, res.Signal = false, e.status.Exit, int(e.status.Signal)
			done = c.idle()
		case <-look.C:
			done = !running && c.idle()
		case <-tick.C:
			due = true
		}
		if !done && !due {
			continue
		}
		r, err := c.readOut(done)
		if err != nil {
			return nil, err
		}
		if err := each(r); err != nil {
			return nil, err
		}
		if done {
			res.Events, res.Lost, res.Elapsed = c.calls, c.lost+c.untracked, time.Since(began)
			return res, nil
		}
	}
}

type ending struct {
	status ptracer.Status
	err    error
}

// launchError tells what this machine lacks from what is wrong with the command.
func launchError(err error) error {
	var se *ptracer.SetupError
	if errors.As(err, &se) {
		return bpf.Unsupported(se.Feature, se.Err)
	}
	return err
}

func (c *counter) follow(tid int, task bpf.Task) error {
	l := bpf.Lister{Listed: c.objects.Listed, Program: c.objects.FollowListed}
	return l.Follow(c.objects.Tasks, tid, task)
}

// launch starts the command.
func (c *counter) launch(cancel func()) (*ptracer.Launched, error) {
	l, err := ptracer.Launch(&ptracer.Command{
		Argv: c.o.Command, Dir: c.o.Dir, Env: c.o.Env, Credential: c.o.Credential,
		Files: [3]*os.File{c.o.Stdin, c.o.Stdout, c.o.Stderr},
		Gate: func(pid int) error {
			if err := c.follow(pid, bpf.Task{Flags: bpf.TaskBeforeExec}); err != nil {
				return fmt.Errorf("follow process %d: %w", pid, err)
			}
			return nil
		},
	}, cancel)
	if err != nil {
		return nil, launchError(err)
	}
	if c.o.Started != nil {
		c.o.Started(l.PID)
	}
	return l, nil
}

// join follows what runs already, again and again until no thread is new: those that are
// not followed yet may make others. Of the whole machine the programs find all threads
// themselves.
func (c *counter) join() error {
	if c.o.All {
		for _, pid := range bpf.OwnProcesses() {
			for _, tid := range running.Threads(pid) {
				_ = c.follow(tid, bpf.Task{Flags: bpf.TaskExcluded}) // ended
			}
		}
	}
	if err := c.attach(); err != nil {
		return err
	}
	c.known = map[int]bool{}
	for fresh := !c.o.All; fresh; {
		fresh = false
		for _, pid := range bpf.Targets(c.o) {
			for _, tid := range running.Threads(pid) {
				if !c.known[tid] {
					c.known[tid], fresh = true, true
					_ = c.follow(tid, bpf.Task{Flags: bpf.TaskJoined, Enter: bpf.Now()}) // ended
				}
			}
		}
	}
	if len(c.known) == 0 && len(c.o.PIDs) > 0 {
		return &capture.NoProcessError{PIDs: c.o.PIDs}
	}
	if c.o.Started != nil {
		c.o.Started(0)
	}
	return nil
}

// idle reports whether nothing is left to count.
func (c *counter) idle() bool {
	switch {
	case c.o.All:
		return false
	case c.o.Cgroup != "":
		_, err := os.Stat(c.o.Cgroup)
		return errors.Is(err, os.ErrNotExist)
	}
	n, err := bpf.CountFollowed(c.objects.CountFollowed, &c.shared.Followed)
	return err == nil && n == 0
}

// readOut puts the other map to use, and returns what this one has.
func (c *counter) readOut(last bool) (*aggregate.IntervalSnapshot, error) {
	old := c.maps[c.using]
	if err := c.use(1 - c.using); err != nil {
		return nil, err
	}
	at := time.Now()
	r := &aggregate.IntervalSnapshot{
		Table: aggregate.NewTable(c.co.By, c.rows),
		At:    at, Elapsed: max(at.Sub(c.since), 1), Last: last,
	}
	c.since = at
	if err := c.clear(old, r.Table); err != nil {
		return nil, err
	}
	r.Lost, r.Untracked = since(&c.shared.Lost[0], &c.lost), since(&c.shared.Untracked, &c.untracked)
	return r, nil
}

// since returns by how much a number of the programs' has grown, and notes that it is told.
func since(n, told *uint64) uint64 {
	now := atomic.LoadUint64(n)
	more := now - *told
	*told = now
	return more
}

// clear moves what a map that is not in use has into a table, and makes it ready for use.
func (c *counter) clear(m *ebpf.Map, t *aggregate.Table) error {
	if c.keys == nil {
		c.keys = make([]countCountKey, min(max(countBatch/(c.cpus*int(unsafe.Sizeof(countCounts{}))), 32), 512))
	}
	var cursor ebpf.MapBatchCursor
	for more := t != nil; more; {
		if len(c.values) < len(c.keys)*c.cpus {
			c.values = make([]countCounts, len(c.keys)*c.cpus)
		}
		n, err := m.BatchLookupAndDelete(&cursor, c.keys, c.values, nil)
		if errors.Is(err, unix.ENOSPC) { // a bucket has more
			c.keys = make([]countCountKey, 2*len(c.keys))
			continue
		}
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("read the counters: %w", err)
		}
		more = err == nil
		for i := range n {
			c.take(t, &c.keys[i], c.values[i*c.cpus:(i+1)*c.cpus])
		}
	}
	other := countCountKey{Op: otherOp}
	if err := m.Put(other, make([]countCounts, c.cpus)); err != nil {
		return fmt.Errorf("make the row for the rest: %w", err)
	}
	return nil
}

// take adds a row of the kernel's.
func (c *counter) take(t *aggregate.Table, k *countCountKey, cpus []countCounts) {
	var sum aggregate.Counts
	for i := range cpus {
		v := &cpus[i]
		sum.Calls += v.Calls
		sum.Failed += v.Failed
		sum.Unfinished += v.Unfinished
		sum.Read += v.Read
		sum.Written += v.Written
		sum.NS += v.Ns
		sum.MaxNS = max(sum.MaxNS, v.Max)
		for b, n := range v.Buckets {
			sum.Latency[b] += uint64(n)
		}
	}
	if sum.Calls == 0 {
		return // the row for the rest, unused
	}
	c.calls += sum.Calls
	key := aggregate.Key{
		Op: event.Op(k.Op), UID: k.Uid, PID: k.Pid,
		Comm: words(k.Comm), Ext: words(k.Ext), Octave: k.Octave,
	}
	if k.Op == otherOp {
		key = aggregate.Key{Other: true}
	}
	t.Add(key, &sum)
}

// words returns the text that stands in two words, up to a NUL.
func words(w [2]uint64) string {
	var b [16]byte
	binary.NativeEndian.PutUint64(b[:], w[0])
	binary.NativeEndian.PutUint64(b[8:], w[1])
	text, _, _ := bytes.Cut(b[:], []byte{0})
	return string(text)
}
