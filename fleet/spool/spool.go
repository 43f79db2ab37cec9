// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/iotape/iotape/pipe/wholefile"
)

const (
	itemHead     = 8
	segmentBytes = 4 << 20 // at which the next one begins
	maxItem      = 1 << 20
	suffix       = ".seg"

	// MinBytes is the least that a spool may be told to keep.
	MinBytes = 2 * segmentBytes
)

// Errors.
var (
	ErrFull   = errors.New("the spool is full")
	ErrLocked = errors.New("the spool is in use by another agent")
)

// Spool is a queue of items on disk. Its methods may be called from anywhere.
type Spool struct {
	dir  string
	max  int64
	lock *os.File

	mu       sync.Mutex
	segments []*segment // at least one; the last is written to
	items    []item     // not given back; items[0] has number first
	first    uint64
	bytes    int64 // of all segments
	changed  chan struct{}
	torn     bool
}

type segment struct {
	f     *os.File
	first uint64
	size  int64
}

type item struct {
	s   *segment
	off int64
	n   int32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Open opens a spool of up to max bytes, or makes it.
func Open(dir string, max int64) (*Spool, error) {
	if err := makeOwn(dir); err != nil {
		return nil, err
	}
	lock, err := wholefile.OpenBelow(dir, "lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	s := &Spool{dir: dir, max: max, lock: lock, first: 1, changed: make(chan struct{})}
	if err := s.load(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// makeOwn makes a directory, and refuses one that Check refuses.
func makeOwn(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return Check(dir)
}

// Check refuses a directory in which others than the user and root can change what is there. One that does not exist is
// none of these: Open makes it.
func Check(dir string) error {
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%s is no directory: remove it, or name another", dir)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case ok && st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s is of the user %d, who can change what is in it: chown it, or name another", dir, st.Uid)
	case fi.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to %s: chmod 700 it", dir)
	}
	return nil
}

// load reads which items there are.
func (s *Spool) load() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries { // in the order of names, which is that of numbers
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			continue
		}
		first, err := strconv.ParseUint(name, 16, 64)
		if err != nil || len(name) != 16 {
			return fmt.Errorf("%s: not a segment's name", filepath.Join(s.dir, e.Name()))
		}
		f, err := wholefile.OpenBelow(s.dir, e.Name(), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		seg := &segment{f: f, first: first}
		if len(s.segments) == 0 {
			s.first = first
		}
		s.segments = append(s.segments, seg)
		if next := s.first + uint64(len(s.items)); first != next || s.torn {
			// What comes after a hole cannot be told to be next: an earlier segment is torn.
			s.torn = true
			s.segments = s.segments[:len(s.segments)-1]
			if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
				return err
			}
			continue
		}
		if err := s.scan(seg); err != nil {
			return err
		}
	}
	if len(s.segments) == 0 {
		return s.extend()
	}
	return nil
}

// scan finds a segment's items, and cuts off what is not whole.
func (s *Spool) scan(seg *segment) error {
	fi, err := seg.f.Stat()
	if err != nil {
		return err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(seg.f, 0, fi.Size()), 64<<10)
	var head [itemHead]byte
	buf := make([]byte, 0, 64<<10)
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			break
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n == 0 || n > maxItem { // zeros are a hole that a kill left
			break
		}
		buf = slices.Grow(buf[:0], int(n))[:n]
		if _, err := io.ReadFull(r, buf); err != nil ||
			crc32.Checksum(buf, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			break
		}
		s.items = append(s.items, item{seg, seg.size + itemHead, int32(n)})
		seg.size += itemHead + int64(n)
	}
	s.bytes += seg.size
	if seg.size < fi.Size() {
		s.torn = true
		return seg.f.Truncate(seg.size)
	}
	return nil
}

// extend begins a segment.
func (s *Spool) extend() error {
	next := s.first + uint64(len(s.items))
	f, err := wholefile.OpenBelow(s.dir, fmt.Sprintf("%016x%s", next, suffix),
		os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, &segment{f: f, first: next})
	return nil
}

