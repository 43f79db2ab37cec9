// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"math/bits"
	"os"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture/mapped"
	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

// stores finds out what programs stored to files through shared mappings. Nothing
// happens at a store that could be recorded, so it looks at the files when their
// content matters: before a thread returns from a call that writes it back, ends
// the mapping or reads the file, at the end of a process, and when the kernel writes
// back of its own accord.
//
// Where to look: the kernel says when a folio becomes dirty, which is the first
// store since it was last written back. File systems without write-back (tmpfs) do
// not say it; there, all that is mapped is looked at. Of a page that was looked at,
// a hash is kept, so that only what changed is recorded.
//
// A page that a program also wrote by calls is recorded here once more: nothing
// tells whether it was stored to in between. What is recorded is right all the same,
// because it is what the file held at that time.
//
// Its methods do nothing when it is nil.
type stores struct {
	d      *drain
	files  map[iotapeFileKey]*storedFile
	spans  []span
	ranges []stretch
	words  []int64
	pieces []trace.Piece
	buf    []byte
	told   uint64 // untold touches seen
	page   int64
	turn   int
	later  []iotapeTouch // after which the files are to be looked at
	waited int           // passes that the first of them has
	heard  uint64        // ns; what was told before that is known
}

// storedFile is a file that programs can store to.
type storedFile struct {
	object  trace.Object
	fd      int
	mapping uint64 // the kernel's address_space
	silent  bool   // nothing tells which pages are dirty
	dirty   map[int64]touched
	pages   *mapped.Pages
	pid     uint32 // of the process that mapped it last
	idle    int    // times that it was found without a mapping
}

// touched is 64 pages, some of which are dirty, the last of them since a time.
type touched struct{ pages, since uint64 }

// Kinds of touches (bpf/stores.h).
const (
	touchDirty     = 1
	touchWriteback = 2
	touchExit      = 3
	touchChanged   = 4
	touchCollapsed = 5
	touchInserted  = 6
)

const (
	storedClean = 1       // iotapePart.Flags: what was dirty before the call is written back
	lookBytes   = 1 << 20 // of a file, at once
	idlePasses  = 1000    // that a file is kept for a call that may have been killed
	hugeBytes   = 2 << 20 // the most that one fault maps
	tmpfsMagic  = 0x01021994
	ramfsMagic  = 0x858458f6
	hugeMagic   = 0x958458f6
)

func newStores(d *drain) *stores {
	if d.p.touches == nil {
		return nil
	}
	return &stores{d: d, files: map[iotapeFileKey]*storedFile{}, buf: make([]byte, hugeBytes),
		page: int64(os.Getpagesize())}
}

// busy reports whether a file waits for the end of its last mapping, or to be looked at.
func (s *stores) busy() bool {
	return s != nil && (len(s.files) > 0 && s.turn > 0 || len(s.later) > 0)
}

// listen takes what the programs told. It reports whether some of it is still being
// told, which may be about a store of a thread that is held already.
func (s *stores) listen() (busy bool) {
	if s == nil {
		return false
	}
	s.heard = bpf.Now()
	r := s.d.p.touches
	s.spans, busy = r.scan(s.spans[:0], r.produced())
	for _, sp := range s.spans {
		b := r.bytes(sp.from, sp.to)
		for len(b) >= trace.WordBytes+int(unsafe.Sizeof(iotapeTouch{})) {
			t := *(*iotapeTouch)(unsafe.Pointer(&b[trace.WordBytes]))
			b = b[trace.WordBytes+int(unsafe.Sizeof(t)):]
			s.touch(&t)
		}
		r.consume(sp.to)
	}
	if n := atomic.LoadUint64(&s.d.p.shared.Untold); n != s.told {
		s.told = n
		for _, f := range s.files {
			f.silent = true
			f.pages.Doubt(0, 1<<62)
		}
	}
	if s.turn > 0 && len(s.later) == 0 {
		s.turn--
		s.reap(mapped.Moment{})
	}
	s.d.flushOwn()
	return busy
}

