// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/klauspost/compress/zstd"
)

// spaceGuard writes a stream to a file and sees to it that there is still room to
// seal it when the disk runs full: it holds that room with a file of its own, and
// ends the stream when it cannot. A tape needs at most what the stream compresses
// to, because it stores the same bytes, each only once.
type spaceGuard struct {
	f       *os.File
	hold    *os.File // takes room that sealing will need
	held    int64
	base    int64 // held in any case
	written int64
	next    int64 // look again when so much is written

	ratio   float64 // of compression, at most 1; 0 is not measured
	ratioAt int64   // bytes written when it was measured
	err     error
}

const (
	minReserve  = 1 << 20
	maxReserve  = 64 << 20
	sampleBytes = 64 << 10
	sampleCount = 64
)

// newSpaceGuard makes the file that holds room, and writes to f.
func newSpaceGuard(f *os.File, holdName string) (*spaceGuard, error) {
	free, err := freeSpace(f)
	if err != nil {
		return nil, fmt.Errorf("look at the free space: %w", err)
	}
	hold, err := os.OpenFile(holdName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	g := &spaceGuard{f: f, hold: hold, base: min(max(free/16, minReserve), maxReserve)}
	if err := g.reserve(g.base); err != nil {
		g.release()
		return nil, fmt.Errorf("record: not even %d MiB of room: %w", g.base>>20, err)
	}
	return g, nil
}

// release gives the room back, for sealing.
func (g *spaceGuard) release() {
	g.hold.Close()
	os.Remove(g.hold.Name())
}

// Write writes all of b, or an error comes back.
func (g *spaceGuard) Write(b []byte) (int, error) {
	if g.err != nil {
		return 0, g.err
	}
	if g.written+int64(len(b)) > g.next {
		if g.err = g.look(g.written + int64(len(b))); g.err != nil {
			return 0, g.err
		}
	}
	n, err := g.f.Write(b)
	g.written += int64(n)
	g.err = err
	return n, err
}

// look holds as much room as a stream of total bytes needs. While there is plenty it
// holds only what a small stream needs: the recorded program can fill a small disk before
// the next look.
func (g *spaceGuard) look(total int64) error {
	g.next = total + g.base/4
	free, err := freeSpace(g.f)
	if err != nil {
		return nil // if the disk cannot be asked, it will say itself
	}
	if free > 4*total+4*g.base {
		return g.reserve(min(total, maxReserve) + g.base)
	}
	return g.reserve(int64(float64(total)*g.compression()) + g.base)
}

func (g *spaceGuard) reserve(n int64) error {
	if n <= g.held {
		return nil
	}
	err := syscall.Fallocate(int(g.hold.Fd()), 0, g.held, n-g.held)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("write %s: %w (the rest is for sealing)", g.f.Name(), err)
	}
	if err == nil {
		g.held = n
	}
	return nil // a file system that cannot hold room
}

// compression returns how small the stream gets, at most 1, measured on samples
// and again each time that it has grown by a quarter.
func (g *spaceGuard) compression() float64 {
	if g.ratio == 0 || g.written > g.ratioAt+g.ratioAt/4 {
		g.ratio, g.ratioAt = g.measure(), g.written
	}
	return g.ratio
}

func (g *spaceGuard) measure() float64 {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return 1
	}
	defer enc.Close()
	var in, out int64
	buf, packed := make([]byte, sampleBytes), []byte(nil)
	for i := range int64(sampleCount) {
		n, err := g.f.ReadAt(buf, g.written/sampleCount*i)
		if n == 0 || err != nil && err != io.EOF {
			continue
		}
		packed = enc.EncodeAll(buf[:n], packed[:0])
		in, out = in+int64(n), out+int64(len(packed))
	}
	if in == 0 {
		return 1
	}
	return min(float64(out)/float64(in)*1.1, 1)
}

func freeSpace(f *os.File) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}
