// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"hash/maphash"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// signer makes signatures of a tape's events.
type signer struct {
	tape    *trace.Tape
	content bool
	seed    maphash.Seed
	h       maphash.Hash
	dirs    []string          // by host: the initial working directory
	names   map[string]string // names with a random part → names as compared
	known   map[string]string // cache of all other names
	buf     []byte
}

func newSigner(t *trace.Tape, content bool, seed maphash.Seed) *signer {
	s := &signer{tape: t, content: content, seed: seed, names: map[string]string{}, known: map[string]string{}}
	s.h.SetSeed(seed)
	for i := range t.Manifest().Hosts {
		s.dirs = append(s.dirs, t.Host(uint32(i)).Dir)
	}
	return s
}

// event returns the signature of a call. stream reports that it moved bytes through a pipe or
// a socket, so that the next call may belong to it.
func (s *signer) event(ev *event.Event) (sig uint64, stream bool) {
	s.h.Reset()
	spec := ev.Spec()
	s.number(uint64(ev.Op), uint64(ev.Errno), uint64(ev.Flags&event.Interrupted))
	if ev.Op == event.OpUnknown {
		s.number(uint64(ev.NR))
	}
	moves := spec.Class == event.Data || spec.Class == event.Socket
	if f := ev.FileArg(0); moves && f != nil && ev.OK() && spec.Result == event.KindSize && isStream(f) {
		s.file(ev.Host, f)
		return s.h.Sum64(), true
	}
	for i := range spec.Args {
		s.argument(ev, i)
	}
	if ev.OK() {
		switch spec.Returns(&ev.Args).Kind {
		case event.KindFD:
			if f := ev.FileArg(event.ResultArg); f != nil {
				s.file(ev.Host, f)
			}
		case event.KindHex, event.KindPID, event.KindNone, event.KindID:
		default:
			s.number(uint64(ev.Ret))
		}
	}
	return s.h.Sum64(), false
}

// isStream reports whether a file is a pipe or a socket.
func isStream(f *event.File) bool {
	return f.Is(event.TypeFIFO) || f.Is(event.TypeSocket)
}

func (s *signer) argument(ev *event.Event, i int) {
	a := ev.Spec().Argument(i, &ev.Args)
	v := ev.Args[i]
	switch a.Kind {
	case event.KindFD, event.KindDirFD:
		if f := ev.FileArg(i); f != nil {
			s.file(ev.Host, f)
		} else {
			s.number(0)
		}
	case event.KindInt, event.KindSize, event.KindOff, event.KindMode, event.KindFlags, event.KindEnum,
		event.KindSignal, event.KindID:
		s.number(v)
	case event.KindPath:
		if p := ev.PathArg(i); p != nil {
			s.text(s.name(ev.Host, pathOf(p)))
		}
	case event.KindText, event.KindStrings:
		if b := ev.BufArg(i); b != nil {
			s.words(ev.Host, b)
		}
	case event.KindBuf, event.KindVec:
		if b := ev.BufArg(i); b != nil {
			s.number(uint64(b.Len))
			s.bytes(b)
		}
	}
}

func pathOf(p *event.Path) string {
	if p.Abs != "" {
		return p.Abs
	}
	return p.Raw
}

func (s *signer) number(list ...uint64) {
	for _, v := range list {
		var b [8]byte
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		s.h.Write(b[:])
	}
}

func (s *signer) text(t string) {
	s.h.WriteString(t)
	s.h.WriteByte(0)
}

// words adds strings such as arguments of a program.
func (s *signer) words(host uint32, b *event.Buf) {
	for _, w := range s.strings(b) {
		s.text(s.name(host, w))
	}
}

// maxWords limits how much of a vector of strings is compared, in bytes.
const maxWords = 1 << 20

// strings reads a vector of strings.
func (s *signer) strings(b *event.Buf) []string {
	if b.Len > maxWords {
		return nil
	}
	data, _, err := s.tape.ContentZero(b, s.buf[:0])
	if err != nil {
		return nil
	}
	s.buf = data
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")
}

