package ebpf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
)

const (
	defaultRingBytes = 128 << 20
	minRingBytes     = 64 << 10 // of one ring
	maxShards        = 8
	inlineMax        = 1 << 20 // content bytes in one record
)

// programs is what is loaded into the kernel: the programs, their maps and the
// memory shared with them.
type programs struct {
	objects
	links   []link.Link
	rings   []*ring
	touches *ring // what is stored to mapped files (stores.go); nil if that is not wanted
	shared  *iotapeCommon
	mmap    capture.Mmap
	noUring bool // the kernel has no io_uring
	bss     []byte
}

type objects struct {
	iotapeObjects
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
}

func newConfig(o *capture.Options, cpus int) config {
	c := config{options: o, content: o.Content, mmap: o.Mmap, all: o.All, block: o.Overflow != capture.OverflowDrop}
	c.shards = min(maxShards, 1<<bits.Len(uint(max(cpus, 1)-1)))
	total := o.RingBytes
	if total <= 0 {
		total = defaultRingBytes
	}
	each := max(total/c.shards, minRingBytes, os.Getpagesize())
	c.ringBytes = 1 << bits.Len(uint(each-1))
	return c
}

// inlineBytes is the content limit of one record: small rings take small records.
func (c *config) inlineBytes() uint64 { return uint64(min(inlineMax, c.ringBytes/8)) }

// Probe says whether this back end works here: nil, or a *capture.UnsupportedError.
func Probe() error {
	if err := probeFeatures(); err != nil {
		return err
	}
	p, err := load(&config{options: &capture.Options{}, block: true, shards: 1, ringBytes: minRingBytes})
	if err != nil {
		return err
	}
	p.close()
	return nil
}

func unsupported(feature string, err error) error {
	return &capture.UnsupportedError{Backend: name, Feature: feature, Reason: err}
}

func probeFeatures() error {
	if _, ok := nativeArch(); !ok {
		return unsupported("an x86-64 or arm64 machine", nil)
	}
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		if errors.Is(err, unix.EPERM) {
			return unsupported("root's right to load programs into the kernel (CAP_BPF)", err)
		}
		return unsupported("ring buffers (Linux 5.8)", err)
	}
	if err := features.HaveMapType(ebpf.TaskStorage); err != nil {
		return unsupported("storage per thread in the kernel (Linux 5.11)", err)
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return unsupported("the kernel's type information (CONFIG_DEBUG_INFO_BTF)", err)
	}
	for _, kfunc := range []string{"bpf_probe_read_user_dynptr", "bpf_probe_read_user_str_dynptr", "bpf_rdonly_cast"} {
		var f *btf.Func
		if err := spec.TypeByName(kfunc, &f); err != nil {
			return unsupported("the kernel function "+kfunc+" (Linux 6.16)", err)
		}
	}
	return nil
}

