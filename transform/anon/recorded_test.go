// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// programs are those whose tapes are anonymised: they make every kind of thing that a tape
// can hold.
var programs = []string{"cp-a", "failures", "git-basics", "mapped", "passfds", "python-rw", "sqlite-wal", "uring"}

// inShort are those that are recorded with -short, too.
var inShort = []string{"cp-a", "sqlite-wal"}

// recorded calls f with a tape of each of some programs, in a directory with a telling name.
func recorded(t *testing.T, programs []string, f func(t *testing.T, iotape string, tp *trace.Tape)) {
	iotape := testenv.Iotape(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		if !slices.Contains(programs, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			if !slices.Contains(inShort, p.Name) {
				testenv.Short(t, "records a program, and replays it three times")
			}
			testenv.NeedProgram(t, p.Needs...)
			work := filepath.Join(t.TempDir(), "alices-home")
			if err := os.Mkdir(work, 0o755); err != nil {
				t.Fatal(err)
			}
			run(t, p.Command(install, work, workload.Prep)...)
			backend := "ptrace"
			if p.Kernel {
				testenv.NeedBPF(t)
				backend = "ebpf"
			}
			tape := filepath.Join(t.TempDir(), "x.tape")
			run(t, append([]string{iotape, "record", "-o", tape, "--no-index", "--backend", backend, "--"},
				p.Command(install, work, workload.Run)...)...)
			f(t, iotape, open(t, tape))
		})
	}
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

func open(t *testing.T, path string) *trace.Tape {
	t.Helper()
	tp, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tp.Close() })
	return tp
}

// made returns the tape that Anonymise or Reveal makes of another.
func made(t *testing.T, run func(context.Context, *trace.TapeWriter, *trace.Tape, *Options) (*Result, error),
	tp *trace.Tape, o *Options) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "made.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	res, err := run(t.Context(), tw, tp, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(res.Manifest); err != nil {
		t.Fatal(err)
	}
	to := open(t, dir)
	rep, err := to.Check(t.Context(), nil)
	if err == nil {
		err = seal.CheckTrees(t.Context(), to, rep)
	}
	if err != nil || !rep.OK() {
		t.Fatalf("check: %+v %v", rep, err)
	}
	return to
}

// TestRecorded anonymises tapes of real programs in all fields and in every way, looks for
// what must not be in them, replays them, compares statistics, and reveals them again.
func TestRecorded(t *testing.T) {
	testenv.Short(t, "it anonymises and replays many tapes")
	recorded(t, programs, func(t *testing.T, iotape string, tp *trace.Tape) {
		secrets := secretsOf(t, tp)
		for _, o := range []Options{{Content: trace.ContentEncrypted},
			{Content: trace.ContentSubstituted, KeepExtensions: true}, {Content: trace.ContentRemoved}} {
			t.Run(string(o.Content), func(t *testing.T) {
				if o.Content != trace.ContentSubstituted && filepath.Base(filepath.Dir(t.Name())) == "sqlite-wal" {
					testenv.Short(t, "replays another large tape")
				}
				o.Fields, o.Keys = AllFields, NewKeys()
				out := made(t, Anonymise, tp, &o)
				secrets.search(t, out)
				sameStatistics(t, tp, out, o.Content)
				cmd := exec.Command(iotape, "replay", out.Dir(), "--into",
					filepath.Join(t.TempDir(), "again"), "--verify")
				text, err := cmd.CombinedOutput()
				if o.Content == trace.ContentRemoved && strings.HasSuffix(t.Name(), "cp-a/removed") {
					err = nil // SEEK_HOLE finds others where there are only zeros, as in a recording without content
				}
				if err != nil {
					t.Errorf("replay: %v\n%s", err, text)
				}
				back := made(t, Reveal, out, &Options{Fields: AllFields, Keys: o.Keys})
				if o.Content == trace.ContentRemoved {
					return
				}
				same(t, tp, back, nil)
			})
		}
	})
}

