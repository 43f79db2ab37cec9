// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// maxData bounds generated data, in bytes.
const maxData = trace.MaxFrameBytes

// Build writes the stream that a text describes. Errors name the line.
func Build(w io.Writer, text io.Reader) error {
	b := builder{}
	sc := bufio.NewScanner(text)
	sc.Buffer(nil, 4*maxData)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := b.line(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read text: %w", err)
	}
	if err := b.closeFrame(); err != nil {
		return err
	}
	_, err := w.Write(b.out)
	return err
}

type builder struct {
	out     []byte
	id, seq uint64
	version uint16 // of frames; 0 is the current one

	open    bool // a frame of records is
	frame   trace.Frame
	payload []byte
	rec     trace.Record
	has     bool // rec is to be appended
}

func (b *builder) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "head", "end", "filter":
		return b.object(word, rest)
	case "frame":
		if err := b.closeFrame(); err != nil {
			return err
		}
		b.open, b.frame = true, trace.Frame{Kind: trace.FrameRecords}
		return assign(tokens(rest), frameFields, &b.frame, nil, nil)
	case "version":
		v, err := strconv.ParseUint(rest, 0, 16)
		b.version = uint16(v)
		return err
	case "flip", "cut":
		return b.damage(word, rest)
	}
	if !b.open {
		return fmt.Errorf("%s outside a frame", word)
	}
	switch word {
	case "object":
		if !b.has {
			return fmt.Errorf("object without a record")
		}
		b.rec.Objects = append(b.rec.Objects, trace.Object{})
		return assign(tokens(rest), objectFields, &b.rec.Objects[len(b.rec.Objects)-1], nil, nil)
	case "piece":
		if !b.has {
			return fmt.Errorf("piece without a record")
		}
		return b.piece(rest)
	}
	b.closeRecord()
	if word == "junk" {
		body, err := strconv.Unquote(rest)
		if err != nil {
			return fmt.Errorf("junk %s: %w", rest, err)
		}
		b.payload = binary.LittleEndian.AppendUint64(b.payload, uint64(len(body)))
		b.payload = append(b.payload, body...)
		b.pad()
		return nil
	}
	for i := range kinds {
		if k := &kinds[i]; k.name == word {
			b.has, b.rec = true, trace.Record{Type: k.typ}
			return assign(tokens(rest), k.fields, &b.rec, k.flags, &b.rec.Flags)
		}
	}
	return fmt.Errorf("%q is no record", word)
}

// objects are the frames whose payload is a JSON object, by their words.
var objects = map[trace.FrameKind]string{trace.FrameHead: "head", trace.FrameEnd: "end",
	trace.FrameCounters: "counters", trace.FrameFilter: "filter"}

// object writes one of these.
func (b *builder) object(word, rest string) error {
	if err := b.closeFrame(); err != nil {
		return err
	}
	at := strings.IndexByte(rest, '{')
	if at < 0 {
		return fmt.Errorf("%s without a JSON object", word)
	}
	for kind, name := range objects {
		if name == word {
			b.frame = trace.Frame{Kind: kind}
		}
	}
	if err := assign(tokens(rest[:at]), frameFields, &b.frame, nil, nil); err != nil {
		return err
	}
	b.payload = append(b.payload, rest[at:]...)
	for len(b.payload)%8 != 0 {
		b.payload = append(b.payload, ' ')
	}
	b.open = true
	return b.closeFrame()
}

func (b *builder) piece(rest string) error {
	var p trace.Piece
	var list []string
	for _, t := range tokens(rest) {
		data, ok, err := dataOf(t)
		if err != nil {
			return err
		}
		if ok {
			p.Data = append(p.Data, data...)
			continue
		}
		list = append(list, t)
	}
	flags := uint32(0)
	if err := assign(list, pieceFields, &p, pieceFlags, &flags); err != nil {
		return err
	}
	p.Flags = uint8(flags)
	switch {
	case p.Flags&trace.PieceHash != 0 && p.Flags&(trace.PieceMissing|trace.PieceOmitted) == 0:
		if want := len(event.Digest{}); len(p.Data) != want {
			return fmt.Errorf("a hash has %d bytes, not %d", want, len(p.Data))
		}
	case p.Flags&(trace.PieceMissing|trace.PieceOmitted) == 0:
		p.Len = uint32(len(p.Data))
	case p.Data != nil:
		return fmt.Errorf("a piece that is missing or omitted has no data")
	}
	b.rec.Pieces = append(b.rec.Pieces, p)
	return nil
}

