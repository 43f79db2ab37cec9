// SPDX-License-Identifier: Apache-2.0

package similar

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCATSignature compares with what ekzhu/minhash-lsh computes, the library that CAT's
// solver uses.
func TestCATSignature(t *testing.T) {
	for _, c := range []struct {
		content string
		want    CATSignature
	}{
		{"", CATSignature{11469488540098473334, 8059533313112924669, 4649578086127376004, 1239622859141827339, 16276411705865830290, 12866456478880281625, 9456501251894732960, 6046546024909184295, 2636590797923635630, 17673379644647638581}},
		{"abc", CATSignature{17556388136268819174, 17311666425772172737, 17066944715275526300, 16822223004778879863, 16577501294282233426, 16332779583785586989, 16088057873288940552, 15843336162792294115, 15598614452295647678, 15353892741799001241}},
		{"hello, world", CATSignature{4388684777042468070, 1022641307091051513, 651263177164544249, 1420349260601033407, 4350608280462038985, 4025769791340587913, 2122553108139107628, 219336424937627343, 2110804130952409606, 4375599001851000017}},
		{strings.Repeat("The quick brown fox. ", 200), CATSignature{952205747164156184, 1933588655261137917, 513173530994339288, 769642596151920881, 1329125020767806821, 356263078096795397, 463503760141800784, 267536468752919625, 505545852804921856, 587933176935293905}},
	} {
		if got := SignCAT([]byte(c.content)); got != c.want {
			t.Errorf("%.20q: %v, want %v", c.content, got, c.want)
		}
	}
}

// published is an event of one of CAT's published traces.
type published struct {
	ID        int                `json:"id"`
	Signature CATSignature       `json:"signature"`
	Similar   map[string]float64 `json:"similar"`
}

func readPublished(t *testing.T, name string) (events []published) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		var e published
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if sc.Err() != nil || len(events) == 0 {
		t.Fatalf("%d events, %v", len(events), sc.Err())
	}
	return events
}

// TestCATPairs reproduces the pairs that CAT's authors published, with their scores: of
// one trace all, of three those between the events that the samples have.
func TestCATPairs(t *testing.T) {
	for name, wants := range map[string]int{"hdfs-normal": 338, "hdfs-network": 46, "hdfs-storage": 2,
		"tensorflow": 4} {
		t.Run(name, func(t *testing.T) {
			events := readPublished(t, name)
			var sigs []CATSignature
			in := map[int]bool{}
			for _, e := range events {
				sigs = append(sigs, e.Signature)
				in[e.ID] = true
			}
			want, got := map[[2]int]float64{}, map[[2]int]float64{}
			for _, e := range events {
				for other, score := range e.Similar {
					if id, err := strconv.Atoi(other); err == nil && in[id] {
						want[[2]int{e.ID, id}] = score
					}
				}
			}
			for _, p := range CATPairs(sigs) {
				a, b := events[p.A].ID, events[p.B].ID
				got[[2]int{a, b}], got[[2]int{b, a}] = p.Score, p.Score
			}
			if len(want) != wants || len(got) != wants {
				t.Fatalf("%d pairs, published are %d (%d expected)", len(got), len(want), wants)
			}
			for pair, score := range want {
				if s, ok := got[pair]; !ok || math.Abs(s-score) > 1e-9 {
					t.Errorf("pair %v has %v, published is %v", pair, s, score)
				}
			}
		})
	}
}

// TestBetterThanCAT checks on the same signatures what CAT's index misses, and that an
// Index of theirs does not.
func TestBetterThanCAT(t *testing.T) {
	events := readPublished(t, "hdfs-normal")
	x, err := NewIndex(&IndexOptions{Hashes: CATHashes, Threshold: 0.34, Recall: 0.98})
	if err != nil {
		t.Fatal(err)
	}
	var sigs []CATSignature
	var classes []Class
	for _, e := range events {
		sigs = append(sigs, e.Signature)
		c, _, _ := x.Add(slices.Clone(e.Signature[:]))
		classes = append(classes, c)
	}
	theirs, ours := map[[2]int]bool{}, map[[2]Class]bool{}
	for _, p := range CATPairs(sigs) {
		theirs[[2]int{p.A, p.B}] = true
	}
	for c := range x.Classes() {
		x.Near(Class(c), func(other Class) { ours[[2]Class{other, Class(c)}] = true })
	}
	all, foundByThem, foundByUs := 0, 0, 0
	for b := range sigs {
		for a := range b {
			if sigs[a].Dice(&sigs[b]) < 0.5 {
				continue
			}
			all++
			if theirs[[2]int{a, b}] {
				foundByThem++
			}
			p, q := min(classes[a], classes[b]), max(classes[a], classes[b])
			if p == q || ours[[2]Class{p, q}] {
				foundByUs++
			}
		}
	}
	t.Logf("%d pairs of 0.5 and more: CAT's index finds %d, ours %d", all, foundByThem, foundByUs)
	if float64(foundByThem) > 0.7*float64(all) || foundByUs < all {
		t.Errorf("of %d pairs CAT's index finds %d, ours %d", all, foundByThem, foundByUs)
	}
}

