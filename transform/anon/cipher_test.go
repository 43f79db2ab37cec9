// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/trace"
)

// testKeys are the same in each run.
func testKeys() Keys {
	keys := Keys{}
	for f := range numFields {
		keys[f] = Key{1, byte(f)}
	}
	return keys
}

func mappers(fields Fields, a *trace.Anonymised) (there, back *mapper) {
	return newMapper(testKeys(), fields, a, false), newMapper(testKeys(), fields, a, true)
}

// TestFeistelPermutes goes through all strings of small domains: each comes up once, and
// goes back to where it came from.
func TestFeistelPermutes(t *testing.T) {
	c := newFeistel(Key{7})
	for _, d := range []struct {
		a *alphabet
		n int
	}{{digits, 1}, {digits, 2}, {digits, 3}, {digits, 4}, {plain, 1}, {plain, 2},
		{octets, 1}, {octets, 2}, {names, 1}} {
		seen, stayed := map[string]bool{}, 0
		total := int(math.Pow(float64(len(d.a.bytes)), float64(d.n)))
		for i := range total {
			s := make([]byte, d.n)
			for k, v := 0, i; k < d.n; k++ {
				s[k] = d.a.bytes[v%len(d.a.bytes)]
				v /= len(d.a.bytes)
			}
			was := string(s)
			c.crypt(s, d.a, false)
			if !d.a.holds(s) || seen[string(s)] {
				t.Fatalf("alphabet %d: %q becomes %q, which is %v", d.a.id, was, s, seen[string(s)])
			}
			seen[string(s)] = true
			if string(s) == was {
				stayed++
			}
			c.crypt(s, d.a, true)
			if string(s) != was {
				t.Fatalf("alphabet %d: %q comes back as %q", d.a.id, was, s)
			}
		}
		if total > 50 && stayed > 10 { // one is expected of a random permutation
			t.Errorf("alphabet %d: %d of %d strings of %d stay", d.a.id, stayed, total, d.n)
		}
	}
}

func TestNumberPermutes(t *testing.T) {
	p := newPermutation(Key{7})
	for _, r := range [][2]uint64{{1, 9}, {10, 99}, {1, 1023}, {1000, 9999}, {5, 6}} {
		seen := map[uint64]bool{}
		for v := r[0]; v <= r[1]; v++ {
			to := p.crypt(v, r[0], r[1], false)
			if to < r[0] || to > r[1] || seen[to] || p.crypt(to, r[0], r[1], true) != v {
				t.Fatalf("%d of %v becomes %d and comes back as %d", v, r, to, p.crypt(to, r[0], r[1], true))
			}
			seen[to] = true
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v")
		to := p.decimal(v, math.MaxUint64, false, noNumber)
		if p.decimal(to, math.MaxUint64, true, noNumber) != v || len(fmt.Sprint(to)) != len(fmt.Sprint(v)) {
			t.Fatalf("%d becomes %d", v, to)
		}
	})
}

// TestWide checks that any change of a block changes all of it, and that it comes back.
func TestWide(t *testing.T) {
	key := Key{3}
	w := newWide(func(use string) Key { return key.derive(Content, use) })
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 5000).Draw(t, "bytes")
		c := bytes.Clone(b)
		w.crypt(c, false)
		d := bytes.Clone(c)
		w.crypt(d, true)
		if !bytes.Equal(b, d) {
			t.Fatalf("%x comes back as %x", b, d)
		}
		if len(b) < wideBytes {
			return
		}
		at := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
		b[at/8] ^= 1 << (at % 8)
		w.crypt(b, false)
		same := 0
		for i := range b {
			if b[i] == c[i] {
				same++
			}
		}
		if same > len(b)/256+len(b)/16+8 {
			t.Fatalf("%d of %d bytes stay when a bit changes", same, len(b))
		}
	})
}

// TestSubstitution checks that parts are what they are in the whole, that zero stays and
// that a byte at one place differs from the same at another.
func TestSubstitution(t *testing.T) {
	s := newSubstitution(Key{9})
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 1, 9000).Draw(t, "bytes")
		off := rapid.Int64Range(0, math.MaxInt64-1<<20).Draw(t, "offset")
		whole := bytes.Clone(b)
		s.crypt(whole, off, false)
		cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
		parts := bytes.Clone(b)
		s.crypt(parts[:cut], off, false)
		s.crypt(parts[cut:], off+int64(cut), false)
		if !bytes.Equal(whole, parts) {
			t.Fatal("parts differ from the whole")
		}
		for i := range b {
			if (b[i] == 0) != (whole[i] == 0) {
				t.Fatalf("byte %d: %d becomes %d", i, b[i], whole[i])
			}
		}
		s.crypt(whole, off, true)
		if !bytes.Equal(whole, b) {
			t.Fatal("does not come back")
		}
	})
	same := bytes.Repeat([]byte{'a'}, 4096)
	s.crypt(same, 0, false)
	counts := map[byte]int{}
	for _, c := range same {
		if counts[c]++; counts[c] > 60 { // 16 are expected
			t.Fatalf("'a' becomes %d in %d places", c, counts[c])
		}
	}
}

