// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Lines reads a text file line by line and never holds more than a line's limit.
//
//	for lines.Next() {
//		… lines.Text() …
//	}
//	return lines.Err()
type Lines struct {
	ctx  context.Context
	r    *bufio.Reader
	text []byte
	n    int
	long bool
	err  error
}

// NewLines returns the lines of r. Those of more than limit bytes are Long.
func NewLines(ctx context.Context, r io.Reader, limit int) *Lines {
	return &Lines{ctx: ctx, r: bufio.NewReaderSize(r, limit+1)}
}

// Next moves to the next line; false at the end, after an error, and when the context
// has ended.
func (l *Lines) Next() bool {
	if l.err != nil {
		return false
	}
	if l.n&0xfff == 0 {
		if l.err = l.ctx.Err(); l.err != nil {
			return false
		}
	}
	var err error
	l.text, err = l.r.ReadSlice('\n')
	if l.long = errors.Is(err, bufio.ErrBufferFull); l.long {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.r.ReadSlice('\n')
		}
		l.text = nil // its memory was used again
	}
	if err != nil && err != io.EOF {
		l.err = fmt.Errorf("after line %d: %w", l.n, err)
		return false
	}
	if err == io.EOF {
		l.err = io.EOF
		if len(l.text) == 0 && !l.long {
			return false
		}
	}
	l.n++
	return true
}

// Text returns the line without its end (LF or CR LF), valid until Next. It is empty
// for one that is Long.
func (l *Lines) Text() []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(l.text, []byte("\n")), []byte("\r"))
}

// Long reports whether the line is longer than the limit.
func (l *Lines) Long() bool { return l.long }

// Number returns the number of the line, from 1.
func (l *Lines) Number() int { return l.n }

// Err returns why Next stopped; nil at the end.
func (l *Lines) Err() error {
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

// What Import.LeftOut calls lines that a parser passed over.
const (
	LongLines = "lines that are too long"
	BadLines  = "lines that are not understood"
)

// EachLine calls line for each line that is not blank, with its text as Lines has it. What line does not know,
// and lines of more than limit bytes, are left out of the import.
func EachLine(ctx context.Context, in io.Reader, limit int, im *Import, line func(text []byte) (known bool,
	err error)) error {
	lines := NewLines(ctx, in, limit)
	for lines.Next() {
		text := lines.Text()
		switch {
		case lines.Long():
			im.LeftOut(LongLines, 1)
			continue
		case len(bytes.TrimSpace(text)) == 0:
			continue
		}
		known, err := line(text)
		if err != nil {
			return err
		}
		if !known {
			im.LeftOut(BadLines, 1)
		}
	}
	return lines.Err()
}

// FirstLines returns how many of the first look lines of a file's beginning there are, and how many of them fit.
func FirstLines(head []byte, look int, fits func(text []byte) bool) (fit, all int) {
	for text := range bytes.Lines(head) {
		if all++; all > look {
			return fit, look
		}
		if fits(bytes.TrimRight(text, "\r\n")) {
			fit++
		}
	}
	return fit, all
}
