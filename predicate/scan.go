// SPDX-License-Identifier: Apache-2.0

package predicate

import "strconv"

// Scanner reads a text as filters are read, with the same words, numbers, units and
// errors: for small languages beside that of filters.
type Scanner struct{ p parser }

// NewScanner returns a scanner of a text; what is what the text is called in errors.
func NewScanner(what, src string) *Scanner { return &Scanner{parser{what: what, src: src}} }

// AtEnd reports whether nothing is left but spaces and comments.
func (s *Scanner) AtEnd() bool { return s.p.atEnd() }

// Pos returns the byte at which the next word or mark begins.
func (s *Scanner) Pos() int {
	s.p.space()
	return s.p.pos
}

// Peek returns the word that stands next, "" if there is none.
func (s *Scanner) Peek() string { return s.p.peek() }

// Word takes the word that stands next.
func (s *Scanner) Word() string {
	w := s.p.peek()
	s.p.pos += len(w)
	return w
}

// TakeWord takes a word, in whatever case, if it stands next.
func (s *Scanner) TakeWord(word string) bool { return s.p.takeWord(word) }

// Take takes a mark if it stands next.
func (s *Scanner) Take(mark string) bool { return s.p.take(mark) }

// Fail returns an *Error about the bytes from pos to before end.
func (s *Scanner) Fail(pos, end int, hint, format string, args ...any) error {
	return s.p.fail(pos, end, hint, format, args...)
}

// Unexpected returns an *Error that says what should stand next.
func (s *Scanner) Unexpected(wanted string) error { return s.p.unexpected(wanted) }

// Number takes a number with the word behind it, which is its unit: "" if there is none.
// ok is false if no number stands next.
func (s *Scanner) Number() (v float64, unit string, ok bool) {
	s.p.space()
	end := s.p.pos
	for end < len(s.p.src) && (isDigit(s.p.src[end]) || s.p.src[end] == '.' && end > s.p.pos) {
		end++
	}
	v, err := strconv.ParseFloat(s.p.src[s.p.pos:end], 64)
	if err != nil {
		return 0, "", false
	}
	s.p.pos = end
	return v, s.Word(), true
}

// ByteUnit returns how many bytes a unit of filters is.
func ByteUnit(unit string) (int64, bool) {
	n, ok := byteUnits[unit]
	return n, ok
}

// TimeUnit returns how many ns a unit of filters is.
func TimeUnit(unit string) (int64, bool) {
	n, ok := timeUnits[unit]
	return n, ok
}

// Suggest returns a hint with the name that is nearest to a misspelt one, "" if none is
// near.
func Suggest(name string, names []string) string { return suggest(name, names) }
