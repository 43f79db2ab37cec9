// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format/straceread"
	"github.com/iotape/iotape/pipe/wholefile"
)

// maxLine is the longest line that is read, in bytes.
const maxLine = 16 << 20

// scanner reads the words and values of a line.
type scanner struct {
	file string
	line int
	s    string
	i    int
}

// eachLine calls f for each line of a file that is not empty and no comment. The first
// line has to begin with the magic word and a version.
func eachLine(ctx context.Context, dir, name, magic string, f func(p *scanner) error) error {
	in, err := wholefile.Open(dir, name)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 64<<10)
	begun := false
	for n := 1; ; n++ {
		p := &scanner{file: name, line: n}
		text, err := readLine(r)
		switch {
		case errors.Is(err, errLong):
			return p.fail(0, fmt.Sprintf("the line is longer than %d MiB", maxLine>>20), "")
		case err == io.EOF && !begun:
			return p.head(magic)
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		if n&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p.s = text
		if p.space(); p.end() {
			continue
		}
		if !begun {
			err, begun = p.head(magic), true
		} else {
			err = f(p)
		}
		if err != nil {
			return err
		}
	}
}

var errLong = errors.New("the line is too long")

// readLine returns the next line without its end; io.EOF if there is none.
func readLine(r *bufio.Reader) (string, error) {
	var long []byte
	for {
		b, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long)+len(b) > maxLine {
				return "", errLong
			}
			long = append(long, b...)
			continue
		}
		if err != nil && (err != io.EOF || len(long)+len(b) == 0) {
			return "", err
		}
		text := string(b)
		if long != nil {
			text = string(append(long, b...))
		}
		return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), nil
	}
}

func (p *scanner) head(magic string) error {
	if p.word() != magic {
		return p.fail(0, "this is no such file of a script", "its first line is: "+magic+" "+strconv.Itoa(version))
	}
	p.space()
	at := p.i
	if v, err := strconv.Atoi(p.until(" ")); err != nil || v < 1 {
		return p.fail(at, "a version was expected", "it is "+strconv.Itoa(version))
	} else if v > version {
		return p.fail(at, fmt.Sprintf("version %d is newer than this program's, which is %d", v, version), "")
	}
	return nil
}

// fail returns an Error about what begins at an offset of the line.
func (p *scanner) fail(at int, what, hint string) error {
	return &Error{File: p.file, Line: p.line, Column: at + 1, What: what, Hint: hint}
}

func (p *scanner) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

// end reports whether nothing follows but a comment.
func (p *scanner) end() bool { return p.i >= len(p.s) || p.s[p.i] == '#' }

func (p *scanner) has(prefix string) bool {
	if !strings.HasPrefix(p.s[p.i:], prefix) {
		return false
	}
	p.i += len(prefix)
	return true
}

// until returns what stands before one of some characters, or before the line's end.
func (p *scanner) until(chars string) string {
	n := strings.IndexAny(p.s[p.i:], chars)
	if n < 0 {
		n = len(p.s) - p.i
	}
	word := p.s[p.i:][:n]
	p.i += n
	return word
}

// word returns a name of letters, digits, _ and -.
func (p *scanner) word() string {
	start := p.i
	for p.i < len(p.s) {
		if c := p.s[p.i]; c != '_' && c != '-' && (c|32 < 'a' || c|32 > 'z') && (c < '0' || c > '9') {
			break
		}
		p.i++
	}
	return p.s[start:p.i]
}

// told is a value, and where it stands.
type told struct {
	layout.Told
	at int
}

// value reads a value.
func (p *scanner) value() (told, error) {
	p.space()
	at := p.i
	if p.end() {
		return told{}, p.fail(at, "a value was expected", "")
	}
	v, n, err := straceread.ParseValue(p.s[p.i:])
	p.i += n
	if err != nil {
		return told{}, p.fail(p.i, err.Error(), "")
	}
	return told{v, at}, nil
}

// text reads a string in quotes.
func (p *scanner) text(what string) (string, error) {
	v, err := p.value()
	if err != nil {
		return "", err
	}
	if v.Kind != layout.ToldText {
		return "", p.fail(v.at, what+" was expected", "it stands in quotes")
	}
	return string(v.Data), nil
}

// number reads a number up to a limit.
func (p *scanner) number(what string, limit uint64) (uint64, error) {
	v, err := p.value()
	if err != nil {
		return 0, err
	}
	return p.numberOf(&v, what, limit)
}

func (p *scanner) numberOf(v *told, what string, limit uint64) (uint64, error) {
	n, ok := event.ParseNumber(v.Text)
	if v.Kind != layout.ToldWord || !ok {
		return 0, p.fail(v.at, what+" was expected", "it is a number")
	}
	if n > limit {
		return 0, p.fail(v.at, fmt.Sprintf("%s of %s is too large", what, v.Text),
			fmt.Sprintf("the largest is %d", limit))
	}
	return n, nil
}

// attributes reads key=value and words, to the line's end.
func (p *scanner) attributes(keys, words []string, set func(key string, at int, v *told) error) error {
	for {
		if p.space(); p.end() {
			return nil
		}
		at := p.i
		key := p.word()
		if key == "" {
			return p.fail(at, fmt.Sprintf("%q: an attribute was expected", first(p.s[at:])), "it is KEY=VALUE")
		}
		if !p.has("=") {
			if !in(words, key) {
				hint := didYouMean(key, append(words, keys...))
				if in(keys, key) {
					hint = "it is " + key + "=VALUE"
				}
				return p.fail(at, key+": no such word", hint)
			}
			if err := set(key, at, nil); err != nil {
				return err
			}
			continue
		}
		if !in(keys, key) {
			return p.fail(at, key+": no such attribute", didYouMean(key, keys))
		}
		v, err := p.value()
		if err != nil {
			return err
		}
		if err := set(key, at, &v); err != nil {
			return err
		}
	}
}

func in(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// first returns the beginning of a text, for a message.
func first(s string) string { return s[:min(len(s), 16)] }

// seconds reads a time with a point as ns.
func seconds(s string) (ns int64, ok bool) {
	whole, fraction, ok := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	const most = math.MaxInt64 / 1_000_000_000 // seconds
	n, err := strconv.ParseUint(whole, 10, 63)
	if !ok || err != nil || n > most || fraction == "" || len(fraction) > 9 {
		return 0, false
	}
	f, err := strconv.ParseUint((fraction + "000000000")[:9], 10, 32)
	if err != nil {
		return 0, false
	}
	if ns = int64(n)*1e9 + int64(f); ns < 0 { // too large by less than a second
		return 0, false
	}
	if strings.HasPrefix(s, "-") {
		ns = -ns
	}
	return ns, true
}

// device reads major:minor as stat's number.
func device(s string) (uint64, bool) {
	a, b, ok := strings.Cut(s, ":")
	major, err1 := strconv.ParseUint(a, 10, 12)
	minor, err2 := strconv.ParseUint(b, 10, 20)
	return minor&0xff | major<<8 | minor&^0xff<<12, ok && err1 == nil && err2 == nil
}

// owner reads uid:gid.
func owner(s string) (uid, gid uint32, ok bool) {
	a, b, ok := strings.Cut(s, ":")
	u, err1 := strconv.ParseUint(a, 10, 32)
	g, err2 := strconv.ParseUint(b, 10, 32)
	return uint32(u), uint32(g), ok && err1 == nil && err2 == nil
}