func TestPath(t *testing.T) {
	m, back := mappers(1<<Path|1<<PID|1<<Inode, &trace.Anonymised{})
	for _, c := range []struct {
		in   string
		same bool   // stays
		like string // what it looks like: x is any name
	}{
		{"/", true, ""}, {".", true, ""}, {"..", true, ""}, {"", true, ""},
		{"/tmp", true, ""}, {"/dev/shm", true, ""}, {"/proc/self/fd/7", true, ""}, {"/dev/fd/3", true, ""}, {"/dev/null", true, ""},
		{"anon_inode:[eventfd]", true, ""},
		{"/home/alice", false, "/x/x"}, {"../alice//notes.txt", false, "../x//x"}, {"/tmp/alice/", false, "/tmp/x/"},
		{"/proc/4711/fd/7", false, "/proc/x/fd/7"}, {"/memfd:alice (deleted)", false, "/memfd:x (deleted)"}, {"pipe:[4711]", false, "pipe:[x]"},
		{"/tmp/a (deleted)", false, "/tmp/x (deleted)"},
	} {
		to := m.path(c.in)
		if len(to) != len(c.in) || back.path(to) != c.in || c.same != (to == c.in) {
			t.Errorf("%q becomes %q and comes back as %q", c.in, to, back.path(to))
		}
		for _, part := range strings.Split(c.like, "x") {
			if !strings.Contains(to, part) {
				t.Errorf("%q becomes %q, not %q", c.in, to, c.like)
			}
		}
	}
	if a, b := m.path("/home/alice/x"), m.path("/srv/alice"); a[6:11] != b[5:10] {
		t.Errorf("alice is %q and %q", a, b)
	}
	// The process of a name is that of the event.
	if to := m.path("/proc/4711/maps"); !strings.HasPrefix(to, "/proc/"+fmt.Sprint(m.number(PID, 4711))+"/") {
		t.Errorf("process %d is in %q", m.number(PID, 4711), to)
	}
}

func TestKeepExtensions(t *testing.T) {
	m, back := mappers(1<<Path, &trace.Anonymised{KeepExtensions: true})
	for name, ext := range map[string]string{"notes.txt": ".txt", "a.tar.gz": ".gz", ".bashrc": "", "README": "",
		"x.verylongext": "", "a.": "", "b.c-d": ""} {
		to := m.path(name)
		if !strings.HasSuffix(to, ext) || to == name || back.path(to) != name || extension([]byte(to)) != len(ext) {
			t.Errorf("%q becomes %q and comes back as %q", name, to, back.path(to))
		}
	}
}

// TestNamesComeBack checks names of all kinds of bytes, with the rules that names have.
func TestNamesComeBack(t *testing.T) {
	for _, keep := range []bool{false, true} {
		m, back := mappers(AllFields, &trace.Anonymised{KeepExtensions: keep})
		rapid.Check(t, func(t *rapid.T) {
			gen := rapid.OneOf(rapid.StringMatching(`[a-z]{1,3}(\.[a-z]{1,3})?`), rapid.StringMatching(`[0-9]{1,5}`),
				rapid.StringN(1, 20, 255),
				rapid.SampledFrom([]string{"fd", "proc", "memfd:x", "a (deleted)", "pipe:[7]", "task", "\x00a",
					"\xff/"}), rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 30), func(b []byte) string { return string(b) }))
			path := strings.Join(rapid.SliceOfN(gen, 1, 6).Draw(t, "names"), "/")
			if rapid.Bool().Draw(t, "rooted") {
				path = "/" + path
			}
			to := m.path(path)
			if again := back.path(to); again != path || len(to) != len(path) ||
				strings.Count(to, "/") != strings.Count(path, "/") {
				t.Fatalf("%q becomes %q and comes back as %q", path, to, again)
			}
			text := rapid.String().Draw(t, "text")
			if got := back.string(Arg, m.string(Arg, text)); got != text {
				t.Fatalf("%q comes back as %q", text, got)
			}
			if got := back.json(Host, m.json(Host, text)); got != text {
				t.Fatalf("%q comes back from JSON as %q", text, got)
			}
		})
	}
}

