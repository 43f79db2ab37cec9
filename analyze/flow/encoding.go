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
}

const tls = "TLS"

// encodings are those that are recognised.
var encodings = []encoding{
	{tls, isTLS, nil},
	{"SSH", magic("SSH-2.0-"), nil},
	{"gzip", magic("\x1f\x8b\x08"), func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }},
	{"zstd", magic("\x28\xb5\x2f\xfd"), newZstd},
	{"snappy", func(b []byte) bool {
		return magic("\xff\x06\x00\x00sNaPpY")(b) || magic("\xff\x06\x00\x00S2sTwO")(b)
	}, func(r io.Reader) (io.Reader, error) { return s2.NewReader(r), nil }},
	{"lz4", magic("\x04\x22\x4d\x18"), func(r io.Reader) (io.Reader, error) { return lz4.NewReader(r), nil }},
}

const (
	mostDecoded  = 256 << 20 // bytes of all that is decoded
	mostWindow   = 64 << 20  // bytes of what has to be kept to decode zstd
	leastEncoded = 4         // moves of a direction that are looked at: an upgrade to TLS may come first
)

func magic(s string) func(b []byte) bool {
	return func(b []byte) bool { return bytes.HasPrefix(b, []byte(s)) }
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
	left := int64(mostDecoded)
	for i := range f.objects {
		o := &f.objects[i]
		e, whole := f.encodingOf(uint32(i))
		if e == nil {
			continue
		}
		o.Encoding, o.secret = e.name, e.name == tls && whole
		if e.reader == nil || !f.o.Decode {
			continue
		}
		ok, err := f.decode(uint32(i), e, whole, &left)
		if err != nil {
			return err
		}
		o.Decoded = ok
	}
	f.noteEncodings()
	return nil
}

// encodingOf returns the encoding of an object, nil if it has none that is known; whole, if the object
// begins with it, and not messages in it.
func (f *Flow) encodingOf(object uint32) (e *encoding, whole bool) {
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
			if file := f.objects[object].Kind == File; e.begins(b) && (!file || e.reader != nil && m.at == 0) {
				return e, m.at == 0
			}
		}
	}
	return nil, false
}

// encoded reports whether an object is a stream of which the bytes are another form of the data: that some of
// them are not elsewhere says nothing.
func (f *Flow) encoded(object uint32) bool {
	o := &f.objects[object]
	return o.Kind != File && o.Encoding != "" && !o.Decoded
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

// decode puts decoded content in the place of that of the moves of an object, if all of it can be decoded:
// positions are then those in the decoded content. It returns whether it did.
func (f *Flow) decode(object uint32, e *encoding, whole bool, left *int64) (bool, error) {
	sides, ok := f.sidesOf(object)
	if !ok {
		return false, nil
	}
	outs := make([][][]byte, len(sides))
	for i, side := range sides {
		pieces := make([][]byte, len(side))
		for n, k := range side {
			b, err := f.contents.bytes(f.moves[k].class)
			if err != nil {
				return false, err
			}
			pieces[n] = b
		}
		if whole {
			outs[i], ok = e.decode(pieces, left)
		} else {
			outs[i], ok = e.decodeMessages(pieces, left)
		}
		if !ok {
			return false, nil
		}
	}
	if !whole && len(sides) == 2 && !sameLengths(outs[0], outs[1]) {
		return false, nil // messages were read in parts
	}
	for i, side := range sides {
		at := int64(0)
		for n, k := range side {
			m, out := &f.moves[k], outs[i][n]
			class, err := f.contents.inlined(out)
			if err != nil {
				return false, err
			}
			m.at, m.class, m.n = at, class, m.n&writes|uint32(len(out))
			at += int64(len(out))
		}
	}
	return true, nil
}

// sameLengths reports whether two lists have pieces of the same lengths, as far as both go.
func sameLengths(a, b [][]byte) bool {
	for i := range min(len(a), len(b)) {
		if len(a[i]) != len(b[i]) {
			return false
		}
	}
	return true
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

// decode decodes contents that follow each other, and returns what came of each. ok is false if they cannot
// be decoded. The end may be missing.
func (e *encoding) decode(list [][]byte, left *int64) (outs [][]byte, ok bool) {
	outs = make([][]byte, len(list))
	out := sink{left: left}
	now, from := 0, 0
	p := &pieces{list: list}
	p.next = func() {
		outs[now], from = out.b[from:len(out.b):len(out.b)], len(out.b)
		now++
	}
	r, err := e.reader(p)
	if err != nil {
		return nil, false
	}
	if z, ok := r.(*zstd.Decoder); ok {
		defer z.Close()
	}
	if _, err := io.Copy(&out, r); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, false
	}
	if p.at < len(list)-1 || p.at < len(list) && p.off < len(list[p.at]) {
		return nil, false // something else follows
	}
	if now < len(list) {
		p.next()
	}
	return outs, len(out.b) > 0
}

// decodeMessages decodes those contents that are encoded each on its own.
func (e *encoding) decodeMessages(list [][]byte, left *int64) (outs [][]byte, ok bool) {
	outs = make([][]byte, len(list))
	for i, b := range list {
		outs[i] = b
		if !e.begins(b) {
			continue
		}
		if one, whole := e.decode([][]byte{b}, left); whole {
			outs[i], ok = one[0], true
		}
	}
	return outs, ok
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