// variants returns contents of which some resemble each other: originals with a growing
// part of them written anew, in places.
func variants(r *rand.Rand, originals, each, size int) (contents [][]byte) {
	for range originals {
		base := make([]byte, size)
		for i := range base {
			base[i] = byte(r.IntN(64)) // some shingles in common by chance
		}
		for v := range each {
			c := bytes.Clone(base)
			for range v {
				at, n := r.IntN(size), 1+r.IntN(size/50)
				for i := at; i < min(at+n, size); i++ {
					c[i] = byte(r.IntN(64))
				}
			}
			contents = append(contents, c)
		}
	}
	return contents
}

// TestRecall compares with brute force over all pairs: what the index and the signatures
// find of pairs with a Jaccard index of 0.8 and more, and how many of those found are.
func TestRecall(t *testing.T) {
	const threshold = 0.8
	for _, c := range []struct {
		o     Options
		exact bool    // candidates are compared exactly
		least float64 // recall and precision
	}{
		{Options{}, true, 0.95}, {Options{AllHashes: true}, true, 0.95}, {Options{Shingle: 5, Seed: 3}, true, 0.95},
		{Options{Hashes: 1024}, false, 0.9}, // without content the estimate decides at the threshold
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			contents := variants(rand.New(rand.NewPCG(1, 2)), 20, 12, 2048)
			s, err := NewSigner(&c.o)
			if err != nil {
				t.Fatal(err)
			}
			x, err := NewIndex(&IndexOptions{Threshold: threshold, Hashes: s.Options().Hashes})
			if err != nil {
				t.Fatal(err)
			}
			var sets []Set
			members := map[Class][]int{} // several, where contents differ by less than signatures tell
			candidates, found, right := 0, map[[2]int]bool{}, 0
			for i, content := range contents {
				sets = append(sets, s.Set(nil, content))
				class, _, ok := x.Add(s.Sign(nil, content))
				if !ok {
					t.Fatalf("content %d has no class", i)
				}
				members[class] = append(members[class], i)
			}
			look := func(p, q Class) {
				for _, a := range members[p] {
					for _, b := range members[q] {
						if p == q && a == b {
							continue
						}
						candidates++
						score := Estimate(x.Signature(p), x.Signature(q))
						if c.exact {
							score = Jaccard(sets[a], sets[b])
						}
						if score >= threshold {
							found[[2]int{min(a, b), max(a, b)}] = true
						}
					}
				}
			}
			for class := range Class(x.Classes()) {
				look(class, class)
				x.Near(class, func(other Class) { look(class, other) })
			}
			wanted := 0
			for b := range sets {
				for a := range b {
					if Jaccard(sets[a], sets[b]) >= threshold {
						wanted++
						if found[[2]int{a, b}] {
							right++
						}
					}
				}
			}
			recall, precision := float64(right)/float64(wanted), float64(right)/float64(len(found))
			bands, rows := x.Bands()
			t.Logf("%d × %d: %d pairs of %d, %d candidates, recall %.3f, precision %.3f", bands, rows, wanted,
				len(contents)*(len(contents)-1)/2, candidates, recall, precision)
			if recall < c.least || precision < c.least || wanted < 100 {
				t.Errorf("of %d pairs: recall %.3f, precision %.3f", wanted, recall, precision)
			}
		})
	}
}

// TestEstimate compares estimates with the truth over contents of all sizes.
func TestEstimate(t *testing.T) {
	for _, o := range []Options{{}, {AllHashes: true}, {Hashes: 512, Shingle: 4}} {
		s, err := NewSigner(&o)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(5, 6))
		sum, n := 0.0, 0
		for _, size := range []int{300, 1000, 4096, 20000} {
			contents := variants(r, 3, 10, size)
			for i := range contents[1:] {
				a, b := contents[i], contents[i+1]
				d := Estimate(s.Sign(nil, a), s.Sign(nil, b)) - Jaccard(s.Set(nil, a), s.Set(nil, b))
				sum += d * d
				n++
			}
		}
		limit := 1.5 / (2 * math.Sqrt(float64(s.Options().Hashes)))
		if e := math.Sqrt(sum / float64(n)); e > limit {
			t.Errorf("%+v: the error is %.3f, more than %.3f", o, e, limit)
		}
	}
}

