// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// TestFsx does what fsx does: random operations on a file, each checked against a shadow
// of it in memory; through mappings, too, of which a second one stays all the time.
func TestFsx(t *testing.T) {
	testenv.Short(t, "it makes thousands of calls")
	tr, _ := recording(t)
	m := mounted(t, Options{Recordings: []*Recording{tr}})
	var ops int
	child(t, "fsx", m.Mountpoint, &ops)
	if ops != fsxSeeds*fsxOps {
		t.Errorf("%d operations", ops)
	}
	if c := m.Detach(tr); c.Err != nil || c.Lost != 0 || c.Events < uint64(ops)/2 {
		t.Errorf("recorded: %+v", c)
	}
	// What is below is what the child last saw.
	for seed := range fsxSeeds {
		name := fmt.Sprintf("fsx%d", seed)
		file, err := os.ReadFile(filepath.Join(m.Lower, name))
		if err != nil {
			t.Fatal(err)
		}
		shadow, err := os.ReadFile(filepath.Join(m.Lower, name+".shadow"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(file, shadow) {
			t.Errorf("seed %d: the lower file is not as it was seen through the mount", seed)
		}
	}
}

const (
	fsxSeeds = 4
	fsxOps   = 1500
	fsxMax   = 256 << 10 // bytes of the file
)

func runFsx(dir string) (any, error) {
	ops := 0
	for seed := range fsxSeeds {
		f := fsx{path: filepath.Join(dir, fmt.Sprintf("fsx%d", seed)), r: rand.New(rand.NewPCG(uint64(seed), 1))}
		if err := f.run(&ops); err != nil {
			return nil, fmt.Errorf("seed %d, operation %d: %w", seed, ops, err)
		}
	}
	return ops, nil
}

// fsx is a file and its shadow.
type fsx struct {
	path   string
	r      *rand.Rand
	fd     int
	shadow []byte
	m      []byte // a mapping that stays
}

func (f *fsx) run(ops *int) (err error) {
	if f.fd, err = unix.Open(f.path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o644); err != nil {
		return err
	}
	if err := f.remap(); err != nil {
		return err
	}
	steps := []func() error{
		f.read, f.read, f.write, f.write, f.truncate, f.mapRead, f.mapWrite, f.mapWrite, f.punch, f.zero, f.allocate,
		f.copy, f.append, f.reopen, f.sync, f.size,
	}
	for range fsxOps {
		if err := steps[f.r.IntN(len(steps))](); err != nil {
			return err
		}
		*ops++
	}
	if err := f.check(0, len(f.shadow)); err != nil {
		return err
	}
	if err := unix.Munmap(f.m); err != nil {
		return err
	}
	if err := unix.Close(f.fd); err != nil {
		return err
	}
	return os.WriteFile(f.path+".shadow", f.shadow, 0o644)
}

// remap maps all that the file may become; pages beyond its end are not touched.
func (f *fsx) remap() (err error) {
	f.m, err = unix.Mmap(f.fd, 0, fsxMax, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// span chooses a range within so many bytes.
func (f *fsx) span(within int) (off, n int) {
	if within == 0 {
		return 0, 0
	}
	off = f.r.IntN(within)
	return off, 1 + f.r.IntN(min(within-off, 64<<10))
}

func (f *fsx) bytes(n int) []byte {
	b := make([]byte, n)
	c := byte(1 + f.r.IntN(255))
	for i := range b {
		b[i] = c + byte(i%7)
	}
	return b
}

// put changes the shadow, which grows with zeros.
func (f *fsx) put(off int, b []byte) {
	f.grow(off + len(b))
	copy(f.shadow[off:], b)
}

func (f *fsx) grow(n int) {
	if n > len(f.shadow) {
		f.shadow = append(f.shadow, make([]byte, n-len(f.shadow))...)
	}
}

func (f *fsx) check(off, n int) error {
	b := make([]byte, n)
	got, err := unix.Pread(f.fd, b, int64(off))
	if err != nil {
		return fmt.Errorf("pread %d at %d: %w", n, off, err)
	}
	want := f.shadow[min(off, len(f.shadow)):min(off+n, len(f.shadow))]
	return differs("pread", b[:got], want, off)
}

func differs(what string, got, want []byte, off int) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s at %d: %d bytes, want %d", what, off, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d is %#x, want %#x", what, off+i, got[i], want[i])
		}
	}
	return nil
}

