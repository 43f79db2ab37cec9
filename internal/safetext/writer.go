// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"bytes"
	"io"
	"strconv"
	"unicode/utf8"
)

// Writer escapes what passes through it to another writer. Characters may be cut by the ends of writes. Flush writes
// what waits for its rest. The zero values of the options are for text and JSON.
type Writer struct {
	W io.Writer
	// CSV says that the text is comma-separated: ends of lines inside quotes, and tabs, are escaped, too.
	CSV bool
	// Formulas puts ' before a CSV cell that a spreadsheet takes for a formula.
	Formulas bool
	// Colours lets marks of colour (ESC [ digits m) pass. nil is no.
	Colours func() bool

	quoted bool   // within a CSV cell in quotes
	inside bool   // a CSV cell has begun
	held   []byte // the beginning of a character or of a mark; with Formulas, of a cell
	out    []byte
}

// maxNumber is longer than each number in a CSV cell.
const maxNumber = 48

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	in := p
	if len(w.held) > 0 {
		in = append(w.held, p...)
	}
	w.out = w.out[:0]
	rest := w.append(in, false)
	w.held = append([]byte(nil), rest...)
	if _, err := w.W.Write(w.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what was kept back. It is called at the end, and wherever all is to be seen.
func (w *Writer) Flush() error {
	if len(w.held) == 0 {
		return nil
	}
	w.out = w.out[:0]
	w.append(w.held, true)
	w.held = nil
	_, err := w.W.Write(w.out)
	return err
}

// append puts what is decided of the input into out, and returns the rest.
func (w *Writer) append(in []byte, last bool) (rest []byte) {
	for len(in) > 0 {
		if w.Formulas && !w.inside {
			prefix, decided := formula(in, last)
			if !decided {
				return in
			}
			if prefix {
				in = w.prefix(in)
			}
			w.inside = true
		}
		if n := w.plain(in); n > 0 {
			w.out = append(w.out, in[:n]...)
			in = in[n:]
			continue
		}
		n, whole := w.special(in, last)
		if !whole {
			return in
		}
		in = in[n:]
	}
	return nil
}

// plain returns the length of a beginning without anything that has a meaning.
func (w *Writer) plain(in []byte) int {
	for i, c := range in {
		if c < ' ' || c >= 0x7f || w.CSV && (c == '"' || c == ',') {
			return i
		}
	}
	return len(in)
}

// special takes one character, or one mark of colour. It returns false if more input is needed.
func (w *Writer) special(in []byte, last bool) (n int, whole bool) {
	switch c := in[0]; {
	case w.CSV && c == '"':
		w.quoted = !w.quoted // a doubled quote turns it twice
		w.out = append(w.out, c)
		return 1, true
	case w.CSV && (c == ',' || c == '\n') && !w.quoted:
		w.inside = false
		w.out = append(w.out, c)
		return 1, true
	case !w.CSV && (c == '\n' || c == '\t'):
		w.out = append(w.out, c)
		return 1, true
	case c == 0x1b && w.Colours != nil && w.Colours():
		if n, colour := colourMark(in); colour || n == 0 && !last {
			w.out = append(w.out, in[:n]...)
			return n, colour
		}
	}
	return w.character(in, last)
}

// character takes one character, and escapes it if it is unsafe.
func (w *Writer) character(in []byte, last bool) (n int, whole bool) {
	if !utf8.FullRune(in) && !last {
		return 0, false
	}
	r, n := utf8.DecodeRune(in)
	if !Unsafe(r) || r == utf8.RuneError && n > 1 {
		w.out = append(w.out, in[:n]...)
	} else {
		w.out = appendEscape(w.out, r, in[0])
	}
	return n, true
}

// colourMark reports whether the input begins with a mark of colour, and its length; a length of 0 means that more
// input may make it one.
func colourMark(in []byte) (n int, colour bool) {
	for i, c := range in {
		switch {
		case i == 0:
		case i == 1 && c != '[':
			return 1, false
		case i > 1 && c == 'm':
			return i + 1, true
		case i > 1 && (c < '0' || c > '9') && c != ';', i > 16:
			return 1, false
		}
	}
	return 0, false
}

// formula reports whether a cell that begins here is one that a spreadsheet takes for a formula. Numbers are none.
func formula(in []byte, last bool) (is, decided bool) {
	cell := in
	if cell[0] == '"' {
		cell = cell[1:]
	}
	if len(cell) == 0 {
		return false, last
	}
	switch cell[0] {
	case '=', '@', '\t', '\r':
		return true, true
	case '+', '-':
	default:
		return false, true
	}
	end := bytes.IndexAny(cell, ",\"\n")
	if end < 0 {
		if len(cell) <= maxNumber && !last {
			return false, false
		}
		end = len(cell)
	}
	if end > maxNumber {
		return true, true
	}
	_, err := strconv.ParseFloat(string(cell[:end]), 64)
	return err != nil, true
}

// prefix puts the mark of text into a cell.
func (w *Writer) prefix(in []byte) []byte {
	if in[0] == '"' {
		w.quoted = true
		w.out = append(w.out, '"', '\'')
		return in[1:]
	}
	w.out = append(w.out, '\'')
	return in
}
