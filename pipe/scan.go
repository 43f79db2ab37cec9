// SPDX-License-Identifier: Apache-2.0

package pipe

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// A Scanner takes a stream apart into blocks, without undoing layers. It needs no
// keys. After damage it goes on at the next block that it finds.
type Scanner struct {
	r      *bufio.Reader
	head   *Header
	copy   []byte // of the encoded header
	off    int64  // of what is next
	buf    []byte
	magics [4]byte
}

// NewScanner reads the header.
func NewScanner(r io.Reader) (*Scanner, error) {
	var copied bytes.Buffer
	br := bufio.NewReaderSize(r, MaxHeaderBytes)
	head, err := ReadHeader(io.TeeReader(br, &copied))
	if err != nil {
		return nil, err
	}
	s := &Scanner{r: br, head: head, copy: copied.Bytes(), off: int64(copied.Len())}
	binary.LittleEndian.PutUint32(s.magics[:], blockMagic)
	return s, nil
}

// Header returns the stream's header.
func (s *Scanner) Header() *Header { return s.head }

// Encoded returns the header's bytes.
func (s *Scanner) Encoded() []byte { return s.copy }

// Offset returns the position of what Next reads next.
func (s *Scanner) Offset() int64 { return s.off }

// Next returns the next block and its payload, valid until the next call. A *Fault of
// kind Garbage says what was skipped to the next block; after it Next goes on. At the
// end it returns io.EOF, in the middle of a block io.ErrUnexpectedEOF.
func (s *Scanner) Next() (h BlockHeader, payload []byte, err error) {
	for s.atCopy() {
		s.discard(len(s.copy))
	}
	b, err := s.r.Peek(BlockHeaderBytes)
	if len(b) == 0 && err == io.EOF {
		return h, nil, io.EOF
	}
	if err != nil && err != io.EOF {
		return h, nil, err
	}
	if err == io.EOF && bytes.HasPrefix(s.magics[:], b[:min(4, len(b))]) {
		return h, nil, io.ErrUnexpectedEOF
	}
	if err == io.EOF || !h.Parse(b) || h.Length > s.head.MaxPayload() {
		return h, nil, s.skip()
	}
	s.discard(BlockHeaderBytes)
	if cap(s.buf) < h.Length {
		s.buf = make([]byte, s.head.MaxPayload())
	}
	payload = s.buf[:h.Length]
	n, err := io.ReadFull(s.r, payload)
	s.off += int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return h, payload, err
}

// atCopy reports whether a copy of the header follows: where files that were cut by size
// or time are joined, each begins with one.
func (s *Scanner) atCopy() bool {
	if b, err := s.r.Peek(len(Magic)); err != nil || string(b) != Magic {
		return false
	}
	b, err := s.r.Peek(len(s.copy))
	return err == nil && bytes.Equal(b, s.copy)
}

func (s *Scanner) discard(n int) {
	n, _ = s.r.Discard(n) // of what was peeked
	s.off += int64(n)
}

// skip goes to the next block and says how far that was. It makes at least one step.
func (s *Scanner) skip() error {
	from := s.off
	s.discard(1)
	for {
		b, err := s.r.Peek(BlockHeaderBytes)
		var h BlockHeader
		if len(b) == BlockHeaderBytes && (h.Parse(b) || s.atCopy()) || len(b) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return err
		}
		// To the next place where a block or a header could begin.
		at := 1
		if i := bytes.IndexByte(b[1:], s.magics[0]); i >= 0 {
			at += i
		} else {
			at = len(b)
		}
		s.discard(at)
	}
	return &Fault{Kind: Garbage, Offset: from, Detail: fmt.Sprintf("%d bytes are no block", s.off-from)}
}