func (f *fsx) read() error {
	off, n := f.span(len(f.shadow) + 5000)
	return f.check(off, n)
}

func (f *fsx) write() error {
	off, n := f.span(fsxMax)
	b := f.bytes(n)
	if k, err := unix.Pwrite(f.fd, b, int64(off)); err != nil || k != n {
		return fmt.Errorf("pwrite %d at %d: %d, %w", n, off, k, err)
	}
	f.put(off, b)
	return nil
}

func (f *fsx) truncate() error {
	n := f.r.IntN(fsxMax)
	if err := unix.Ftruncate(f.fd, int64(n)); err != nil {
		return fmt.Errorf("ftruncate %d: %w", n, err)
	}
	f.grow(n)
	f.shadow = f.shadow[:n]
	return nil
}

func (f *fsx) mapRead() error {
	off, n := f.span(len(f.shadow))
	return differs("mapped read", bytes.Clone(f.m[off:off+n]), f.shadow[off:off+n], off)
}

func (f *fsx) mapWrite() error {
	off, n := f.span(len(f.shadow))
	b := f.bytes(n)
	copy(f.m[off:], b)
	f.put(off, b)
	if f.r.IntN(3) == 0 {
		return unix.Msync(f.m[:(len(f.shadow)+4095)&^4095], unix.MS_SYNC)
	}
	return nil
}

func (f *fsx) punch() error {
	off, n := f.span(fsxMax)
	if err := unix.Fallocate(f.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off),
		int64(n)); err != nil {
		return fmt.Errorf("punch: %w", err)
	}
	clear(f.shadow[min(off, len(f.shadow)):min(off+n, len(f.shadow))])
	return nil
}

func (f *fsx) zero() error {
	off, n := f.span(fsxMax)
	if err := unix.Fallocate(f.fd, unix.FALLOC_FL_ZERO_RANGE, int64(off), int64(n)); err != nil {
		return fmt.Errorf("zero: %w", err)
	}
	f.put(off, make([]byte, n))
	return nil
}

func (f *fsx) allocate() error {
	off, n := f.span(fsxMax)
	if err := unix.Fallocate(f.fd, 0, int64(off), int64(n)); err != nil {
		return fmt.Errorf("fallocate: %w", err)
	}
	f.grow(off + n)
	return nil
}

func (f *fsx) copy() error {
	half := len(f.shadow) / 2
	off, n := f.span(half)
	to := half + f.r.IntN(fsxMax-half-n+1)
	for done := 0; done < n; {
		from, dst := int64(off+done), int64(to+done)
		k, err := unix.CopyFileRange(f.fd, &from, f.fd, &dst, n-done, 0)
		if err != nil || k == 0 {
			return fmt.Errorf("copy %d from %d to %d: %d, %w", n, off, to, k, err)
		}
		done += k
	}
	f.put(to, bytes.Clone(f.shadow[off:off+n]))
	return nil
}

func (f *fsx) append() error {
	b := f.bytes(1 + f.r.IntN(5000))
	if len(f.shadow)+len(b) > fsxMax {
		return nil
	}
	fd, err := unix.Open(f.path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if k, err := unix.Write(fd, b); err != nil || k != len(b) {
		return fmt.Errorf("append: %d, %w", k, err)
	}
	f.put(len(f.shadow), b)
	return nil
}

func (f *fsx) reopen() error {
	if err := unix.Munmap(f.m); err != nil {
		return err
	}
	if err := unix.Close(f.fd); err != nil {
		return err
	}
	var err error
	if f.fd, err = unix.Open(f.path, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	return f.remap()
}

func (f *fsx) sync() error { return unix.Fsync(f.fd) }

func (f *fsx) size() error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return err
	}
	if st.Size != int64(len(f.shadow)) {
		return fmt.Errorf("fstat: %d bytes, want %d", st.Size, len(f.shadow))
	}
	return nil
}
