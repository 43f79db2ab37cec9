// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/internal/bpf"
)

const (
	defaultRingBytes = 128 << 20
	heldRingBytes    = 16 << 20 // of one ring, where threads are held when it is full: the kernel makes it at once
	minRingBytes     = 64 << 10 // of one ring
	maxShards        = 8
	inlineMax        = 1 << 20 // content bytes in one record
)

// programs is what is loaded into the kernel: the programs, their maps and the
// memory shared with them.
type programs struct {
	objects
	loaded   map[string]*ebpf.Program // those that the recording needs, without those of requests
	requests requestPrograms
	links    []link.Link
	rings    []*ring
	stacks   *stackTaker // nil if stacks are not recorded
	touches  *ring       // what is stored to mapped files (stores.go); nil if that is not wanted
	blocks   *ring       // requests to block devices (block.go); nil if they are not wanted
	places   *places     // where processes run; nil if the filter does not ask
	shared   *bpf.Common
	mmap     capture.Mmap
	unseen   []string // lines about what is not recorded on this kernel
	bss      []byte
	own      bpf.Namespace // whose numbers of processes records have
}

type objects struct {
	iotapeMaps
	Bss *ebpf.Map `ebpf:".bss"`
}

// config is what the programs are told.
type config struct {
	content   capture.Content
	mmap      capture.Mmap
	block     bool
	shards    int
	ringBytes int // of one ring, a power of two
	all       bool
	cgroup    uint64 // its id, 0 if none is followed
	options   *capture.Options

	object func() (*ebpf.CollectionSpec, error) // loadIotape, or what calls it once
}

func newConfig(o *capture.Options, cpus int) config {
	c := config{options: o, object: loadIotape, content: o.Content, mmap: o.Mmap, all: o.All}
	c.block = o.Overflow != capture.OverflowDrop
	c.shards = min(maxShards, 1<<bits.Len(uint(max(cpus, 1)-1)))
	total := o.RingBytes
	if total <= 0 {
		total = defaultRingBytes
		if c.block {
			total = min(total, c.shards*heldRingBytes)
		}
	}
	each := max(total/c.shards, minRingBytes, os.Getpagesize())
	c.ringBytes = 1 << bits.Len(uint(each-1))
	return c
}

// inlineBytes is the content limit of one record: small rings take small records.
func (c *config) inlineBytes() uint64 { return uint64(min(inlineMax, c.ringBytes/8)) }

// Probe says whether this back end can record here what o says: nil, or a *capture.UnsupportedError.
// It loads the programs of such a recording and attaches them, but records nothing. o.Note
// gets what would not be recorded.
func Probe(o *capture.Options) error {
	if err := bpf.CheckRecording(); err != nil {
		return err
	}
	c, err := configure(o)
	if err != nil {
		return err
	}
	p, err := load(&c)
	if err != nil {
		return err
	}
	defer p.close()
	defer bpf.ForgetTypes()
	p.release()
	p.noteUnseen(o)
	return p.attach(&c)
}

// configure returns what the programs are told for a recording.
func configure(o *capture.Options) (config, error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		cpus = 1
	}
	c := newConfig(o, cpus)
	if o.Cgroup != "" {
		if c.cgroup, err = bpf.CgroupID(o.Cgroup); err != nil {
			return c, err
		}
	}
	return c, nil
}

// noteUnseen says what is not recorded on this kernel.
func (p *programs) noteUnseen(o *capture.Options) {
	for _, line := range p.unseen {
		if o.Note != nil {
			o.Note(line)
		}
	}
}

// load loads the programs and makes the rings. Nothing is attached.
func load(c *config) (*programs, error) {
	_ = rlimit.RemoveMemlock() // matters before Linux 5.11 only
	p := &programs{}
	spec, err := p.specification(c)
	if err != nil {
		return nil, err
	}
	dropLines(spec)
	p.requests.take(spec, c.requestsLater())
	ended := make(chan error, 1)
	go func() { ended <- p.makeRings(c) }() // the kernel clears their memory meanwhile
	coll, err := loadAll(spec, loaders())
	ringsErr := <-ended
	if err == nil {
		p.loaded, coll.Programs = coll.Programs, nil
		err = cmp.Or(p.requests.keep(coll.Maps), coll.Assign(&p.objects))
		coll.Close() // what has no field
	}
	if err != nil {
		p.close()
		return nil, bpf.Rejected(err)
	}
	if ringsErr != nil {
		p.close()
		return nil, ringsErr
	}
	if err := p.prepare(c); err != nil {
		p.close()
		return nil, err
	}
	if p.stacks, err = newStackTaker(p, c.options); err != nil {
		p.close()
		return nil, bpf.Rejected(err)
	}
	return p, nil
}

