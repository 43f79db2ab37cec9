// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// encoding is a form of content that is known by its first bytes.
type encoding struct {
	name   string
	begins func(b []byte) bool
	// reader decodes frames of it, one behind the other; nil: a cipher.
	reader func(r io.Reader) (io.Reader, error)
	magic  [][]byte // with one of them frames begin
	// unit returns where the blocks of the frame end that bytes begin with: the last one ends where the frame
	// does, or the bytes, if it is not whole. It returns nil if it is no frame.
	unit func(b []byte) (ends []int, whole bool)
}

const tls = "TLS"

// encodings are those that are recognised.
var encodings = []encoding{
	{name: tls, begins: isTLS},
	{name: "SSH", begins: func(b []byte) bool { return bytes.HasPrefix(b, []byte("SSH-2.0-")) }},
	compressed("gzip", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }, gzipBlocks, "\x1f\x8b\x08"),
	compressed("zstd", newZstd, zstdBlocks, "\x28\xb5\x2f\xfd"),
	compressed("snappy", func(r io.Reader) (io.Reader, error) { return s2.NewReader(r), nil }, snappyBlocks,
		"\xff\x06\x00\x00sNaPpY", "\xff\x06\x00\x00S2sTwO"),
	compressed("lz4", func(r io.Reader) (io.Reader, error) { return lz4.NewReader(r), nil }, lz4Blocks,
		"\x04\x22\x4d\x18"),
}

const (
	mostDecoded  = 256 << 20 // bytes of all that is decoded
	mostWindow   = 64 << 20  // bytes of what has to be kept to decode zstd
	leastEncoded = 4         // moves of a direction that are looked at: an upgrade to TLS may come first
)

// compressed makes an encoding whose frames begin with one of some words.
func compressed(name string, reader func(io.Reader) (io.Reader, error), unit func([]byte) ([]int, bool),
	words ...string) encoding {
	e := encoding{name: name, reader: reader, unit: unit}
	for _, w := range words {
		e.magic = append(e.magic, []byte(w))
	}
	e.begins = func(b []byte) bool {
		return slices.ContainsFunc(e.magic, func(w []byte) bool { return bytes.HasPrefix(b, w) })
	}
	return e
}

// isTLS reports whether bytes begin with a handshake of TLS (RFC 8446, 5.1).
func isTLS(b []byte) bool { return len(b) >= 3 && b[0] == 0x16 && b[1] == 3 && b[2] <= 4 }

// newZstd makes a decoder that does not read ahead, so that it is known which bytes came of which.
func newZstd(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(mostWindow))
}

// recognise finds the objects whose content is encoded, and decodes it if that is asked for.
func (f *Flow) recognise() error {
	var list, failed []*decoding
	left := int64(mostDecoded)
	for i := range f.objects {
		o := &f.objects[i]
		e, begins := f.encodingOf(uint32(i))
		if e == nil {
			continue
		}
		o.Encoding, o.secret = e.name, e.name == tls && begins
		if e.reader == nil || !f.o.Decode {
			continue
		}
		d := &decoding{object: uint32(i), e: e}
		some, all, err := f.decode(d, &left)
		switch {
		case err != nil:
			return err
		case all:
			list = append(list, d)
		case some:
			failed = append(failed, d)
		}
	}
	if err := f.apply(f.decodedOf(list, failed)); err != nil {
		return err
	}
	f.noteEncodings()
	return nil
}

// encodingOf returns the encoding of an object, nil if it has none that is known; begins, if the object
// begins with it, and has not only messages in it.
func (f *Flow) encodingOf(object uint32) (e *encoding, begins bool) {
	file := f.objects[object].Kind == File
	list := f.byObject.of(object)
	for _, k := range list[:min(len(list), leastEncoded)] {
		m := &f.moves[k]
		if m.at == reset || m.class == 0 {
			continue
		}
		b, err := f.contents.borrow(m.class)
		if err != nil {
			return nil, false // it is said where the content is used
		}
		for i := range encodings {
			e := &encodings[i]
			switch {
			case file && (e.reader == nil || m.at != 0):
			case e.begins(b):
				return e, m.at == 0
			case e.unit != nil && e.behindHead(b) >= 0:
				return e, false
			}
		}
	}
	return nil, false
}