func (s *stores) touch(t *iotapeTouch) {
	if t.Kind == touchExit {
		s.turn = 64 // its memory goes soon
		s.later = append(s.later, *t)
		return
	}
	f := s.files[t.Key]
	off, n := int64(t.Off), int64(t.Len)
	switch {
	case t.Kind == touchChanged && t.Key.Ino == 0:
		for _, f := range s.files {
			f.pages.Doubt(off, off+n)
		}
	case f == nil:
	case t.Kind == touchChanged:
		f.pages.Doubt(off, off+n)
	case t.Kind == touchCollapsed:
		s.shift(f, off, -n, t.Time)
	case t.Kind == touchInserted:
		s.shift(f, off, n, t.Time)
	case t.Kind == touchDirty:
		s.markDirty(f, int64(t.Off)/s.page, (int64(t.Off+t.Len)-1)/s.page, t.Time)
	case t.Kind == touchWriteback:
		s.later = append(s.later, *t)
	}
}

// lookLater looks at the files after what is no call of a held thread. What such a thread
// read before that, the files held without what this would record as stored only then: so
// the threads come first.
func (s *stores) lookLater() {
	if s == nil || len(s.later) == 0 {
		return
	}
	until := s.later[len(s.later)-1].Time
	if s.waited++; s.waited < idlePasses && s.d.pendingBefore(until) {
		return
	}
	for _, t := range s.later {
		if t.Kind == touchExit {
			for _, f := range s.files {
				s.look(f, 0, 1<<62, mapped.Moment{PID: t.Pid, TID: t.Tid, Time: t.Off - 1})
			}
		} else if f := s.files[t.Key]; f != nil {
			s.look(f, 0, 1<<62, mapped.Moment{PID: f.pid, TID: f.pid, Time: s.presentOf(f.pid, t.Time)})
		}
	}
	s.later, s.waited = s.later[:0], 0
	s.d.flushOwn()
}

// presentOf returns when a file is looked at that was written back at a time: what it holds can be of calls
// since then. But a process that has ended has no mapping.
func (s *stores) presentOf(pid uint32, at uint64) uint64 {
	now := s.heard
	for i := range s.later {
		if t := &s.later[i]; t.Kind == touchExit && t.Pid == pid {
			now = min(now, t.Off-1)
		}
	}
	return max(now, at)
}

// markDirty notes that pages first to last may be stored to.
func (s *stores) markDirty(f *storedFile, first, last int64, at uint64) {
	for w := first >> 6; w <= last>>6; w++ {
		t := f.dirty[w]
		t.pages |= wordBits(first, last, w)
		t.since = at
		f.dirty[w] = t
	}
}

// shift follows pages that a call moved: those that were dirty are clean where they are now, and can have been stored
// to before.
func (s *stores) shift(f *storedFile, off, by int64, at uint64) {
	f.pages.Shift(off, by)
	first, far := off/s.page, by/s.page
	var pages []int64
	for w, t := range f.dirty {
		for m := t.pages; m != 0; m &= m - 1 {
			if n := w<<6 + int64(bits.TrailingZeros64(m)); n >= first && n+far >= first {
				pages = append(pages, n+far)
			}
		}
	}
	for _, n := range pages {
		s.markDirty(f, n, n, at)
	}
}

// wordBits returns the bits of pages first to last in a word of 64.
func wordBits(first, last, word int64) uint64 {
	m := ^uint64(0)
	if first>>6 == word {
		m &= ^uint64(0) << (first & 63)
	}
	if last>>6 == word {
		m &= ^uint64(0) >> (63 - last&63)
	}
	return m
}

// serve does what a call left to do, while its thread is held.
func (s *stores) serve(tid int, p *iotapePending, q *iotapePart) {
	if s == nil {
		return
	}
	at := mapped.Moment{PID: p.Pid, TID: p.Tid, Time: p.Exit - 1}
	key := iotapeFileKey{Ino: q.Addr, Dev: q.Count}
	switch q.Kind {
	case partMapping:
		s.open(tid, p, q)
	case partStored:
		for k, f := range s.files {
			if key.Ino != 0 && k != key {
				continue
			}
			s.look(f, int64(q.Off), int64(min(q.Len, 1<<62)), at)
			if q.Flags&storedClean != 0 {
				s.clean(f, int64(q.Off), int64(min(q.Len, 1<<62)), p.Enter)
			}
		}
		switch event.Op(p.Op) {
		case event.OpMmap, event.OpMunmap, event.OpMremap, event.OpMsync:
			atomic.AddUint64(&s.d.p.shared.Unmapping, ^uint64(0))
			s.reap(at)
		case event.OpExecve, event.OpExecveat:
			s.reap(at)
		}
	}
}

