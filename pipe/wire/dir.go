// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe"
)

// Dir is a Store that keeps each stream in a file of a directory, named by its serial.
type Dir struct {
	Path string
	// MaxStreams limits the number of files; 0 means 10000. MaxBytes limits their total
	// size; 0 means no limit. MinFree bytes of the disk stay free; 0 means 64 MiB.
	MaxStreams int
	MaxBytes   int64
	MinFree    int64
	NoSync     bool // acknowledge blocks before they are on the disk

	mu      sync.Mutex
	known   map[uint64]known // the state of the streams seen so far
	streams int
	bytes   int64
}

// known is the state in which a log was closed. A stream that this process has not seen is
// read once.
type known struct {
	next  uint64
	off   int64
	final bool
}

const (
	defaultStreams = 10000
	defaultFree    = 64 << 20
	streamSuffix   = ".stream"
)

// NewDir makes the directory if it does not exist, and counts its streams and bytes.
func NewDir(path string) (*Dir, error) {
	d := &Dir{Path: path, known: map[uint64]known{}, MaxStreams: defaultStreams, MinFree: defaultFree}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(path, "*"+streamSuffix))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if st, err := os.Stat(name); err == nil {
			d.streams++
			d.bytes += st.Size()
		}
	}
	return d, nil
}

// Name returns the file of a stream.
func (d *Dir) Name(serial uint64) string {
	return filepath.Join(d.Path, fmt.Sprintf("%016x%s", serial, streamSuffix))
}

// Open implements Store.
func (d *Dir) Open(h *pipe.Header, encoded []byte) (Log, error) {
	name := d.Name(h.Serial)
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return d.create(name, h, encoded)
	}
	if err != nil {
		return nil, err
	}
	l := &dirLog{d: d, f: f, serial: h.Serial}
	if err := l.open(encoded); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

func (d *Dir) create(name string, h *pipe.Header, encoded []byte) (_ Log, err error) {
	d.mu.Lock()
	full := d.streams >= d.MaxStreams
	if !full {
		d.streams++
	}
	d.mu.Unlock()
	if full {
		return nil, fmt.Errorf("the directory has %d streams already: %w", d.MaxStreams, ErrRefused)
	}
	defer func() {
		if err != nil {
			d.mu.Lock()
			d.streams--
			d.mu.Unlock()
		}
	}()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	l := &dirLog{d: d, f: f, serial: h.Serial}
	if err = l.append(encoded); err == nil {
		err = syncDir(d.Path)
	}
	if err != nil {
		f.Close()
		os.Remove(name)
		return nil, err
	}
	return l, nil
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// dirLog is a stream in a file.
type dirLog struct {
	d      *Dir
	f      *os.File
	serial uint64
	known
}

// open finds out which blocks of a stream exist, and cuts off an incomplete one.
func (l *dirLog) open(encoded []byte) error {
	header := make([]byte, len(encoded))
	if n, err := l.f.ReadAt(header, 0); err == io.EOF && bytes.HasPrefix(encoded, header[:n]) {
		return l.rewrite(encoded) // it was interrupted when the file was made
	} else if err != nil {
		return err
	}
	if !bytes.Equal(header, encoded) {
		return fmt.Errorf("there is another stream with this serial: %w", ErrRefused)
	}
	l.d.mu.Lock()
	k, ok := l.d.known[l.serial]
	l.d.mu.Unlock()
	if ok {
		l.known = k
	} else if err := l.scan(); err != nil {
		return err
	}
	return l.cut()
}

func (l *dirLog) rewrite(encoded []byte) error {
	l.off = 0
	if err := l.cut(); err != nil {
		return err
	}
	return l.append(encoded)
}

// scan reads the existing blocks.
func (l *dirLog) scan() error {
	if _, err := l.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s, err := pipe.NewScanner(bufio.NewReaderSize(l.f, 1<<20))
	if err != nil {
		return err
	}
	for {
		l.off = s.Offset()
		h, _, err := s.Next()
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return nil
		}
		var fault *pipe.Fault
		if errors.As(err, &fault) || err == nil && (h.Number != l.next || h.Serial != l.serial) {
			return fmt.Errorf("%s is damaged at offset %d, and is not changed: %w", l.f.Name(), l.off, ErrRefused)
		}
		if err != nil {
			return err
		}
		l.next, l.final = h.Number+1, h.Final
	}
}

// cut makes the file end after the last whole block.
func (l *dirLog) cut() error {
	st, err := l.f.Stat()
	if err != nil {
		return err
	}
	if st.Size() != l.off {
		if err := l.f.Truncate(l.off); err != nil {
			return err
		}
	}
	_, err = l.f.Seek(l.off, io.SeekStart)
	return err
}

// Next implements Log.
func (l *dirLog) Next() uint64 { return l.next }

// Append implements Log.
func (l *dirLog) Append(h *pipe.BlockHeader, block []byte) error {
	if l.final {
		return fmt.Errorf("a block after the final one: %w", ErrRefused)
	}
	if err := l.append(block); err != nil {
		return err
	}
	l.next, l.final = h.Number+1, h.Final
	return nil
}

// append writes all bytes or none.
func (l *dirLog) append(b []byte) error {
	d := l.d
	d.mu.Lock()
	full := d.MaxBytes > 0 && d.bytes+int64(len(b)) > d.MaxBytes
	if !full {
		d.bytes += int64(len(b))
	}
	d.mu.Unlock()
	if full {
		return fmt.Errorf("the directory has %d bytes already", d.MaxBytes)
	}
	err := l.room(len(b))
	if err == nil {
		_, err = l.f.WriteAt(b, l.off)
	}
	if err != nil {
		d.mu.Lock()
		d.bytes -= int64(len(b))
		d.mu.Unlock()
		_ = l.f.Truncate(l.off)
		return err
	}
	l.off += int64(len(b))
	return nil
}

// room checks that enough of the disk stays free.
func (l *dirLog) room(n int) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(l.f.Fd()), &st); err != nil {
		return nil // the write returns the error
	}
	if int64(st.Bavail)*st.Bsize-int64(n) < l.d.MinFree {
		return fmt.Errorf("write %s: %w", l.f.Name(), unix.ENOSPC)
	}
	return nil
}

// Sync implements Log.
func (l *dirLog) Sync() error {
	if l.d.NoSync {
		return nil
	}
	return unix.Fdatasync(int(l.f.Fd()))
}

// Close implements Log.
func (l *dirLog) Close() error {
	l.d.mu.Lock()
	l.d.known[l.serial] = l.known
	l.d.mu.Unlock()
	return l.f.Close()
}
