// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

type fileOptions struct {
	buffer int64 // bytes kept before they are written; 0 writes each unit at once
	sync   bool  // O_SYNC
	rotate int64 // begin another file after so many bytes; 0 is never
	every  time.Duration
	fresh  bool // must not exist
}

// file writes one file, or NAME.0001, NAME.0002 and so on. Each begins with the header,
// so that it can be read alone; joined they are the stream.
type file struct {
	name   string
	o      fileOptions
	f      *os.File
	w      io.Writer
	buf    *bufio.Writer
	header []byte
	part   int
	bytes  int64
	begun  time.Time
	err    error
}

// minRotate keeps a directory from filling up with files.
const minRotate = 1 << 20

func openFile(name string, o fileOptions) (*file, error) {
	switch {
	case name == "":
		return nil, errors.New("no name")
	case o.rotate > 0 && o.rotate < minRotate:
		return nil, fmt.Errorf("rotate=%d: at least 1M", o.rotate)
	case o.every > 0 && o.every < time.Second:
		return nil, fmt.Errorf("every=%v: at least 1s", o.every)
	case o.buffer > 1<<30:
		return nil, fmt.Errorf("buffer=%d: at most 1G", o.buffer)
	}
	f := &file{name: name, o: o}
	return f, f.next()
}

func (f *file) rotates() bool { return f.o.rotate > 0 || f.o.every > 0 }

func partName(name string, part int) string { return fmt.Sprintf("%s.%04d", name, part) }

// next begins a file.
func (f *file) next() error {
	name, flags := f.name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC
	if f.part++; f.rotates() {
		name = partName(f.name, f.part)
	}
	if f.o.fresh {
		flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	if f.o.sync {
		flags |= unix.O_SYNC
	}
	var err error
	if f.f, err = os.OpenFile(name, flags, 0o666); err != nil {
		return err
	}
	f.w, f.bytes, f.begun = f.f, 0, time.Now()
	if f.o.buffer > 0 {
		f.buf = bufio.NewWriterSize(f.f, int(f.o.buffer))
		f.w = f.buf
	}
	return nil
}

// Write writes a unit.
func (f *file) Write(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	if f.f == nil {
		return 0, os.ErrClosed
	}
	if f.rotates() {
		if f.header == nil {
			f.header = bytes.Clone(b)
		}
		full := f.o.rotate > 0 && f.bytes+int64(len(b)) > f.o.rotate || f.o.every > 0 && time.Since(f.begun) > f.o.every
		if full && f.bytes > int64(len(f.header)) {
			if f.err = f.turn(); f.err != nil {
				return 0, f.err
			}
		}
	}
	n, err := f.w.Write(b)
	f.bytes += int64(n)
	f.err = err
	return n, err
}

// turn ends a file and begins the next one.
func (f *file) turn() error {
	if err := f.end(); err != nil {
		return err
	}
	if err := f.next(); err != nil {
		return err
	}
	n, err := f.w.Write(f.header)
	f.bytes = int64(n)
	return err
}

func (f *file) end() error {
	var err error
	if f.buf != nil {
		err = f.buf.Flush()
		f.buf = nil
	}
	return errors.Join(err, f.f.Close())
}

// Close writes what is buffered.
func (f *file) Close() error {
	if f.f == nil {
		return os.ErrClosed
	}
	err := f.end()
	f.f = nil
	return cmp.Or(f.err, err)
}

// device is a block device. What was on it before stays behind the end of the stream.
type device struct{ f *os.File }

// openDevice opens a block device that nobody uses: with O_EXCL the kernel refuses one
// that is mounted (open(2)).
func openDevice(path string) (*device, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Mode()&(os.ModeDevice|os.ModeCharDevice) != os.ModeDevice {
		return nil, errors.New("it is no block device")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_EXCL, 0)
	if err != nil {
		return nil, err
	}
	return &device{f}, nil
}

func (d *device) Write(b []byte) (int, error) { return d.f.Write(b) }

// Close brings what was written to the device.
func (d *device) Close() error {
	if d.f == nil {
		return os.ErrClosed
	}
	err := errors.Join(d.f.Sync(), d.f.Close())
	d.f = nil
	return err
}
