// SPDX-License-Identifier: Apache-2.0

package all

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/iotape/iotape/format"
)

// packing is a way in which whole files are compressed.
type packing struct {
	name, suffix string
	magic        []byte
	open         func(r io.Reader) (io.Reader, error)
	text         bool // not compressed, but text of another encoding, which no format reads as it is
}

var packings = []packing{
	{"gzip", ".gz", []byte("\x1f\x8b"), func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }, false},
	{"zstd", ".zst", []byte("\x28\xb5\x2f\xfd"), func(r io.Reader) (io.Reader, error) {
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	}, false},
	{"xz", ".xz", []byte("\xfd7zXZ\x00"), func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) }, false},
	// Text with a byte order mark, as programs of Windows write it: it becomes UTF-8 without one.
	{"UTF-16", "", []byte("\xff\xfe"), func(r io.Reader) (io.Reader, error) {
		return &utf16Reader{r: bufio.NewReader(r), order: binary.LittleEndian}, nil
	}, true},
	{"UTF-16", "", []byte("\xfe\xff"), func(r io.Reader) (io.Reader, error) {
		return &utf16Reader{r: bufio.NewReader(r), order: binary.BigEndian}, nil
	}, true},
	{"UTF-8", "", []byte("\xef\xbb\xbf"), func(r io.Reader) (io.Reader, error) {
		_, err := io.CopyN(io.Discard, r, 3)
		return r, err
	}, true},
}

// Limits for hostile files.
const (
	maxWindow = 128 << 20 // bytes that a file can make zstd hold
	// Text becomes up to some hundred times smaller; what grows more is no trace.
	maxGrowth  = 1000
	freeGrowth = 64 << 20 // bytes that are written whatever the growth is
)

// packed returns how a file is compressed, by its first bytes; nil if it is not.
func packed(head []byte) *packing {
	for i := range packings {
		if bytes.HasPrefix(head, packings[i].magic) {
			return &packings[i]
		}
	}
	return nil
}

// head returns the first bytes of what is packed in a file, fewer if it is cut off or damaged.
func (p *packing) head(f *os.File) []byte {
	r, err := p.open(bufio.NewReader(io.NewSectionReader(f, 0, math.MaxInt64)))
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(r, format.MatchBytes))
	return text
}

// unpack writes what is packed to a file in a directory, under the name of the packed file
// without its suffix. whole is false if the packed file is cut off.
func (p *packing) unpack(ctx context.Context, in *os.File, dir string) (_ *os.File, whole bool, err error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	counted := &counter{r: in}
	r, err := p.open(bufio.NewReaderSize(counted, 1<<16))
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", p.name, err)
	}
	if dir, err = os.MkdirTemp(dir, "unpacked-"); err != nil {
		return nil, false, err
	}
	out, err := os.Create(filepath.Join(dir, strings.TrimSuffix(filepath.Base(in.Name()), p.suffix)))
	if err != nil {
		return nil, false, err
	}
	buf := make([]byte, 1<<20)
	for n := int64(0); ; {
		if ctx.Err() != nil {
			err = ctx.Err()
			break
		}
		var k int
		k, err = r.Read(buf)
		if _, writeErr := out.Write(buf[:k]); writeErr != nil {
			err = writeErr
			break
		}
		if n += int64(k); n > freeGrowth && n/maxGrowth > counted.n {
			err = fmt.Errorf("it expands to more than %d times its size", maxGrowth)
		}
		if err != nil {
			break
		}
	}
	cut := errors.Is(err, io.ErrUnexpectedEOF)
	if at, seekErr := out.Seek(0, io.SeekCurrent); (cut || err == io.EOF) && seekErr == nil && at == 0 {
		err, cut = errors.New("nothing can be unpacked of it: it is empty, or cut off in its first block"), false
	}
	if err == io.EOF || cut {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		out.Close()
		return nil, false, fmt.Errorf("%s: %w", p.name, err)
	}
	return out, !cut, nil
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// StandardInput is the name of a file that stands for the standard input.
const StandardInput = "-"

// Open opens a file that is to be identified and read. What comes from the standard input,
// or from another pipe, is stored in a file in a directory first; so are the joined files of
// strace -ff, if name is a directory of them.
func Open(ctx context.Context, name, dir string) (*os.File, error) {
	in := os.Stdin
	if name != StandardInput {
		var err error
		if in, err = os.Open(name); err != nil {
			if paths, _ := family(name); len(paths) > 0 {
				return OpenFamily(ctx, paths, dir)
			}
			return nil, err
		}
	}
	fi, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Mode().IsRegular() && name != StandardInput {
		return in, nil
	}
	if fi.IsDir() {
		paths, err := family(name)
		if err == nil && len(paths) == 0 {
			return in, nil
		}
		in.Close()
		if err != nil {
			return nil, err
		}
		return OpenFamily(ctx, paths, dir)
	}
	defer in.Close()
	out, err := os.CreateTemp(dir, "input-")
	if err != nil {
		return nil, err
	}
	copied := make(chan error, 1)
	go func() { // a read of a terminal or of a pipe does not end with the context
		_, err := io.Copy(out, in)
		copied <- err
	}()
	select {
	case err = <-copied:
	case <-ctx.Done():
		return nil, ctx.Err() // the file goes with the directory
	}
	defer out.Close()
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if name == StandardInput {
		name = "standard input"
	}
	fd, err := syscall.Dup(int(out.Fd())) // under the name that messages have
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