func TestNumbersThatStay(t *testing.T) {
	m, back := mappers(AllFields, &trace.Anonymised{})
	for _, c := range []struct {
		f Field
		v uint64
	}{{UID, 0}, {GID, 0}, {UID, 65534}, {UID, math.MaxUint32}, {PID, 0}, {PID, 1}, {Inode, 0}, {Port, 0}} {
		if to := m.number(c.f, c.v); to != c.v {
			t.Errorf("%s %d becomes %d", c.f, c.v, to)
		}
	}
	for _, v := range []int32{-1, 0, 1, -4711, math.MinInt32, math.MaxInt32} {
		if got := back.signed(PID, m.signed(PID, v)); got != v {
			t.Errorf("process %d comes back as %d", v, got)
		}
	}
	for p := range uint64(1 << 16) {
		to := m.number(Port, p)
		if back.number(Port, to) != p || to > 65535 || (p < 1024) != (to < 1024) {
			t.Fatalf("port %d becomes %d", p, to)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.Int64(), rapid.Int64Range(firstWall-5, firstWall+5),
			rapid.Int64Range(endWall-5, endWall+5)).Draw(t, "seconds")
		if back.wall(m.wall(s)) != s {
			t.Fatalf("%d becomes %d and comes back as %d", s, m.wall(s), back.wall(m.wall(s)))
		}
		ns := rapid.Int64().Draw(t, "ns")
		if back.wallNS(m.wallNS(ns)) != ns || back.boot(m.boot(ns)) != ns ||
			back.bootSeconds(m.bootSeconds(s, 1), 1) != s {
			t.Fatalf("%d ns becomes %d and comes back as %d", ns, m.wallNS(ns), back.wallNS(m.wallNS(ns)))
		}
		var v4 [4]byte
		binary.BigEndian.PutUint32(v4[:], rapid.Uint32().Draw(t, "address"))
		was := v4
		if m.address(v4[:]); reserved(v4[:]) != reserved(was[:]) || reserved(was[:]) && was != v4 {
			t.Fatalf("%v becomes %v", was, v4)
		}
		if back.address(v4[:]); v4 != was {
			t.Fatalf("%v comes back as %v", was, v4)
		}
	})
}

// TestFieldsDiffer checks that the same text is something else in each field, and that
// another key makes something else of it.
func TestFieldsDiffer(t *testing.T) {
	m, _ := mappers(AllFields, &trace.Anonymised{})
	seen := map[string]bool{"alice-the-great": true}
	for _, to := range []string{m.path("alice-the-great"), m.string(Comm, "alice-the-great"),
		m.string(Arg, "alice-the-great"), m.string(Host, "alice-the-great"), m.string(Xattr, "alice-the-great")} {
		if seen[to] {
			t.Errorf("%q comes twice", to)
		}
		seen[to] = true
	}
	other := newMapper(NewKeys(), AllFields, &trace.Anonymised{}, false)
	if m.path("alice-the-great") == other.path("alice-the-great") {
		t.Error("two keys map a name to the same")
	}
	if m.number(UID, 1000) == m.number(GID, 1000) && m.number(UID, 1001) == m.number(GID, 1001) {
		t.Error("users and groups have one mapping")
	}
}

// TestFormat pins the mappings, which keys that exist have to keep opening.
func TestFormat(t *testing.T) {
	m, _ := mappers(AllFields, &trace.Anonymised{})
	page := bytes.Repeat([]byte("iotape "), 10)
	m.opaque(Content, page)
	short := []byte("iotape")
	m.opaque(Content, short)
	for _, c := range []struct{ what, got, want string }{
		{"path", m.path("/home/alice/notes.txt"), "/0Zro/NYnGF/CHP9Nz7Rt"},
		{"text", m.string(Arg, "grep -r alice"), "m0m j{8;f\"De9"},
		{"number", fmt.Sprint(m.number(UID, 1000)), "4404"},
		{"page", fmt.Sprintf("%x", page[:8]), "ca9160bb06720672"},
		{"short", fmt.Sprintf("%x", short), "3c17c32a90b5"},
		{"wall", fmt.Sprint(uint64(m.wall(1_700_000_000))), "1734386014"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, was %q", c.what, c.got, c.want)
		}
	}
}