// TestParts reveals with a part of the keys, in both orders.
func TestParts(t *testing.T) {
	programs := inShort
	if testing.Short() {
		programs = programs[:1]
	}
	recorded(t, programs, func(t *testing.T, _ string, tp *trace.Tape) {
		keys := NewKeys()
		out := made(t, Anonymise, tp, &Options{Fields: AllFields, Keys: keys, Content: trace.ContentEncrypted})
		some := Keys{Path: keys[Path], Content: keys[Content], Time: keys[Time]}
		part := made(t, Reveal, out, &Options{Fields: AllFields, Keys: some})
		same(t, tp, part, func(ev *event.Event) {
			ev.PID, ev.TID, ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID, ev.Comm, ev.Child = 0, 0, 0, 0, 0, 0, 0, "", 0
		})
		rest := maps.Clone(keys)
		for f := range some {
			delete(rest, f)
		}
		same(t, tp, made(t, Reveal, part, &Options{Fields: AllFields, Keys: rest}), nil)
		// And in two steps there, with two key files.
		first := made(t, Anonymise, tp, &Options{Fields: 1<<Path | 1<<UID, Keys: keys})
		other := NewKeys()
		second := made(t, Anonymise, first,
			&Options{Fields: AllFields &^ (1<<Path | 1<<UID), Keys: other, Content: trace.ContentSubstituted})
		other[Path], other[UID] = keys[Path], keys[UID]
		same(t, tp, made(t, Reveal, second, &Options{Fields: AllFields, Keys: other}), nil)
	})
}

// secrets are what must not be found: every run of 8 bytes of content and names, and
// whole names that are shorter.
type secrets struct {
	runs       []uint64        // in order
	maybe      [1 << 21]uint64 // a bit for each run's hash
	names      map[string]bool
	times      map[int64]bool
	hashes     map[uint64]bool // of files: those of zeros are what they were when content is substituted
	extensions map[string]bool // long ones, which may stay
}

// public is what stays, for docs/anonymise.md says so.
var public = []string{"/dev/null", "/dev/tty", "/dev/urandom", "/dev/shm/", "/dev/pts/", "/proc/self/task/fd/fdinfo/",
	"/tmp/tmp/", "anon_inode:[eventfd]", "anon_inode:[eventpoll]", "anon_inode:[io_uring]", "anon_inode:[timerfd]", "thread-self", "urandom", "system.posix_acl_access", "system.posix_acl_default",
	"security.capability", "security.selinux", "security.ima", "security.evm", "trusted.", "memfd:", " (deleted)", "GNU/Linux"}

