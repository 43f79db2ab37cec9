// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// readBytes is how much is read at once: a multiple of chunkBytes.
const readBytes = 1 << 20

// zeros is hashed for holes.
var zeros [64 << 10]byte

// LargeBytes is the size from which on a file is hashed by its blocks of 4096 bytes: BLAKE3 of, for each
// block that is not all zero, its offset in the file and its bytes, and at last the size of the
// file. Offsets and sizes are 8 bytes, little-endian. So a hole takes no time, and a file with zeros in
// place of a hole has the same hash.
const LargeBytes = 1 << 30

// readFile hashes and stores the content of a regular file and sets what was learnt
// in e. The error is one that ends the taking.
func (t *taker) readFile(dir int, name, rel string, e *Entry) error {
	if t.opt.NoHash && t.opt.Sink == nil {
		return nil
	}
	if _, ok := t.inodes[inode{e.Dev, e.Ino}]; ok && e.Nlink > 1 {
		return nil // finish fills it in
	}
	fd, err := openFileAt(dir, name)
	if err != nil {
		return t.trouble(rel, "open it", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return t.trouble(rel, "look at it", err)
	}
	if typ, _ := typeOf(st.Mode); typ != File {
		t.note(rel, "was replaced while the snapshot was taken")
		return nil
	}
	e.fill(&st) // the file that is open is the one to describe, should it be another
	switch pseudo, err := t.fileSystem(fd, e.Dev); {
	case err != nil:
		return t.trouble(rel, "find its file system", err)
	case pseudo != "": // one file of it, mounted alone
		e.madeUp()
		t.note(rel, "is on a "+pseudo+" file system, which holds no stored data, and was not read")
		return nil
	}
	c, err := t.copyContent(fd, st.Size)
	if err != nil {
		if e, ok := err.(*readError); ok {
			return t.trouble(rel, "read it", e.err)
		}
		return fmt.Errorf("%s: %w", clip(rel), err)
	}
	var after unix.Stat_t
	if err := unix.Fstat(fd, &after); err == nil &&
		(after.Size != st.Size || after.Mtim != st.Mtim || c.size != st.Size) {
		t.note(rel, "changed while the snapshot was taken")
	}
	e.Known |= c.known
	e.Size, e.Hash = c.size, c.hash
	if e.Nlink > 1 {
		t.inodes[inode{e.Dev, e.Ino}] = c
	} else {
		e.Chunks = c.chunks
	}
	return nil
}

// readError is an error of the file and not of the sink.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

// copyContent reads a file once, hole by hole. A file that turns out shorter than
// size is described as it was found.
func (t *taker) copyContent(fd int, size int64) (*content, error) {
	if t.hasher == nil {
		t.hasher, t.buf = blake3.New(), make([]byte, readBytes)
	}
	t.hasher.Reset()
	c := &content{size: size}
	blocks := size >= LargeBytes && !t.opt.Whole
	for off := int64(0); off < size; {
		from, to, err := dataAfter(fd, off, size)
		if err != nil {
			return nil, &readError{err}
		}
		if !blocks {
			if err := t.hashZeros(from - off); err != nil {
				return nil, err
			}
		}
		if off, err = t.copyRange(fd, from, to, c, blocks); err != nil {
			return nil, err
		}
		if off < to {
			c.size = off
			break
		}
	}
	switch {
	case t.opt.NoHash:
	case blocks:
		c.known |= KnownBlocks
		t.hashNumber(c.size)
		t.hasher.Sum(c.hash[:0])
	default:
		c.known |= KnownHash
		t.hasher.Sum(c.hash[:0])
	}
	if t.opt.Sink != nil {
		c.known |= KnownContent
	}
	return c, nil
}

// dataAfter returns the next range of data at or after off, widened to chunk
// boundaries. If only a hole follows, the range is empty and at size.
func dataAfter(fd int, off, size int64) (from, to int64, err error) {
	from, err = retry(func() (int64, error) { return unix.Seek(fd, off, unix.SEEK_DATA) })
	switch err {
	case nil:
	case unix.ENXIO:
		return size, size, nil
	case unix.EINVAL, unix.EOPNOTSUPP:
		return off, size, nil // a file system that does not tell holes
	default:
		return 0, 0, err
	}
	to, err = retry(func() (int64, error) { return unix.Seek(fd, from, unix.SEEK_HOLE) })
	if err == unix.ENXIO { // truncated between the two calls; reading will notice
		to, err = size, nil
	}
	if err != nil {
		return 0, 0, err
	}
	from = max(from&^(chunkBytes-1), off)
	if to < size {
		to = (to + chunkBytes - 1) &^ (chunkBytes - 1)
	}
	return min(from, size), min(to, size), nil
}

// hashBlocks hashes the blocks of data that are not zero. off, their offset, is a multiple of chunkBytes.
func (t *taker) hashBlocks(data []byte, off int64) {
	for len(data) > 0 {
		n := min(len(data), chunkBytes)
		if !bytes.Equal(data[:n], zeros[:n]) {
			t.hashNumber(off)
			t.hasher.Write(data[:n])
		}
		data, off = data[n:], off+int64(n)
	}
}

func (t *taker) hashNumber(n int64) {
	t.hasher.Write(binary.LittleEndian.AppendUint64(t.number[:0], uint64(n)))
}

// copyRange hashes, by blocks or as it is, and stores one range and returns how far it got, which is less
// than to only if the file ends there.
func (t *taker) copyRange(fd int, from, to int64, c *content, blocks bool) (int64, error) {
	for from < to {
		if err := t.ctx.Err(); err != nil {
			return 0, err
		}
		want := min(to-from, readBytes)
		n, err := readFullAt(fd, t.buf[:want], from)
		if err != nil {
			return 0, &readError{err}
		}
		data := t.buf[:n]
		switch {
		case t.opt.NoHash:
		case blocks:
			t.hashBlocks(data, from)
		default:
			t.hasher.Write(data)
		}
		if err := t.sink(data, from, c); err != nil {
			return 0, err
		}
		from += int64(n)
		t.bytes += int64(n)
		if int64(n) < want {
			return from, nil
		}
		if n == readBytes {
			t.progress()
		}
	}
	return from, nil
}

// sink stores data in chunks. Ranges start at chunk boundaries, see dataAfter.
func (t *taker) sink(data []byte, off int64, c *content) error {
	if t.opt.Sink == nil {
		return nil
	}
	for len(data) > 0 {
		n := min(len(data), chunkBytes)
		id, err := t.opt.Sink(data[:n], off)
		if err != nil {
			return fmt.Errorf("store content at %d: %w", off, err)
		}
		c.chunks = append(c.chunks, Chunk{Off: off, Len: uint32(n), ID: id})
		data, off = data[n:], off+int64(n)
	}
	return nil
}

func (t *taker) hashZeros(n int64) error {
	if t.opt.NoHash {
		return nil
	}
	for i := 0; n > 0; i++ {
		if i%256 == 0 { // 16 MiB: a hole can take hours
			if err := t.ctx.Err(); err != nil {
				return err
			}
		}
		k := min(n, int64(len(zeros)))
		t.hasher.Write(zeros[:k])
		n -= k
	}
	return nil
}

// readFullAt reads until buf is full or the file ends.
func readFullAt(fd int, buf []byte, off int64) (int, error) {
	done := 0
	for done < len(buf) {
		n, err := retry(func() (int, error) { return unix.Pread(fd, buf[done:], off+int64(done)) })
		if err != nil {
			return done, err
		}
		if n == 0 {
			break
		}
		if n < 0 {
			return done, io.ErrUnexpectedEOF
		}
		done += n
	}
	return done, nil
}