// dataOf reads a token that stands for bytes.
func dataOf(t string) (data []byte, ok bool, err error) {
	switch {
	case strings.HasPrefix(t, `"`):
		s, err := strconv.Unquote(t)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", t, err)
		}
		return []byte(s), true, nil
	case strings.HasPrefix(t, "zero="):
		n, err := strconv.ParseUint(t[5:], 0, 32)
		if err != nil || n > maxData {
			return nil, false, fmt.Errorf("%s: not a length up to %d", t, maxData)
		}
		return make([]byte, n), true, nil
	case strings.HasPrefix(t, "seed="):
		seed, length, _ := strings.Cut(t[5:], ":")
		s, err1 := strconv.ParseUint(seed, 0, 64)
		n, err2 := strconv.ParseUint(length, 0, 32)
		if err1 != nil || err2 != nil || n > maxData {
			return nil, false, fmt.Errorf("%s: not SEED:LENGTH", t)
		}
		data = make([]byte, n+8)
		rng := rand.New(rand.NewPCG(s, 0))
		for i := uint64(0); i < n; i += 8 {
			binary.LittleEndian.PutUint64(data[i:], rng.Uint64())
		}
		return data[:n], true, nil
	}
	return nil, false, nil
}

// damage breaks the stream as it is so far.
func (b *builder) damage(word, rest string) error {
	if err := b.closeFrame(); err != nil {
		return err
	}
	at, err := strconv.ParseInt(rest, 0, 64)
	if at < 0 {
		at += int64(len(b.out))
	}
	if err != nil || at < 0 || at >= int64(len(b.out)) {
		return fmt.Errorf("%s %s: not an offset in a stream of %d bytes", word, rest, len(b.out))
	}
	if word == "cut" {
		b.out = b.out[:at]
		return nil
	}
	b.out[at] ^= 0xff
	return nil
}

func (b *builder) closeRecord() {
	if b.has {
		b.payload = trace.AppendRecord(b.payload, &b.rec)
		b.has = false
	}
}

func (b *builder) pad() {
	for len(b.payload)%8 != 0 {
		b.payload = append(b.payload, 0)
	}
}

func (b *builder) closeFrame() error {
	if !b.open {
		return nil
	}
	b.closeRecord()
	if len(b.payload) > trace.MaxFrameBytes {
		return fmt.Errorf("a frame of %d bytes, at most %d are allowed", len(b.payload), trace.MaxFrameBytes)
	}
	f := &b.frame
	if f.Stream == 0 {
		f.Stream = b.id
	}
	if f.Seq == 0 {
		f.Seq = b.seq
	}
	b.id, b.seq = f.Stream, f.Seq+1
	h := make([]byte, trace.FrameHeaderBytes)
	f.Put(h, b.payload)
	if b.version != 0 {
		le := binary.LittleEndian
		le.PutUint16(h[4:], b.version)
		le.PutUint32(h[60:], crc32.Checksum(h[:60], crc32.MakeTable(crc32.Castagnoli)))
	}
	b.out = append(append(b.out, h...), b.payload...)
	b.open, b.payload = false, b.payload[:0]
	return nil
}

// assign sets the fields and flags that tokens name.
func assign[T any](tokens []string, list []field[T], v *T, flags []flag, bits *uint32) error {
next:
	for _, t := range tokens {
		name, value, ok := strings.Cut(t, "=")
		if ok {
			for _, f := range list {
				if f.name == name {
					if err := parse(f.ref(v), value); err != nil {
						return fmt.Errorf("%s: %w", t, err)
					}
					continue next
				}
			}
		}
		if bits != nil && name == "flags" && ok {
			more, err := strconv.ParseUint(value, 0, 32)
			if err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			*bits |= uint32(more)
			continue
		}
		for _, f := range flags {
			if f.name == t {
				*bits |= f.bit
				continue next
			}
		}
		return fmt.Errorf("%q is not known here", t)
	}
	return nil
}

// tokens splits at spaces outside strings.
func tokens(s string) []string {
	var list []string
	for {
		s = strings.TrimLeft(s, " \t")
		if s == "" {
			return list
		}
		at, quoted := 0, false
		for ; at < len(s) && (quoted || s[at] != ' ' && s[at] != '\t'); at++ {
			switch {
			case s[at] == '"':
				quoted = !quoted
			case s[at] == '\\' && quoted:
				at++
			}
		}
		at = min(at, len(s))
		list = append(list, s[:at])
		s = s[at:]
	}
}

// Bytes builds a stream from a text, for tests.
func Bytes(text string) ([]byte, error) {
	var b bytes.Buffer
	err := Build(&b, strings.NewReader(text))
	return b.Bytes(), err
}