// find returns where the first word stands that frames begin with, -1 if none does.
func (e *encoding) find(b []byte) int {
	first := -1
	for _, w := range e.magic {
		if i := bytes.Index(b, w); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	return first
}

// behindHead returns where a message begins behind no more than a header, -1 if none does.
func (e *encoding) behindHead(b []byte) int {
	return e.find(b[:min(len(b), nearGap+len(e.magic[0]))]) // words of an encoding are of one length
}

// encoded reports whether an object is a stream of which the bytes are another form of the data: that some of
// them are not elsewhere says nothing.
func (f *Flow) encoded(object uint32) bool {
	o := &f.objects[object]
	return o.Kind != File && o.Encoding != "" && !o.Decoded
}

// encodes reports whether a process encodes anew what it takes in from one object and gives out at another, of
// which one is encoded: has of the messages there that it gives out as they are, of them all.
func (f *Flow) encodes(from, to uint32, has, of int) bool {
	return (f.encoded(from) || f.encoded(to)) && rareMissing*has < (rareMissing-1)*of
}

// encodesTo is encodes for all that a process writes to an object.
func (f *Flow) encodesTo(process, object uint32, c *comparison) bool {
	if !f.encoded(object) {
		return false
	}
	has, of := 0, 0
	for _, k := range f.byObject.of(object) {
		m := &f.moves[k]
		if !m.write() || m.bytes() < smallest || f.processOf(k) != process {
			continue
		}
		of++
		if x := c.writes[k]; x != nil && x.verdict == passedOn {
			has++
		} else if _, ok := f.lastRead(m.class, process, k); ok {
			has++
		}
	}
	return rareMissing*has < (rareMissing-1)*of
}

// noteEncodings says what cannot be compared.
func (f *Flow) noteEncodings() {
	for i := range encodings {
		e := &encodings[i]
		var names []string
		for k := range f.objects {
			if o := &f.objects[k]; o.Encoding == e.name && !o.Decoded {
				names = append(names, f.name(o))
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) == 0 {
			continue
		}
		list := strings.Join(names[:min(len(names), 3)], ", ")
		if more := len(names) - 3; more > 0 {
			list += fmt.Sprintf(" and %d more", more)
		}
		hint := ""
		if e.reader != nil && !f.o.Decode {
			hint = "; --decode does"
		}
		f.notes = append(f.notes, fmt.Sprintf("%s (%s): what is in them cannot be compared beyond here%s",
			many(len(names), e.name+" stream or file"), list, hint))
	}
}

// sidesOf returns what was written to an object, and what each process read of it, from its beginning on. ok
// is false if there is something between or again, or of which the content is not known.
func (f *Flow) sidesOf(object uint32) (sides [][]uint32, ok bool) {
	o := &f.objects[object]
	if o.Kind == Socket || o.Messages || o.Kind == Stream && !o.Known {
		return nil, false
	}
	byReader := map[uint32]int{}
	var wrote []uint32
	for _, k := range f.byObject.of(object) {
		m := &f.moves[k]
		switch {
		case m.at == reset && m.bytes() == 0 && len(wrote)+len(sides) == 0: // it was empty
		case m.at == reset || m.class == 0 || f.contents.classes[m.class].hashed():
			return nil, false
		case m.write():
			wrote = append(wrote, k)
		default:
			p := f.processOf(k)
			if o.Kind == Stream { // several processes may read one side
				p = 0
			}
			i, known := byReader[p]
			if !known {
				i = len(sides)
				byReader[p] = i
				sides = append(sides, nil)
			}
			sides[i] = append(sides[i], k)
		}
	}
	if len(wrote) > 0 {
		sides = append([][]uint32{wrote}, sides...)
	}
	for _, side := range sides {
		at := int64(0)
		for _, k := range side {
			if m := &f.moves[k]; m.at != at {
				return nil, false
			}
			at = f.moves[k].end()
		}
	}
	return sides, len(sides) > 0
}

// pieces is a reader of contents, one behind the other, that tells when the next one is needed.
type pieces struct {
	list [][]byte
	at   int // the one that is read, and what is read of it
	off  int
	next func() // the next piece begins
}

func (p *pieces) Read(b []byte) (int, error) {
	for p.at < len(p.list) && p.off == len(p.list[p.at]) {
		p.at, p.off = p.at+1, 0
		p.next()
	}
	if p.at == len(p.list) {
		return 0, io.EOF
	}
	n := copy(b, p.list[p.at][p.off:])
	p.off += n
	return n, nil
}

// sink keeps what is written, up to what is left for all.
type sink struct {
	b    []byte
	left *int64
}

var errTooMuch = errors.New("too much content to be decoded")

func (s *sink) Write(b []byte) (int, error) {
	if *s.left -= int64(len(b)); *s.left < 0 {
		return 0, errTooMuch
	}
	s.b = append(s.b, b...)
	return len(b), nil
}

// inlined returns the class of bytes that are in no tape as they are; 0 of none.
func (c *contents) inlined(b []byte) (uint32, error) {
	if len(b) == 0 {
		return 0, nil
	}
	k := class{len: int64(len(b)), kind: kindInline, first: uint32(min(int64(len(c.inline)), 1<<32-1)),
		n: uint32(len(b))}
	return c.add(k, append(append(c.key[:0], kindInline), b...), func() { c.inline = append(c.inline, b...) })
}
