// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// MaxObject is the longest JSON object that is read, in bytes.
const MaxObject = 8 << 20

// Object is a JSON object of a file.
type Object struct {
	Text   []byte // valid until the next one
	Line   int    // on which it begins, from 1
	Offset int64  // of its first byte
}

// Objects reads a file's JSON objects: those of an array, however that is laid out, or
// one on each line. Objects are found by their braces and not checked further.
type Objects struct {
	r     *bufio.Reader
	array bool
	begun bool
	line  int // at hand, from 1
	at    int64
	text  []byte
}

// NewObjects reads objects from r, the beginning of a file.
func NewObjects(r io.Reader) *Objects {
	return &Objects{r: bufio.NewReaderSize(r, 64<<10), line: 1}
}

// NotObject says that a part of a file is no JSON object, or one that cannot be used.
// Reading goes on behind it.
type NotObject struct {
	Line int
	Why  string
}

func (e *NotObject) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Why) }

// Next returns the next object. The error is a NotObject, after which Next can be
// called again; io.EOF at the end; or the file's.
func (o *Objects) Next() (Object, error) {
	if !o.begun {
		if err := o.begin(); err != nil {
			return Object{}, err
		}
	}
	if o.array {
		return o.element()
	}
	return o.wholeLine()
}

// begin finds out what the file is.
func (o *Objects) begin() error {
	if head, _ := o.r.Peek(3); bytes.Equal(head, []byte("\xef\xbb\xbf")) {
		o.r.Discard(3) // a byte order mark
		o.at = 3
	}
	for {
		c, err := o.r.ReadByte()
		if err != nil {
			return err
		}
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			o.pass(c)
			continue
		}
		o.begun, o.array = true, c == '['
		if o.array {
			o.pass(c)
			return nil
		}
		return o.r.UnreadByte()
	}
}

func (o *Objects) pass(c byte) {
	o.at++
	if c == '\n' {
		o.line++
	}
}

// wholeLine returns the object of the next line that is not empty.
func (o *Objects) wholeLine() (Object, error) {
	for {
		at, line := o.at, o.line
		text, long, err := o.readLine()
		all := len(text)
		text = bytes.TrimLeft(text, " \t\r\n")
		at += int64(all - len(text))
		text = bytes.TrimRight(text, " \t\r\n")
		switch {
		case err != nil:
			return Object{}, err
		case long:
			return Object{}, &NotObject{line, fmt.Sprintf("longer than %d MiB", MaxObject>>20)}
		case len(text) == 0:
			continue
		case text[0] != '{':
			return Object{}, &NotObject{line, fmt.Sprintf("%s: a JSON object was expected", excerpt(text))}
		}
		return Object{text, line, at}, nil
	}
}

