// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/trace"
)

// Names of the files in a script's directory.
const (
	skeletonName = "skeleton"
	replayName   = "replay"
	finalName    = "final"
	contentName  = "content"
)

// maxInline is the most bytes that stand in a line. Structures are longer if they are
// not understood.
const maxInline = 120

// contentWriter makes the content file. Equal pieces stand in it once.
type contentWriter struct {
	w      *bufio.Writer
	at     int64
	chunks map[uint64]int64 // place by chunk of the tape
	hashes map[[sha256.Size]byte]int64
}

func newContentWriter(w io.Writer) *contentWriter {
	return &contentWriter{w: bufio.NewWriterSize(w, 1<<20), chunks: map[uint64]int64{},
		hashes: map[[sha256.Size]byte]int64{}}
}

// add returns where the bytes stand.
func (c *contentWriter) add(b []byte) (int64, error) {
	h := sha256.Sum256(b)
	if at, ok := c.hashes[h]; ok {
		return at, nil
	}
	at := c.at
	n, err := c.w.Write(b)
	c.at += int64(n)
	c.hashes[h] = at
	return at, err
}

// chunk returns where the bytes of a tape's chunk stand.
func (c *contentWriter) chunk(t *trace.Tape, id uint64) (int64, error) {
	if at, ok := c.chunks[id]; ok {
		return at, nil
	}
	b, err := t.Chunk(id)
	if err != nil {
		return 0, err
	}
	at, err := c.add(b)
	c.chunks[id] = at
	return at, err
}

// contentReader is the content file of a script.
type contentReader struct {
	f    *os.File // nil if there is none
	size int64
}

var errNoContent = errors.New("there is no content file")

// get appends a part of the file to dst.
func (c *contentReader) get(dst []byte, off, n int64) ([]byte, error) {
	switch {
	case c.f == nil:
		return dst, errNoContent
	case off < 0 || n < 0 || off > c.size || n > c.size-off:
		return dst, fmt.Errorf("bytes %d to %d of content, which has %d", off, off+n, c.size)
	}
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	_, err := c.f.ReadAt(dst[at:], off)
	return dst, err
}