// bytes adds content, if it is compared.
func (s *signer) bytes(b *event.Buf) {
	if !s.content {
		return
	}
	data, missing, err := s.tape.ContentZero(trace.Present(b), s.buf[:0])
	if err != nil {
		return
	}
	s.buf = data
	s.number(uint64(missing + max(b.Len-int64(len(data)), 0)))
	s.h.Write(data)
	for i := range b.Hashes {
		s.h.Write(b.Hashes[i][:])
	}
}

func (s *signer) file(host uint32, f *event.File) {
	if f.Path == "" {
		s.number(uint64(f.Mode >> 12))
		return
	}
	s.text(s.name(host, f.Path))
}

// process finds the numbers of processes in names below /proc.
var process = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/proc/[0-9]+(/task/[0-9]+)?`)
})

// maxNames limits the cache of names.
const maxNames = 1 << 18

// name returns a name as compared.
func (s *signer) name(host uint32, p string) string {
	if n, ok := s.known[p]; ok {
		return n
	}
	n := p
	if strings.HasPrefix(n, "/") {
		if len(s.names) > 0 {
			n = s.renamed(n)
		}
		if strings.HasPrefix(n, "/proc/") {
			n = process().ReplaceAllString(n, "/proc/PID")
		}
		if int(host) < len(s.dirs) {
			if dir := s.dirs[host]; len(dir) > 1 && strings.HasPrefix(n, dir) &&
				(len(n) == len(dir) || n[len(dir)] == '/') {
				n = "." + n[len(dir):]
			}
		}
	} else if kind, number, ok := strings.Cut(n, ":["); ok && strings.HasSuffix(number, "]") &&
		!strings.Contains(kind, " ") {
		n = kind // pipe:[4711]
	}
	if len(s.known) >= maxNames {
		clear(s.known)
	}
	s.known[p] = n
	return n
}

// renamed replaces the random parts of a name and of its directories.
func (s *signer) renamed(p string) string {
	if n, ok := s.names[p]; ok {
		return n
	}
	if dir, base := path.Split(p); len(dir) > 1 {
		return path.Join(s.renamed(strings.TrimSuffix(dir, "/")), base)
	}
	return p
}

// note finds the names of exclusively created and temporary files: these can have a random
// part.
func (s *signer) note(ev *event.Event) {
	if !ev.OK() || len(ev.Paths) == 0 {
		return
	}
	const exclusive, temporary = event.OpenCreat | event.OpenExcl, event.OpenTmpfile
	flags := ev.OpenFlags()
	if ev.Effect() == event.EffectMkdir {
		flags = exclusive
	}
	if flags&temporary == temporary {
		return // the file has no name
	}
	p := pathOf(&ev.Paths[0])
	if flags&exclusive != exclusive || p == "" || len(s.names) >= maxNames {
		return
	}
	dir, base := path.Split(p)
	if n := withoutRandom(base); n != base {
		s.names[p] = path.Join(s.renamed(strings.TrimSuffix(dir, "/")), n)
		delete(s.known, p)
	}
}

// randomBytes is the least length of the random part of a name (mkstemp(3)).
const randomBytes = 6

// withoutRandom replaces the random part of a temporary file's name, if it has one, before a
// suffix or at the end. The random part has at least six letters and digits, with capital and
// small letters, or with digits. Without a separator before it, it has exactly six.
func withoutRandom(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= randomBytes && len(name)-i <= 6 {
		if n := cutRandom(name[:i]); n != name[:i] {
			return n + name[i:]
		}
	}
	return cutRandom(name)
}

func cutRandom(stem string) string {
	i := len(stem)
	for i > 0 && isAlnum(stem[i-1]) {
		i--
	}
	if i == 0 {
		i = max(len(stem)-randomBytes, 0)
	}
	if len(stem)-i < randomBytes {
		return stem
	}
	var lower, upper, digit bool
	for _, c := range []byte(stem[i:]) {
		lower = lower || 'a' <= c && c <= 'z'
		upper = upper || 'A' <= c && c <= 'Z'
		digit = digit || '0' <= c && c <= '9'
	}
	if upper && lower || digit && (upper || lower) {
		return stem[:i] + "XXXXXX"
	}
	return stem
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// quoted writes words as a command line.
func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\") {
			w = strconv.Quote(w)
		}
		b.WriteString(w)
	}
	return b.String()
}