func secretsOf(t *testing.T, tp *trace.Tape) *secrets {
	s := &secrets{names: map[string]bool{}, times: map[int64]bool{}, hashes: map[uint64]bool{},
		extensions: map[string]bool{}}
	chunks := map[uint64]bool{}
	h := tp.Host(0)
	for name := range tp.Manifest().Files {
		if !seal.IsTree(name) {
			continue
		}
		m := readTree(t, tp, name)
		for i := range m.Entries {
			e := &m.Entries[i]
			s.add([]byte(e.Path), []byte(e.Target), e.Hash[:])
			s.times[e.MTime] = e.MTime > firstWall*second
			for w := range windows(e.Hash[:]) {
				s.hashes[w] = true
			}
			for _, c := range e.Chunks {
				data, err := tp.Chunk(c.ID)
				if err != nil {
					t.Fatal(err)
				}
				s.add(data)
			}
		}
	}
	for ev, err := range tp.Events() {
		if err != nil {
			t.Fatal(err)
		}
		s.name(ev.Comm)
		for _, p := range ev.Paths {
			s.add([]byte(p.Raw), []byte(p.Abs))
			s.name(strings.Split(p.Abs, "/")...)
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			switch how, _ := meaningOf(ev, b); {
			case how == asContent && b.Kept() > 0:
				s.add(b.Inline)
				for _, r := range b.Refs {
					if r.Chunk == 0 || chunks[r.Chunk] {
						continue
					}
					chunks[r.Chunk] = true
					data, err := tp.Chunk(r.Chunk)
					if err != nil {
						t.Fatal(err)
					}
					s.add(data)
				}
			case how != asStructure && how != asIs: // small numbers, pointers, and names that are paths elsewhere
				s.add(values(ev, b)...)
			}
		}
	}
	s.add([]byte(h.Host), []byte(h.BootID), []byte(h.Dir), []byte(strings.Join(h.Command, "\x00")))
	s.times[h.WallNS], s.times[h.ClockNS] = true, true
	s.name(append([]string{h.BootID}, h.Command...)...)
	// What is not secret, as it is everywhere.
	m, _ := json.MarshalIndent(&trace.Manifest{Anonymised: &trace.Anonymised{KeepExtensions: true,
		Content: trace.ContentSubstituted, Fields: map[string]trace.FieldSeal{"x": {MAC: "x"}}},
		Hosts: []trace.Host{{Head: trace.Head{Kernel: h.Kernel, Arch: h.Arch, Program: h.Program, Backend: h.Backend,
			Content: h.Content, Overflow: h.Overflow}}}}, "", "  ")
	for ev, err := range tp.Events() {
		if err == nil && ev.Op == event.OpUname && len(ev.Bufs) > 0 && len(ev.Bufs[0].Inline) == 390 {
			m = append(append(m, ev.Bufs[0].Inline[:65]...), ev.Bufs[0].Inline[130:325]...)
		}
	}
	known := map[uint64]bool{}
	stays := []string{string(m)}
	for word := range kept {
		stays = append(stays, "/dev/"+word, "/proc/self/"+word+"/")
	}
	for fd := range 256 {
		stays = append(stays, fmt.Sprintf("/dev/fd/%d", fd), fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	// A name of one letter becomes any other, also one that a program has in its text.
	for c := '0'; c <= 'z'; c++ {
		stays = append(stays, fmt.Sprintf(`"user.%c"`, c))
	}
	for _, p := range append(stays, public...) {
		for w := range windows([]byte(p)) {
			known[w] = true
		}
	}
	s.runs = slices.DeleteFunc(s.runs, func(w uint64) bool { return known[w] })
	slices.Sort(s.runs)
	s.runs = slices.Compact(s.runs)
	for _, w := range s.runs {
		h := bit(w)
		s.maybe[h/64] |= 1 << (h % 64)
	}
	return s
}

func bit(w uint64) uint64 { return w * 0x9e3779b97f4a7c15 >> (64 - 27) }

func (s *secrets) has(w uint64) bool {
	h := bit(w)
	if s.maybe[h/64]>>(h%64)&1 == 0 {
		return false
	}
	_, ok := slices.BinarySearch(s.runs, w)
	text := binary.LittleEndian.AppendUint64(nil, w)
	// The namespace of an extended attribute stays, and what follows is too short to tell
	// anything: a program of the recording may have the same letter there.
	ok = ok && !bytes.HasPrefix(text, []byte("user."))
	for e := range s.extensions {
		ok = ok && !bytes.Contains(text, []byte(e))
	}
	return ok
}

// windows yields all runs of 8 bytes that say something: those of few values, and numbers,
// occur anywhere.
func windows(b []byte) func(yield func(w uint64) bool) {
	return func(yield func(w uint64) bool) {
		for i := window(b, 0); i >= 0; i = window(b, i+1) {
			if !yield(binary.LittleEndian.Uint64(b[i:])) {
				return
			}
		}
	}
}

// window returns where the next such run begins, from i on, or -1. Its reads are not for the race
// detector: they would take half of the time of the test.
//
//go:norace
func window(b []byte, i int) int {
	for ; i+8 <= len(b); i++ {
		var seen [4]uint64
		n, digits := 0, true
		for _, c := range b[i : i+8] {
			digits = digits && '0' <= c && c <= '9'
			if bit := uint64(1) << (c & 63); seen[c>>6]&bit == 0 {
				seen[c>>6] |= bit
				n++
			}
		}
		if n >= 6 && !digits {
			return i
		}
	}
	return -1
}

func (s *secrets) add(texts ...[]byte) {
	for _, b := range texts {
		for w := range windows(b) {
			s.runs = append(s.runs, w)
		}
	}
}

func (s *secrets) name(names ...string) {
	for _, n := range names {
		if ext := n[len(n)-extension([]byte(n)):]; len(ext) > 4 {
			s.extensions[ext[:5]] = true // a window may hold a part of it
		}
		// The namespace of an extended attribute stays; a letter or two may become themselves.
		if own := strings.TrimPrefix(n, "user."); len(own)-extension([]byte(own)) >= 5 &&
			!kept[n] && !allDigits([]byte(n)) {
			s.names[n] = true
		}
	}
}

// values returns what a buffer says, without the words around it that each tape has.
func values(ev *event.Event, b *event.Buf) (list [][]byte) {
	if ev.Kind != event.Described || b.Arg != facts.PartFacts {
		return [][]byte{b.Inline}
	}
	for line := range bytes.SplitSeq(b.Inline, []byte{0}) {
		_, value, _ := bytes.Cut(line, []byte{'='})
		list = append(list, value)
	}
	return list
}

// search looks through all that a tape holds, decoded, and through its files as they are.
func (s *secrets) search(t *testing.T, out *trace.Tape) {
	t.Helper()
	found, substituted := 0, out.Manifest().Anonymised.Content == trace.ContentSubstituted
	in := func(where string, texts ...[]byte) {
		for _, b := range texts {
			for w := range windows(b) {
				if s.has(w) && !(substituted && s.hashes[w]) && found < 5 {
					found++
					t.Errorf("%s has %q of the original, in %.300q", where, binary.LittleEndian.AppendUint64(nil, w),
						b[:min(len(b), 100)])
					break
				}
			}
		}
	}
	whole := func(where string, names ...string) {
		for _, n := range names {
			if s.names[n] && found < 5 {
				found++
				t.Errorf("%s is %q of the original", where, n)
			}
		}
	}
	for ev, err := range out.Events() {
		if err != nil {
			t.Fatal(err)
		}
		where := fmt.Sprintf("event %d, %s", ev.Seq, ev.Op)
		whole(where, ev.Comm)
		for _, p := range ev.Paths {
			in(where, []byte(p.Raw), []byte(p.Abs))
			whole(where, strings.Split(p.Raw+"/"+p.Abs, "/")...)
		}
		for _, f := range ev.Files {
			in(where, []byte(f.Path))
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			in(fmt.Sprintf("%s, argument %d", where, b.Arg), values(ev, b)...)
			if b.Kind == event.KindText || b.Kind == event.KindStrings {
				whole(where, strings.Split(string(b.Inline), "\x00")...)
			}
		}
	}
	for id := uint64(1); id <= out.Manifest().Content.Chunks; id++ {
		data, err := out.Chunk(id)
		if err != nil {
			t.Fatal(err)
		}
		in(fmt.Sprintf("chunk %d", id), data)
	}
	for name := range out.Manifest().Files {
		if !seal.IsTree(name) {
			continue
		}
		m := readTree(t, out, name)
		for i := range m.Entries {
			if e := &m.Entries[i]; s.times[e.MTime] {
				t.Errorf("%s: %s has the time of the original", name, e.Path)
			}
		}
	}
	entries, err := os.ReadDir(out.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(out.Dir(), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		in(e.Name(), b)
	}
	for _, h := range out.Manifest().Hosts {
		if s.times[h.WallNS] || s.times[h.ClockNS] {
			t.Errorf("the manifest has times of the original: %+v", h)
		}
		whole("the manifest", append([]string{h.Host, h.BootID}, h.Command...)...)
	}
}

// sameStatistics compares what iotape stat says of two tapes, names and numbers of
// processes and files aside.
func sameStatistics(t *testing.T, a, b *trace.Tape, content trace.AnonymisedContent) {
	t.Helper()
	of := func(tp *trace.Tape) string {
		s := report.Collect(tp.Events(), &report.Options{Manifest: tp.Manifest(), Top: -1})
		s.Recording = nil
		s.Content.StoredBytes = 0
		if content != trace.ContentEncrypted { // a chunk that stands at two places of pages becomes two
			s.Content = nil
		}
		if content == trace.ContentRemoved {
			s.Quality.UnwantedBytes, s.Quality.MissingBytes = 0, 0
		}
		var lines []string
		for i := range s.Files {
			f := &s.Files[i]
			if f.Path, f.Ino = "", 0; f.Given != "" {
				f.Given = "another name"
			}
			lines = append(lines, fmt.Sprint(*f))
		}
		for i := range s.Processes {
			p := &s.Processes[i]
			p.PID, p.PPID, p.Comm, p.LastNS, p.FirstNS = 0, 0, "", p.LastNS-p.FirstNS, 0
			lines = append(lines, fmt.Sprint(*p))
		}
		slices.Sort(lines)
		s.Files, s.Processes = nil, nil
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(text) + "\n" + strings.Join(lines, "\n")
	}
	if x, y := of(a), of(b); x != y {
		t.Errorf("other statistics:\n%s\n\n%s", x, y)
	}
}

// same compares two tapes. hide takes from their events what need not agree.
func same(t *testing.T, a, b *trace.Tape, hide func(ev *event.Event)) {
	t.Helper()
	x, y := a.NewEventReader(), b.NewEventReader()
	var p, q event.Event
	for n := uint64(0); n < a.Manifest().Counts.Events; n++ {
		if err := x.Next(&p); err != nil {
			t.Fatal(err)
		}
		if err := y.Next(&q); err != nil {
			t.Fatal(err)
		}
		if hide == nil {
			sameContent(t, a, b, &p, &q)
		} else {
			hide(&p)
			hide(&q)
			for _, ev := range []*event.Event{&p, &q} {
				ev.Args, ev.Ret = [event.MaxArgs]uint64{}, 0
				for i := range ev.Files {
					ev.Files[i].Ino, ev.Files[i].UID, ev.Files[i].GID = 0, 0, 0
				}
			}
			for i := range p.Files { // pipe:[N] is of another field
				if p.Files[i].Path != "" && p.Files[i].Path[0] != '/' {
					p.Files[i].Path, q.Files[i].Path = "", ""
				}
			}
			for i := range p.Paths {
				if strings.HasPrefix(p.Paths[i].Abs, "/proc/") {
					p.Paths[i], q.Paths[i] = event.Path{}, event.Path{}
				}
			}
		}
		p.Bufs, q.Bufs = nil, nil
		if one, other := fmt.Sprintf("%+v", p), fmt.Sprintf("%+v", q); one != other {
			t.Fatalf("event %d:\n%s\n%s", n, one, other)
		}
	}
	if hide == nil {
		sameTrees(t, a, b)
		if m, n := a.Manifest(), b.Manifest(); !reflect.DeepEqual(m.Hosts, n.Hosts) || n.Anonymised != nil ||
			m.Reason != n.Reason || m.Counts != n.Counts {
			t.Errorf("hosts %+v\n%+v", m.Hosts, n.Hosts)
		}
	}
}

func sameContent(t *testing.T, a, b *trace.Tape, p, q *event.Event) {
	t.Helper()
	for i := range p.Bufs {
		one, missing, err := a.ContentZero(&p.Bufs[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		other, missed, err := b.ContentZero(&q.Bufs[i], nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, other) || missing != missed {
			t.Fatalf("event %d, %s: buffer %+v is %+v:\n%.200q\n%.200q", p.Seq, p.Op, p.Bufs[i], q.Bufs[i], one, other)
		}
	}
}

func sameTrees(t *testing.T, a, b *trace.Tape) {
	t.Helper()
	for name := range a.Manifest().Files {
		if !seal.IsTree(name) {
			continue
		}
		x, y := readTree(t, a, name), readTree(t, b, name)
		if len(x.Entries) != len(y.Entries) {
			t.Fatalf("%s: %d entries, %d", name, len(x.Entries), len(y.Entries))
		}
		for i := range x.Entries {
			e, f := &x.Entries[i], &y.Entries[i]
			for k := range e.Chunks {
				one, err := a.Chunk(e.Chunks[k].ID)
				other, err2 := b.Chunk(f.Chunks[k].ID)
				if err != nil || err2 != nil || !bytes.Equal(one[:e.Chunks[k].Len], other[:f.Chunks[k].Len]) {
					t.Fatalf("%s: chunk %d differs", e.Path, k)
				}
				f.Chunks[k].ID = e.Chunks[k].ID
			}
			if !reflect.DeepEqual(e, f) {
				t.Errorf("%s:\n%+v\n%+v", name, e, f)
			}
		}
	}
}

func readTree(t *testing.T, tp *trace.Tape, name string) *tree.Manifest {
	t.Helper()
	r, err := tp.OpenFile(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m, err := tree.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