// Torn reports whether the end of the spool was damaged when it was opened, as it is
// when the machine went down.
func (s *Spool) Torn() bool { return s.torn }

// Put appends an item of 1 byte to 1 MiB. Its error wraps ErrFull if there is no room,
// for it or on the disk; then the spool is as it was. If note is not nil, it is called
// when the item is there, and before anybody can get it, or give it back.
func (s *Spool) Put(b []byte, note func()) error { return s.PutAll([][]byte{b}, note) }

// PutAll appends several items as Put does: all of them or, also when the agent is killed
// meanwhile, none.
func (s *Spool) PutAll(list [][]byte, note func()) error {
	n := int64(0)
	for _, b := range list {
		if len(b) == 0 || len(b) > maxItem {
			return fmt.Errorf("spool an item of %d bytes: the limit is %d", len(b), maxItem)
		}
		n += itemHead + int64(len(b))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+n > s.max {
		return ErrFull
	}
	seg := s.segments[len(s.segments)-1]
	if seg.size > 0 && seg.size+n > segmentBytes {
		if err := s.extend(); err != nil {
			return full(err)
		}
		seg = s.segments[len(s.segments)-1]
	}
	// From the last to the first, and each before its head: until the first has its head,
	// none of them is there.
	off := seg.size + n
	for _, b := range slices.Backward(list) {
		off -= itemHead + int64(len(b))
		var head [itemHead]byte
		binary.LittleEndian.PutUint32(head[:], uint32(len(b)))
		binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(b, castagnoli))
		_, err := seg.f.WriteAt(b, off+itemHead)
		if err == nil {
			_, err = seg.f.WriteAt(head[:], off)
		}
		if err != nil {
			return errors.Join(full(err), seg.f.Truncate(seg.size))
		}
	}
	for _, b := range list {
		s.items = append(s.items, item{seg, seg.size + itemHead, int32(len(b))})
		seg.size += itemHead + int64(len(b))
	}
	s.bytes += n
	if note != nil {
		note()
	}
	s.signal()
	return nil
}

// full says of a disk without room what is said of a spool without.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("spool: %w", err)
}

func (s *Spool) signal() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next Put or Free.
func (s *Spool) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Bounds returns the number of the first item that is not given back, and that of the
// next one to be put in. They are equal if there is none.
func (s *Spool) Bounds() (first, next uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first, s.first + uint64(len(s.items))
}

// Bytes returns how many bytes are in use, and how many may be.
func (s *Spool) Bytes() (used, max int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.max
}

// Get reads an item into buf, which it may enlarge. ok is false if there is none of
// that number.
func (s *Spool) Get(number uint64, buf []byte) (b []byte, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < s.first || number-s.first >= uint64(len(s.items)) {
		return buf, false, nil
	}
	it := s.items[number-s.first]
	buf = slices.Grow(buf[:0], int(it.n))[:it.n]
	if _, err := it.s.f.ReadAt(buf, it.off); err != nil {
		return buf, false, fmt.Errorf("read the spool: %w", err)
	}
	return buf, true, nil
}

// Free gives back all items up to a number.
func (s *Spool) Free(number uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < s.first {
		return nil
	}
	n := min(number-s.first+1, uint64(len(s.items)))
	s.items = s.items[n:]
	s.first += n
	if len(s.items) == 0 {
		s.items = nil // and its memory
	}
	var errs []error
	last := len(s.segments) - 1
	if len(s.items) == 0 && s.segments[last].size > 0 {
		// An empty spool has an empty segment, so that it takes no room.
		if err := s.extend(); err == nil {
			last++
		}
	}
	for last > 0 && s.segments[1].first <= s.first {
		old := s.segments[0]
		s.segments = s.segments[1:]
		s.bytes -= old.size
		last--
		errs = append(errs, old.f.Close())
		if err := os.Remove(old.f.Name()); !errors.Is(err, fs.ErrNotExist) { // the directory was replaced
			errs = append(errs, err)
		}
	}
	s.signal()
	return errors.Join(errs...)
}

// Close closes the spool, and leaves what is in it.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, seg := range s.segments {
		errs = append(errs, seg.f.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