// open begins to watch a file that a thread has mapped.
func (s *stores) open(tid int, p *iotapePending, q *iotapePart) {
	key := iotapeFileKey{Ino: q.Len, Dev: q.Count}
	if f := s.files[key]; f != nil {
		f.pid = p.Pid
		return
	}
	fd, _, err := openMapped(tid, q.Addr)
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err == nil {
		if err = unix.Fstat(fd, &st); err == nil {
			err = unix.Fstatfs(fd, &fs)
		}
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		s.forget(key)
		s.d.addOwn(&trace.Record{Type: trace.RecLoss, Exit: p.Exit, Count: 1, Reason: trace.LossMapped})
		s.d.lost++
		return
	}
	f := &storedFile{
		fd: fd, mapping: q.Off, pid: p.Pid,
		silent: fs.Type == tmpfsMagic || fs.Type == ramfsMagic || fs.Type == hugeMagic,
		dirty:  map[int64]touched{}, pages: mapped.NewPages(s.page),
	}
	f.object = mappedObject(key, &st)
	s.files[key] = f
	atomic.StoreUint64(&s.d.p.shared.Mapped, uint64(len(s.files)))
	// What is dirty already will not be told, but it is not stored to yet.
	if !f.silent {
		s.findDirty(f, 0, (st.Size+s.page-1)/s.page, p.Exit)
	}
	s.each(f, 0, 1<<62, func(off int64, data []byte) { s.compare(f, off, data, nil) })
}

// mappedObject describes a mapped file, which has no descriptor.
func mappedObject(key iotapeFileKey, st *unix.Stat_t) trace.Object {
	return trace.Object{Ino: key.Ino, Dev: key.Dev, Size: st.Size, Mode: st.Mode, Flags: unix.O_RDWR,
		Nlink: uint32(st.Nlink), UID: st.Uid, GID: st.Gid, FD: -1}
}

// findDirty marks the dirty ones of pages lo to hi-1.
func (s *stores) findDirty(f *storedFile, lo, hi int64, at uint64) {
	if lo >= hi {
		return
	}
	var c unix.Cachestat_t
	err := unix.Cachestat(uint(f.fd), &unix.CachestatRange{Off: uint64(lo * s.page), Len: uint64((hi - lo) * s.page)},
		&c, 0)
	switch {
	case err != nil || c.Dirty >= uint64(hi-lo) || hi-lo == 1 && c.Dirty+c.Writeback > 0:
		s.markDirty(f, lo, hi-1, at)
	case c.Dirty+c.Writeback > 0:
		s.findDirty(f, lo, (lo+hi)/2, at)
		s.findDirty(f, (lo+hi)/2, hi, at)
	}
}

// look records what was stored to a range of a file since it was last looked at.
func (s *stores) look(f *storedFile, off, n int64, at mapped.Moment) {
	s.each(f, off, n, func(off int64, data []byte) { s.compare(f, off, data, &at) })
}

// each calls see with the content of all pages in a range that can have been stored
// to, in order, in stretches.
func (s *stores) each(f *storedFile, off, n int64, see func(off int64, data []byte)) {
	for _, r := range s.stretches(f, off&^(s.page-1), off+n) {
		for at := r.from; at < r.to; {
			got, err := unix.Pread(f.fd, s.buf[:min(r.to-at, lookBytes)], at)
			if err != nil || got <= 0 {
				break // the end of the file
			}
			see(at, s.buf[:got])
			at += int64(got)
			if int64(got)%s.page != 0 {
				break
			}
		}
	}
}

// stretch is a range of whole pages, in bytes of a file.
type stretch struct{ from, to int64 }