// TestSmall checks contents that have few shingles, or none.
func TestSmall(t *testing.T) {
	s, _ := NewSigner(nil)
	x, _ := NewIndex(nil)
	if _, _, ok := x.Add(s.Sign(nil, nil)); ok {
		t.Error("no content has a class")
	}
	for i, c := range []struct {
		content string
		class   Class
		fresh   bool
	}{{"a", 0, true}, {"b", 1, true}, {"a", 0, false}, {"abcdefgh", 2, true}, {"abcdefghi", 3, true}, {"abcdefgh", 2,
		false}, {strings.Repeat("\x00", 4096), 4, true}, {strings.Repeat("\x00", 4096), 4, false}} {
		class, fresh, ok := x.Add(s.Sign(nil, []byte(c.content)))
		if !ok || class != c.class || fresh != c.fresh {
			t.Errorf("%d: class %d, %v", i, class, fresh)
		}
	}
	if x.Classes() != 5 || x.Count(0) != 2 {
		t.Errorf("%d classes, %d of the first", x.Classes(), x.Count(0))
	}
	// All of few bytes is a set of one shingle: the same as another run of them.
	if e := Estimate(s.Sign(nil, make([]byte, 100)), s.Sign(nil, make([]byte, 4096))); e != 1 {
		t.Errorf("zeros resemble zeros by %v", e)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Shingle: 9}, {Shingle: -1}, {Hashes: -1}, {Hashes: MaxHashes + 1}} {
		if _, err := NewSigner(&o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	for _, o := range []IndexOptions{{Threshold: 2}, {Threshold: -0.5}, {Recall: 1}, {Hashes: -2}, {MaxBucket: -1}} {
		if _, err := NewIndex(&o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	for _, o := range []OriginOptions{{Piece: 100}, {Piece: 16}, {MinMatch: -1}, {MaxPlaces: -1}} {
		if _, err := NewOrigins(&o, nil); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestMaxBucket checks that content that resembles everything is bounded, and counted.
func TestMaxBucket(t *testing.T) {
	x, _ := NewIndex(&IndexOptions{Hashes: 4, MaxBucket: 10, Threshold: 0.5})
	for i := range uint64(100) {
		x.Add(Signature{1, 1, 1, i})
	}
	n := 0
	for c := range x.Classes() {
		x.Near(Class(c), func(Class) { n++ })
	}
	if n > 100*10*4 || x.Skipped() == 0 {
		t.Errorf("%d pairs, %d left out", n, x.Skipped())
	}
}

// store is contents by number.
type store [][]byte

func (s store) get(id uint32) []byte { return s[id] }

func origins(t testing.TB, o *OriginOptions, contents ...[]byte) *Origins {
	x, err := NewOrigins(o, store(contents).get)
	if err != nil {
		t.Fatal(err)
	}
	for i := range contents {
		x.Add(uint32(i))
	}
	return x
}

func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestOrigins finds what CAT does not: a record in a message, with a header, in parts.
func TestOrigins(t *testing.T) {
	message := random(1, 64<<10)
	record := message[12345 : 12345+4096]
	header := append(random(2, 100), record...)
	x := origins(t, nil, message, random(3, 64<<10))
	for _, c := range []struct {
		name    string
		content []byte
		want    []Match
	}{
		{"a record", record, []Match{{0, 4096, 0, 12345}}},
		{"behind a header", header, []Match{{100, 4096, 0, 12345}}},
		{"in parts", record[:1400], []Match{{0, 1400, 0, 12345}}},
		{"in parts", record[1400:2800], []Match{{0, 1400, 0, 13745}}},
		{"in parts", record[2800:], []Match{{0, 1296, 0, 15145}}},
		{"two records turned round", slices.Concat(message[5000:7000], message[1000:3000]), []Match{{0, 2000, 0, 5000}, {2000, 2000, 0, 1000}}},
		{"with a byte that differs", slices.Concat(record[:2000], []byte{record[2000] ^ 1}, record[2001:]), []Match{{0, 2000, 0, 12345}, {2001, 2095, 0, 14346}}},
		{"something else", random(4, 10000), nil},
	} {
		got := x.Find(nil, c.content)
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	// Whole contents are found whatever they are.
	small := origins(t, nil, []byte("GET /"), make([]byte, 5000))
	for i, content := range [][]byte{[]byte("GET /"), make([]byte, 5000)} {
		got := small.Find(nil, content)
		if !slices.Contains(got, Match{0, len(content), uint32(i), 0}) {
			t.Errorf("%.10q: %v", content, got)
		}
	}
}

// TestOriginsAreExact checks that every match is one, and cannot be longer, and that runs
// of 1 KiB of random bytes are always found.
func TestOriginsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		contents := store{random(rapid.Uint64().Draw(t, "seed"), 8192),
			rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 3000).Draw(t, "few values")}
		x, _ := NewOrigins(&OriginOptions{Piece: 64}, contents.get)
		x.Add(0)
		x.Add(1)
		from := rapid.IntRange(0, 7000).Draw(t, "from")
		n := rapid.IntRange(0, 8192-from).Draw(t, "n")
		front := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "in front")
		query := slices.Concat(front, contents[0][from:from+n], contents[1][:len(contents[1])/2])
		got := x.Find(nil, query)
		found := false
		for _, m := range got {
			s := contents[m.Source]
			if !bytes.Equal(query[m.Off:m.Off+m.Len], s[m.From:m.From+m.Len]) {
				t.Fatalf("%+v is none", m)
			}
			if m.Off > 0 && m.From > 0 && query[m.Off-1] == s[m.From-1] ||
				m.Off+m.Len < len(query) && m.From+m.Len < len(s) && query[m.Off+m.Len] == s[m.From+m.Len] {
				t.Fatalf("%+v could be longer", m)
			}
			found = found || m.Source == 0 && m.Off <= len(front) && m.Off+m.Len >= len(front)+n &&
				m.From-m.Off == from-len(front)
		}
		if n >= 1024 && !found {
			t.Fatalf("%d bytes from %d are not among %v", n, from, got)
		}
		if c := Cover(got); c > len(query) {
			t.Fatalf("%d bytes of %d are covered", c, len(query))
		}
	})
}

func TestMaxPlaces(t *testing.T) {
	page := random(9, 4096)
	contents := make([][]byte, 100)
	for i := range contents {
		contents[i] = page
	}
	x := origins(t, nil, contents...)
	if got := x.Find(nil, page); len(got) != 16 || x.Lost() == 0 {
		t.Errorf("%d places, %d left out", len(got), x.Lost())
	}
}

func FuzzSimilar(f *testing.F) {
	f.Add([]byte("hello, world"), []byte("hello"), uint8(5), uint8(16))
	f.Fuzz(func(t *testing.T, a, b []byte, k, n uint8) {
		if len(a) > 1<<16 || len(b) > 1<<16 {
			return
		}
		for _, all := range []bool{false, true} {
			s, err := NewSigner(&Options{Shingle: int(k), Hashes: int(n), AllHashes: all})
			if err != nil {
				return
			}
			x, y := s.Sign(nil, a), s.Sign(nil, b)
			if e := Estimate(x, x); len(a) > 0 && e != 1 {
				t.Fatalf("%q resembles itself by %v", a, e)
			}
			j := Jaccard(s.Set(nil, a), s.Set(nil, b))
			if e := Estimate(x, y); e < 0 || e > 1 || j < 0 || j > 1 || j == 1 && len(a) > 0 && e != 1 {
				t.Fatalf("%q, %q: %v is estimated as %v", a, b, j, e)
			}
		}
		SignCAT(a)
		o, _ := NewOrigins(&OriginOptions{Piece: 32}, store{a}.get)
		o.Add(0)
		for _, m := range o.Find(nil, b) {
			if !bytes.Equal(b[m.Off:m.Off+m.Len], a[m.From:m.From+m.Len]) {
				t.Fatalf("%+v is no match", m)
			}
		}
	})
}

func BenchmarkSign(b *testing.B) {
	page := random(1, 4096)
	for name, o := range map[string]Options{"one": {}, "all": {AllHashes: true}} {
		s, _ := NewSigner(&o)
		b.Run("permutations="+name, func(b *testing.B) {
			b.SetBytes(4096)
			b.ReportAllocs()
			var sig Signature
			for b.Loop() {
				sig = s.Sign(sig[:0], page)
			}
		})
	}
	b.Run("CAT", func(b *testing.B) {
		b.SetBytes(4096)
		b.ReportAllocs()
		for b.Loop() {
			SignCAT(page)
		}
	})
}

func BenchmarkOrigins(b *testing.B) {
	page := random(1, 4096)
	x := origins(b, nil, random(2, 1<<20))
	b.SetBytes(4096)
	for b.Loop() {
		x.Find(nil, page)
	}
}