// load loads the programs and makes the rings. Nothing is attached.
func load(c *config) (*programs, error) {
	_ = rlimit.RemoveMemlock() // matters before Linux 5.11 only
	spec, err := loadIotape()
	if err != nil {
		return nil, fmt.Errorf("read the programs: %w", err)
	}
	for name, v := range map[string]any{
		iotapeVarShardMask: uint32(c.shards - 1),
		iotapeVarRingBytes: uint64(c.ringBytes),
		iotapeVarInlineMax: c.inlineBytes(),
		iotapeVarBlock:     c.block,
		iotapeVarMmapMode:  mmapMode(c.mmap),
		iotapeVarStarted:   uint64(time.Now().Unix() - 1),
		iotapeVarPageShift: uint32(bits.TrailingZeros(uint(os.Getpagesize()))),
		iotapeVarReadKeep:  readKeep(c.content),
		iotapeVarRecorder:  uint32(os.Getpid()),
		iotapeVarWholeHost: c.all,
		iotapeVarBegan:     now(),
		iotapeVarCgroupId:  c.cgroup,
		iotapeVarSuffix:    screenSuffixes(c.options.Screen),
		iotapeVarSuffixes:  suffixCount(c.options.Screen),
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

	p := &programs{}
	if p.noUring, err = dropMissing(spec, c.mmap); err != nil {
		return nil, err
	}
	coll, err := loadAll(spec, min(runtime.GOMAXPROCS(0), 4))
	if err == nil {
		err = coll.Assign(&p.objects)
		coll.Close() // what has no field
	}
	if err != nil {
		var ve *ebpf.VerifierError
		if errors.As(err, &ve) {
			err = fmt.Errorf("%+v", ve)
		}
		return nil, unsupported("its programs to be accepted by the kernel", err)
	}
	if err := p.prepare(c); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// loadAll makes the maps, and has the kernel verify the programs in n parts at a time:
// this is what starting a recording takes long for.
func loadAll(spec *ebpf.CollectionSpec, n int) (*ebpf.Collection, error) {
	part := func(programs map[string]*ebpf.ProgramSpec) *ebpf.CollectionSpec {
		s := *spec
		s.Programs = programs
		return &s
	}
	all, err := ebpf.NewCollection(part(nil))
	if err != nil {
		return nil, err
	}
	all.Programs = map[string]*ebpf.Program{}
	parts, errs := make([]*ebpf.Collection, n), make([]error, n)
	var wg sync.WaitGroup
	for i, programs := range shares(spec.Programs, n) {
		wg.Go(func() {
			parts[i], errs[i] = ebpf.NewCollectionWithOptions(part(programs), ebpf.CollectionOptions{MapReplacements: all.Maps})
		})
	}
	wg.Wait()
	for _, c := range parts {
		if c == nil {
			continue
		}
		for name := range c.Programs {
			all.Programs[name] = c.DetachProgram(name)
		}
		c.Close() // its own descriptors of the maps
	}
	for _, err := range errs {
		if err != nil {
			all.Close()
			return nil, err
		}
	}
	return all, nil
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

// prepare fills the tables, makes the rings and maps what is shared.
func (p *programs) prepare(c *config) error {
	arch, _ := nativeArch()
	for nr, r := range rows(arch, c.content) {
		if nr < compatRow {
			r.Screen, r.Opens = screenRow(c.options.Screen, c.options.Wakeups, event.Op(r.Op), r.Flags), opensBy(event.Op(r.Op))
		}
		if err := p.Table.Put(uint32(nr), r); err != nil {
			return fmt.Errorf("fill the table of calls: %w", err)
		}
	}
	for i, r := range requestTable(arch, c.content) {
		if err := p.RequestTable.Put(i, r); err != nil {
			return fmt.Errorf("fill the table of requests: %w", err)
		}
	}
	keys, caps := commandRows(arch)
	for i, key := range keys {
		if err := p.Commands.Put(key, caps[i]); err != nil {
			return fmt.Errorf("fill the table of commands: %w", err)
		}
	}
	for i := range c.shards {
		r, err := newRing(c.ringBytes)
		if err != nil {
			return err
		}
		p.rings = append(p.rings, r)
		if err := p.Rings.Put(uint32(i), r.m); err != nil {
			return fmt.Errorf("add ring %d: %w", i, err)
		}
	}
	var err error
	if p.bss, p.shared, err = mapShared(p.Bss); err != nil {
		return err
	}
	putScreen(p.shared, c.options.Screen, suffixesOf(c.options.Screen))
	p.mmap = c.mmap
	return p.prepareMapped()
}

// mapShared maps the memory that the programs share.
func mapShared(m *ebpf.Map) ([]byte, *iotapeCommon, error) {
	b, err := unix.Mmap(m.FD(), 0, int(unsafe.Sizeof(iotapeCommon{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map shared memory: %w", err)
	}
	return b, (*iotapeCommon)(unsafe.Pointer(&b[0])), nil
}

// attach hooks the programs in: from now on each call of the machine looks
// whether its thread is followed.
func (p *programs) attach(more ...*ebpf.Program) error {
	for _, prog := range slices.Concat(more, p.mappedPrograms(), p.requestPrograms(),
		[]*ebpf.Program{p.OnExit, p.OnExec, p.OnFork, p.OnContentionEnd, p.OnSysExit, p.OnSysEnter}) {
		l, err := link.AttachTracing(link.TracingOptions{Program: prog})
		if err != nil {
			return unsupported("tracepoints with types (tp_btf)", err)
		}
		p.links = append(p.links, l)
	}
	return nil
}

// optional are the programs that not every recording needs.
func (p *programs) optional(o *capture.Options) (list []*ebpf.Program) {
	if o.Cgroup != "" {
		list = append(list, p.OnCgroupAttach)
	}
	if o.Wakeups {
		// Ends first: a beginning without its end would count for ever.
		list = append(list, p.OnIrqExit, p.OnIrqEntry, p.OnSoftirqExit, p.OnSoftirqEntry, p.OnTimerExit, p.OnTimerEntry, p.OnWaking)
	}
	return list
}

func (p *programs) detach() {
	for _, l := range p.links {
		l.Close()
	}
	p.links = nil
}

func (p *programs) close() {
	p.detach()
	for _, r := range p.rings {
		r.close()
	}
	if p.touches != nil {
		p.touches.close()
	}
	if p.bss != nil {
		_ = unix.Munmap(p.bss)
		p.bss, p.shared = nil, nil
	}
	if p.Bss != nil {
		p.Bss.Close()
	}
	p.iotapeObjects.Close()
}

// follow makes a thread a followed one, unless it is already.
func (p *programs) follow(tid int, st iotapeTask) error {
	if err := keepOf(p.Tasks, tid, st); err != nil {
		return fmt.Errorf("follow thread %d: %w", tid, err)
	}
	if err := keepOf(p.Faults, tid, iotapeFault{}); err != nil {
		return fmt.Errorf("follow the page faults of thread %d: %w", tid, err)
	}
	return nil
}

// keepOf puts a value into a thread's storage, unless it has one.
func keepOf(m *ebpf.Map, tid int, value any) error {
	fd, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := m.Update(uint32(fd), value, ebpf.UpdateNoExist); err != nil && !errors.Is(err, ebpf.ErrKeyExist) {
		return err
	}
	return nil
}

// countFollowed returns how many threads are followed, which a program counts in shared
// memory.
func countFollowed(counter *ebpf.Program, followed *uint64) (uint64, error) {
	l, err := link.AttachIter(link.IterOptions{Program: counter})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	r, err := l.Open()
	if err != nil {
		return 0, err
	}
	defer r.Close()
	atomic.StoreUint64(followed, 0)
	if _, err := io.Copy(io.Discard, r); err != nil {
		return 0, err
	}
	return atomic.LoadUint64(followed), nil
}

// release makes the programs record nothing more, and hold no more threads.
func (p *programs) release() { atomic.StoreUint64(&p.shared.Release, 1) }