// stretches returns what to look at in a range.
func (s *stores) stretches(f *storedFile, off, end int64) []stretch {
	all := s.ranges[:0]
	add := func(from, to int64) {
		if n := len(all); n > 0 && all[n-1].to == from {
			all[n-1].to = to
		} else {
			all = append(all, stretch{from, to})
		}
	}
	if f.silent {
		for off < end {
			from, err := unix.Seek(f.fd, off, unix.SEEK_DATA)
			if err != nil || from >= end {
				break
			}
			to, err := unix.Seek(f.fd, from, unix.SEEK_HOLE)
			if err != nil || to <= from {
				break
			}
			add(from&^(s.page-1), (min(to, end)+s.page-1)&^(s.page-1))
			off = to
		}
		s.ranges = all
		return all
	}
	first, last := off/s.page, (end-1)/s.page
	words := s.words[:0]
	if last>>6-first>>6 < int64(len(f.dirty)) {
		for w := first >> 6; w <= last>>6; w++ {
			words = append(words, w)
		}
	} else {
		for w := range f.dirty {
			if w >= first>>6 && w <= last>>6 {
				words = append(words, w)
			}
		}
		slices.Sort(words)
	}
	for _, w := range words {
		pages := f.dirty[w].pages & wordBits(first, last, w)
		for at := int64(0); pages != 0; {
			skip := int64(bits.TrailingZeros64(pages))
			run := int64(bits.TrailingZeros64(^(pages >> skip)))
			add((w<<6+at+skip)*s.page, (w<<6+at+skip+run)*s.page)
			at += skip + run
			pages = pages >> skip >> run
		}
	}
	s.words, s.ranges = words, all
	return all
}

// compare records the pages of data that are not as they were when they were last
// looked at, if at says where, and remembers them.
func (s *stores) compare(f *storedFile, off int64, data []byte, at *mapped.Moment) {
	f.pages.Compare(off, data, f.silent, func(off int64, data []byte) {
		if at == nil {
			return
		}
		n := uint64(len(data))
		s.pieces = mapped.Pieces(s.pieces[:0], s.d.content, event.OpMmapPwrite, data, n)
		s.d.addOwn(mapped.Store(&f.object, off, n, s.pieces, at))
		s.d.events++
	})
}