// specification returns what is loaded: the programs, told what they have to know, without
// those that this kernel cannot have.
func (p *programs) specification(c *config) (*ebpf.CollectionSpec, error) {
	spec, err := c.object()
	if err != nil {
		return nil, fmt.Errorf("read the programs: %w", err)
	}
	kernel, err := bpf.KernelTypes()
	if err != nil {
		return nil, err
	}
	has, own, err := bpf.Adapt(spec, kernel)
	if err != nil {
		return nil, err
	}
	p.own = own
	suffixes, n := bpf.Suffixes(c.options.Prefilter)
	placed := c.options.Prefilter != nil && len(c.options.Prefilter.Places) > 0
	for name, v := range map[string]any{
		iotapeVarShardMask:    uint32(c.shards - 1),
		iotapeVarRingBytes:    uint64(c.ringBytes),
		iotapeVarInlineMax:    c.inlineBytes(),
		iotapeVarBlock:        c.block,
		iotapeVarHoldMax:      uint64(answerWithin(c.options.HoldMax)),
		iotapeVarMmapMode:     mmapMode(c.mmap),
		iotapeVarStarted:      uint64(time.Now().Unix() - 1),
		iotapeVarPageShift:    uint32(bits.TrailingZeros(uint(os.Getpagesize()))),
		iotapeVarReadKeep:     readKeep(c.content),
		iotapeVarWholeHost:    c.all,
		iotapeVarBegan:        bpf.Now(),
		iotapeVarCgroupId:     c.cgroup,
		iotapeVarSuffix:       suffixes,
		iotapeVarPlacesMatter: placed,
		iotapeVarSuffixes:     n,
		iotapeVarTellsMisses:  c.options.BlockRequests,
		iotapeVarFilters:      c.options.Prefilter != nil || c.options.Control != nil,

		iotapeVarCopiesEnv:    c.options.Environ != running.EnvNone,
		iotapeVarCopiesUsers:  has.CopiesUsers,
		iotapeVarSignalsTasks: has.SignalsTasks,
		iotapeVarTellsCqe:     tellsPointer(kernel, "io_uring_complete", 2),
	} {
		if err := spec.Variables[name].Set(v); err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	spec.Maps[iotapeMapWorks].MaxEntries = uint32(cpus)
	p.unseen = dropMissing(spec, kernel, c.mmap)
	dropUnused(spec, c.options)
	if n == 0 {
		spec.Maps[iotapeMapNames].MaxEntries = 1
	}
	if !placed {
		spec.Maps[iotapeMapPlaces].MaxEntries = 1
	}
	if c.mmap == capture.MmapOff {
		spec.Maps[iotapeMapKnown].MaxEntries = 1
		spec.Maps[iotapeMapCode].MaxEntries = 1
	}
	return spec, nil
}

// makeRings makes the rings that records are written to.
func (p *programs) makeRings(c *config) error {
	for range c.shards {
		r, err := newRing(c.ringBytes)
		if err != nil {
			return err
		}
		p.rings = append(p.rings, r)
	}
	return nil
}

// loaders is how many programs the kernel verifies at a time.
func loaders() int { return min(runtime.GOMAXPROCS(0), 4) }

// loadAll makes the maps, and loads the programs in n parts at a time.
func loadAll(spec *ebpf.CollectionSpec, n int) (*ebpf.Collection, error) {
	all, err := ebpf.NewCollectionWithOptions(part(spec, nil), ebpf.CollectionOptions{Cache: bpf.Types()})
	if err != nil {
		return nil, err
	}
	if all.Programs, err = loadPrograms(spec, all.Maps, n); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// part is some programs of a specification, with its maps.
func part(spec *ebpf.CollectionSpec, programs map[string]*ebpf.ProgramSpec) *ebpf.CollectionSpec {
	s := *spec
	s.Programs = programs
	return &s
}

// loadPrograms has the kernel verify programs in n parts at a time: this is what starting a
// recording takes long for.
func loadPrograms(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map, n int) (map[string]*ebpf.Program, error) {
	loaded := map[string]*ebpf.Program{}
	parts, errs := make([]*ebpf.Collection, n), make([]error, n)
	var wg sync.WaitGroup
	for i, programs := range shares(spec.Programs, n) {
		wg.Go(func() {
			parts[i], errs[i] = ebpf.NewCollectionWithOptions(part(spec, programs),
				ebpf.CollectionOptions{MapReplacements: maps, Cache: bpf.Types()})
		})
	}
	wg.Wait()
	for _, c := range parts {
		if c == nil {
			continue
		}
		for name := range c.Programs {
			loaded[name] = c.DetachProgram(name)
		}
		c.Close() // its own descriptors of the maps
	}
	for _, err := range errs {
		if err != nil {
			for _, p := range loaded {
				p.Close()
			}
			return nil, err
		}
	}
	return loaded, nil
}

// shares divides programs into n parts of about the same length.
func shares(programs map[string]*ebpf.ProgramSpec, n int) []map[string]*ebpf.ProgramSpec {
	length := func(name string) int { return len(programs[name].Instructions) }
	names := slices.SortedFunc(maps.Keys(programs), func(a, b string) int { // the longest first
		return cmp.Or(-cmp.Compare(length(a), length(b)), cmp.Compare(a, b))
	})
	parts, lengths := make([]map[string]*ebpf.ProgramSpec, n), make([]int, n)
	for i := range parts {
		parts[i] = map[string]*ebpf.ProgramSpec{}
	}
	for _, name := range names {
		i := slices.Index(lengths, slices.Min(lengths))
		parts[i][name] = programs[name]
		lengths[i] += length(name)
	}
	return parts
}

// prepare fills the tables and maps what is shared.
func (p *programs) prepare(c *config) error {
	arch, _ := bpf.Arch()
	rows, numbers := bpf.Rows(arch, c.content), []uint32(nil)
	for nr := range rows {
		numbers = append(numbers, uint32(nr))
		if r := &rows[nr]; nr < bpf.CompatRow {
			r.Prefilter = bpf.PrefilterRow(c.options.Prefilter, c.options.Wakeups, event.Op(r.Op), r.Flags)
		}
	}
	if _, err := p.Table.BatchUpdate(numbers, rows, nil); err != nil {
		return fmt.Errorf("fill the table of calls: %w", err)
	}
	var places []uint32
	var requests []bpf.RequestRow
	for i, r := range bpf.Requests(arch, c.content) {
		places, requests = append(places, i), append(requests, r)
	}
	if _, err := p.RequestTable.BatchUpdate(places, requests, nil); err != nil {
		return fmt.Errorf("fill the table of requests: %w", err)
	}
	keys, caps := bpf.CommandRows(arch)
	if _, err := p.Commands.BatchUpdate(keys, caps, nil); err != nil {
		return fmt.Errorf("fill the table of commands: %w", err)
	}
	for i, r := range p.rings {
		if err := p.Rings.Put(uint32(i), r.m); err != nil {
			return fmt.Errorf("add ring %d: %w", i, err)
		}
	}
	var err error
	if p.bss, p.shared, err = bpf.MapShared(p.Bss); err != nil {
		return err
	}
	bpf.PutPrefilter(p.shared, c.options.Prefilter, c.options.Prefilter)
	p.mmap = c.mmap
	if err := p.prepareBlocks(c.options); err != nil {
		return err
	}
	if p.places, err = newPlaces(p, c); err != nil {
		return err
	}
	return p.prepareMapped()
}

// attach hooks the programs in: from now on each call of the machine looks
// whether its thread is followed.
func (p *programs) attach(c *config) error {
	r, later := &p.requests, c.requestsLater()
	until, exit := p.named("on_exit", "on_sys_exit"), []*ebpf.Program(nil)
	if !later {
		if err := r.load(); err != nil {
			return err
		}
		exit = []*ebpf.Program{r.exit}
	}
	first, last := p.stacks.programs()
	var err error
	if p.links, err = bpf.Attach(p.links, first); err != nil { // before on_sys_exit, which ends the call
		return err
	}
	if r.until, err = bpf.Attach(nil, until); err != nil {
		return err
	}
	p.links, err = bpf.Attach(p.links, slices.Concat(p.named(attached...), exit, p.named("on_sys_enter"), last))
	if err != nil || later {
		return err
	}
	atomic.StoreUint64(&p.shared.RequestPrograms, requestsReady)
	return r.attach()
}

// attached are the programs that are attached, in this order, between on_exit and those of calls.
var attached = slices.Concat([]string{cgroupHook, "on_cgroup_moved"}, wakeupHooks, []string{"on_uring_create"},
	blockHooks, mappedHooks, []string{"on_signal_deliver", "on_signal_generate", "on_exec", "on_fork", "on_contention_end"})

// run are the programs that are not attached, but run when the recorder wants it.
var run = []string{followListed, countFollowed, countMappings}

const (
	cgroupHook    = "on_cgroup_attach"
	followListed  = "follow_listed"
	countFollowed = "count_followed"
	countMappings = "count_mappings"
)

// wakeupHooks tell of wake-ups. Ends come first: a beginning without its end would count for ever.
var wakeupHooks = []string{"on_irq_exit", "on_irq_entry", "on_softirq_exit", "on_softirq_entry",
	"on_timer_exit", "on_timer_entry", "on_waking"}

// dropUnused takes out the programs that not every recording needs and this one does not: to load
// one takes time, however small it is.
func dropUnused(spec *ebpf.CollectionSpec, o *capture.Options) {
	if o.Cgroup == "" {
		delete(spec.Programs, cgroupHook)
	}
	if !o.BlockRequests {
		for _, name := range blockHooks {
			delete(spec.Programs, name)
		}
		spec.Maps[iotapeMapBlockStarted].MaxEntries = 1
		spec.Maps[iotapeMapBlockIos].MaxEntries = uint32(os.Getpagesize())
	}
	if !o.Wakeups {
		for _, name := range wakeupHooks {
			delete(spec.Programs, name)
		}
	}
	if !o.Running() {
		delete(spec.Programs, countFollowed)
	}
}

// dropLines takes the lines of the source out of programs, but for each function's first, which the kernel
// wants: it checks them one by one, and shows them for programs that it refuses only.
func dropLines(spec *ebpf.CollectionSpec) {
	for _, prog := range spec.Programs {
		for i := range prog.Instructions {
			if ins := &prog.Instructions[i]; ins.Source() != nil && ins.Symbol() == "" {
				*ins = ins.WithSource(nil)
			}
		}
	}
}

// named returns programs that were loaded; those that were dropped are left out.
func (p *programs) named(names ...string) (list []*ebpf.Program) {
	for _, name := range names {
		if prog := p.loaded[name]; prog != nil {
			list = append(list, prog)
		}
	}
	return list
}

func (p *programs) detach() {
	closeLinks(&p.links)
	p.requests.detach()
}

func (p *programs) close() {
	p.detach()
	for _, r := range p.rings {
		r.close()
	}
	if p.touches != nil {
		p.touches.close()
	}
	if p.blocks != nil {
		p.blocks.close()
	}
	p.stacks.close()
	if p.bss != nil {
		_ = unix.Munmap(p.bss)
		p.bss, p.shared = nil, nil
	}
	if p.Bss != nil {
		p.Bss.Close()
	}
	p.requests.close()
	for _, prog := range p.loaded {
		prog.Close()
	}
	p.iotapeMaps.Close()
}

// follow makes a thread a followed one, unless it is already.
func (p *programs) follow(tid int, st bpf.Task) error {
	l := bpf.Lister{Listed: p.Listed, Program: p.loaded[followListed]}
	if err := l.Follow(p.Tasks, tid, st); err != nil {
		return fmt.Errorf("follow thread %d: %w", tid, err)
	}
	err := bpf.Follow(p.Faults, tid, iotapeFault{})
	if err != nil && !errors.Is(err, unix.EINVAL) { // else the program did so, too
		return fmt.Errorf("follow the page faults of thread %d: %w", tid, err)
	}
	return nil
}

// release makes the programs record nothing more, and hold no more threads.
func (p *programs) release() { atomic.StoreUint64(&p.shared.Release, 1) }