// readLine reads up to the end of the line; of one that is too long, nothing is kept.
func (o *Objects) readLine() (text []byte, long bool, err error) {
	o.text = o.text[:0]
	for {
		part, err := o.r.ReadSlice('\n')
		o.at += int64(len(part))
		if long = long || len(o.text)+len(part) > MaxObject; !long {
			o.text = append(o.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && (long || len(o.text) > 0):
			return o.text, long, nil
		case err != nil:
			return nil, false, err
		default:
			o.line++
			return o.text, long, nil
		}
	}
}

// element returns the next object of an array.
func (o *Objects) element() (Object, error) {
	for {
		c, err := o.r.ReadByte()
		if err != nil {
			return Object{}, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', ',', '[', ']':
			o.pass(c)
		case '{':
			return o.braced()
		default:
			line := o.line
			junk := o.junk(c)
			return Object{}, &NotObject{line, fmt.Sprintf("%s: a JSON object was expected", excerpt(junk))}
		}
	}
}

// junk passes over what is no object, up to the next one or the line's end.
func (o *Objects) junk(c byte) []byte {
	o.text = o.text[:0]
	for {
		if len(o.text) < MaxObject {
			o.text = append(o.text, c)
		}
		o.pass(c)
		var err error
		if c, err = o.r.ReadByte(); err != nil {
			return o.text
		}
		if c == '{' || c == '\n' {
			o.r.UnreadByte()
			return o.text
		}
	}
}

// braced reads an object behind its first brace. A string does not go on in the next
// line (RFC 8259, 7): one that does is not closed, and the object ends there.
func (o *Objects) braced() (Object, error) {
	obj := Object{Line: o.line, Offset: o.at}
	o.text = append(o.text[:0], '{')
	o.pass('{')
	depth, quoted, escaped := 1, false, false
	for size := 1; depth > 0; size++ {
		c, err := o.r.ReadByte()
		if err == io.EOF {
			return obj, &NotObject{obj.Line, "the file ends within an object"}
		}
		if err != nil {
			return obj, err
		}
		o.pass(c)
		switch {
		case quoted && c == '\n':
			return obj, &NotObject{obj.Line, "a string is not closed"}
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if size < MaxObject {
			o.text = append(o.text, c)
		} else if size == MaxObject {
			o.text = o.text[:0]
		}
		if depth == 0 && size >= MaxObject {
			return obj, &NotObject{obj.Line, fmt.Sprintf("longer than %d MiB", MaxObject>>20)}
		}
	}
	obj.Text = o.text
	return obj, nil
}

// excerpt quotes the beginning of what was read.
func excerpt(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%q…", b[:most])
	}
	return fmt.Sprintf("%q", b)
}

// FirstObject returns the first JSON object of a file's head; nil if there is none that
// is complete.
func FirstObject(head []byte) map[string]json.RawMessage {
	for o := NewObjects(bytes.NewReader(head)); ; {
		obj, err := o.Next()
		var no *NotObject
		if errors.As(err, &no) {
			continue
		}
		if err != nil {
			return nil
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(obj.Text, &m) == nil {
			return m
		}
	}
}

// ErrNoEvent is returned for objects that are no events of their own.
var ErrNoEvent = errors.New("not an event")

// ObjectsByTime passes the JSON objects of a file on in the order of their times; those
// of one time keep the file's order. It reads the file twice: time is called for each
// object in the file's order, and call for those of which it returned no error.
//
// What is no JSON object, and objects of which time returns an error other than
// ErrNoEvent, are counted as left out, and the first is named. If that is all there is,
// ObjectsByTime fails. An error of call ends it.
func (im *Import) ObjectsByTime(ctx context.Context, in *os.File, time func(text []byte) (uint64, error),
	call func(text []byte) error) error {
	type place struct {
		time   uint64
		offset int64
		length int
		line   int
	}
	var places []place
	var bad uint64
	var first *NotObject
	for o, n := NewObjects(io.NewSectionReader(in, 0, 1<<62)), 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		obj, err := o.Next()
		if err == io.EOF {
			break
		}
		var no *NotObject
		if err == nil {
			var t uint64
			if t, err = time(obj.Text); err == nil {
				places = append(places, place{t, obj.Offset, len(obj.Text), obj.Line})
				continue
			}
			if errors.Is(err, ErrNoEvent) {
				continue
			}
			no = &NotObject{obj.Line, err.Error()}
		} else if !errors.As(err, &no) {
			return err
		}
		if first == nil {
			first = no
		}
		bad++
	}
	if first != nil {
		if len(places) == 0 {
			return first
		}
		im.LeftOut(fmt.Sprintf("lines that are not understood, the first being %v", first), bad)
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.time, b.time) })
	var buf []byte
	for i, p := range places {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		buf = slices.Grow(buf[:0], p.length)[:p.length]
		if _, err := in.ReadAt(buf, p.offset); err != nil {
			return err
		}
		if err := call(buf); err != nil {
			return fmt.Errorf("line %d: %w", p.line, err)
		}
	}
	return nil
}