// pages writes the content of pages that a thread has begun to use, as their file has
// it: of the mmap_pread that is pending, or, if the kernel used them in another call,
// as an mmap_pread of its own.
func (s *stores) pages(tid int, p *iotapePending, i int) {
	if s == nil || i+1 >= len(p.Parts) {
		return
	}
	q, where := &p.Parts[i], &p.Parts[i+1]
	if q.Addr == 0 && !s.findFault(tid, q, where) {
		return
	}
	n := min(q.Len, uint64(len(s.buf)))
	key, off := iotapeFileKey{Ino: q.Addr, Dev: q.Count}, int64(q.Off)
	var data []byte
	object := trace.Object{Ino: key.Ino, Dev: key.Dev, FD: -1}
	if f := s.files[key]; f != nil {
		data = s.lookAll(f, off, s.buf[:n], mapped.Moment{PID: p.Pid, TID: p.Tid, Time: p.Exit - 1})
		object = f.object
	} else if fd, _, err := openMapped(tid, where.Addr); err == nil {
		got, _ := unix.Pread(fd, s.buf[:n], off)
		data = s.buf[:max(got, 0)]
		if s.d.tooLate() {
			data = nil
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil {
			object = mappedObject(key, &st)
		}
		unix.Close(fd)
	}
	if q.Arg == mapped.Arg {
		w := dataWriter{d: s.d, p: p, arg: mapped.Arg}
		w.pages(data, n)
		return
	}
	s.pieces = mapped.Pieces(s.pieces[:0], s.d.content, event.OpMmapPread, data, n)
	whole := (n + uint64(s.page) - 1) &^ (uint64(s.page) - 1)
	s.d.addOwn(&trace.Record{
		Type: trace.RecCall, Op: uint16(event.OpMmapPread), NR: mapped.NoNumber, PID: p.Pid, TID: p.Tid,
		Enter: where.Off, Exit: p.Exit - 1,
		Ret: int64(n), Args: [6]uint64{mapped.NoDescriptor, where.Addr, whole, q.Off, uint64(where.Count), where.Len},
		Objects: []trace.Object{object}, Pieces: s.pieces,
	})
	s.d.events++
}

// findFault completes what the programs could not find out about a fault: they knew the
// address and the pages around that were mapped. It reports false if no read of a file
// is to be recorded.
func (s *stores) findFault(tid int, q, where *iotapePart) bool {
	const store, inCall, around = 1, 2, 8 // FAULT_… in bpf/mapped.h
	fault, page := where.Count, uint64(s.page)
	fd, a, err := openMapped(tid, where.Addr)
	if err != nil {
		return false // memory of no file, or it is gone
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		fault&store != 0 && (a.shared || fault&inCall != 0) {
		return false
	}
	asked := a.off + (where.Addr-a.from)&^(page-1)
	if fault&around == 0 || fault&store != 0 {
		q.Off, q.Len = asked, page
	}
	end := min(q.Off+q.Len, a.off+a.to-a.from, uint64(st.Size))
	q.Off = max(q.Off, a.off)
	if asked < q.Off || asked >= end {
		return false // mapped anew since
	}
	q.Len = end - q.Off
	q.Addr, q.Count = st.Ino, unix.Major(st.Dev)<<20|unix.Minor(st.Dev) // as the kernel has it
	where.Addr, where.Len = a.from+q.Off-a.off, asked
	where.Count = 0
	for _, f := range [...]struct {
		is   bool
		flag uint32
	}{{a.shared, event.MappedShared}, {fault&store != 0, event.MappedStore}, {a.exec,
		event.MappedCode}, {fault&inCall != 0, event.MappedInCall}} {
		if f.is {
			where.Count |= f.flag
		}
	}
	return true
}

// lookAll reads a range of a file, records what was stored to it, and remembers it.
// One look for all, because stores go on meanwhile.
func (s *stores) lookAll(f *storedFile, off int64, buf []byte, at mapped.Moment) []byte {
	dirty := s.stretches(f, off, off+int64(len(buf)))
	got, err := unix.Pread(f.fd, buf, off)
	if err != nil || got <= 0 {
		return nil
	}
	data := buf[:got]
	for _, r := range dirty {
		lo, hi := max(r.from-off, 0), min(r.to-off, int64(got))
		if lo < hi {
			s.compare(f, off+lo, data[lo:hi], &at)
		}
	}
	s.compare(f, off, data, nil)
	return data
}

// clean forgets pages that were dirty before a time: they have been written back,
// and the next store to them will be told.
func (s *stores) clean(f *storedFile, off, n int64, before uint64) {
	first, last := off/s.page, (off+n-1)/s.page
	for w, t := range f.dirty {
		if w < first>>6 || w > last>>6 || t.since >= before {
			continue
		}
		if t.pages &^= wordBits(first, last, w); t.pages == 0 {
			delete(f.dirty, w)
		} else {
			f.dirty[w] = t
		}
	}
}

// reap closes the files that nothing can store to any more.
func (s *stores) reap(at mapped.Moment) {
	for key, f := range s.files {
		if s.mappings(f) > 0 {
			continue
		}
		last := at
		if at.Time == 0 {
			// The call that ended the mapping has the right to be recorded first.
			f.idle++
			if atomic.LoadUint64(&s.d.p.shared.Unmapping) > 0 && f.idle < idlePasses {
				s.turn++
				continue
			}
			last = mapped.Moment{PID: f.pid, TID: f.pid, Time: bpf.Now()}
		}
		s.look(f, 0, 1<<62, last)
		var v iotapeStored
		if err := s.d.p.Stores.Lookup(key, &v); err == nil && v.Pages != key {
			s.forget(v.Pages)
		}
		s.forget(key)
		if s.mappings(f) > 0 { // again, before it was forgotten
			_ = s.d.p.Stores.Put(key, v)
			_ = s.d.p.Stores.Put(v.Pages, v)
			continue
		}
		unix.Close(f.fd)
		delete(s.files, key)
	}
	atomic.StoreUint64(&s.d.p.shared.Mapped, uint64(len(s.files)))
	if len(s.files) == 0 {
		s.turn = 0
	}
}

func (s *stores) forget(key iotapeFileKey) { _ = s.d.p.Stores.Delete(key) }

// mappings returns how many mappings can store to a file.
func (s *stores) mappings(f *storedFile) int {
	n, err := s.d.p.loaded[countMappings].Run(&ebpf.RunOptions{Context: &iotapeMappingCount{Mapping: f.mapping}})
	if err != nil {
		return 1
	}
	return int(int32(n))
}

// finish records what is left when the recording ends, and closes all files.
func (s *stores) finish() {
	if s == nil {
		return
	}
	s.listen()
	for key, f := range s.files {
		s.look(f, 0, 1<<62, mapped.Moment{PID: f.pid, TID: f.pid, Time: bpf.Now()})
		s.forget(key)
		unix.Close(f.fd)
	}
	clear(s.files)
	s.d.flushOwn()
}
