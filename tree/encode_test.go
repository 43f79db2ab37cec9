// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// golden pins the encoded form: a change here is a new version of the format.
const golden = `{"format":"iotape.tree","version":1,"root64":"L/8="}
{"path":".","type":"d","mode":"0755","uid":0,"gid":7,"mtime":-5,"xattrs":[],"listing":true,"dev":1,"ino":2}
{"path":"a<b>","type":"f","mode":"4644","size":20490,"hash":"0100000000000000000000000000000000000000000000000000000000000000","content":true,"xattrs":[{"name":"user.a","value":""},{"name64":"dXNlci7/","value":"AA=="}],"nlink":2,"chunks":[[0,4096,7,2],[8192,4096,3],[16384,4096,4],[20480,10,5]]}
{"path":"dev","type":"c","rdev":259}
{"path":"ÿ","type":"l","target64":"/g=="}
{"path64":"/w==","type":"f","nlink":2,"link":"a<b>"}
{"note":"permission denied","path64":"/w=="}
{"end":true,"entries":5,"notes":1}
`

// goldenManifest is what golden says. The order is by bytes, so ÿ (c3 bf) comes before
// the byte ff.
func goldenManifest() *Manifest {
	return &Manifest{
		Root: "/\xff",
		Entries: []Entry{
			{Path: ".", Type: Dir, Known: KnownMode | KnownOwner | KnownMTime | KnownXattrs | KnownListing, Mode: 0o755, GID: 7, MTime: -5, Dev: 1, Ino: 2},
			{Path: "a<b>", Type: File, Known: KnownMode | KnownSize | KnownHash | KnownContent | KnownXattrs | KnownLinks, Mode: 0o4644, Size: 20490,
				Hash: [32]byte{1}, Nlink: 2, Xattrs: map[string][]byte{"user.a": {}, "user.\xff": {0}},
				Chunks: []Chunk{{0, 4096, 7}, {4096, 4096, 8}, {8192, 4096, 3}, {16384, 4096, 4}, {20480, 10, 5}}},
			{Path: "dev", Type: CharDev, Rdev: 259},
			{Path: "ÿ", Type: Symlink, Target: "\xfe"},
			{Path: "\xff", Type: File, Known: KnownLinks, Nlink: 2, Link: "a<b>"},
		},
		Notes: []Note{{Path: "\xff", Text: "permission denied"}},
	}
}

func TestEncodeGolden(t *testing.T) {
	var buf bytes.Buffer
	must(t, Encode(&buf, goldenManifest()))
	if d := cmp.Diff(golden, buf.String()); d != "" {
		t.Errorf("encoded form changed: %s", d)
	}
	got, err := Decode(&buf)
	must(t, err)
	if d := cmp.Diff(goldenManifest(), got); d != "" {
		t.Error(d)
	}
}

// A file with more runs than fit into one line, and ids at the end of their range.
func TestEncodeManyChunks(t *testing.T) {
	e := Entry{Path: "big", Type: File, Known: KnownSize, Size: 1 << 40}
	for i := range 2*runsPerLine + 10 {
		e.Chunks = append(e.Chunks, Chunk{Off: int64(i) * chunkBytes, Len: chunkBytes, ID: uint64(i * 2)})
	}
	for i := range 1000 {
		e.Chunks = append(e.Chunks, Chunk{Off: 1<<30 + int64(i)*chunkBytes, Len: chunkBytes, ID: uint64(i)})
	}
	e.Chunks = append(e.Chunks, Chunk{Off: 1 << 35, Len: chunkBytes, ID: math.MaxUint64 - 1},
		Chunk{Off: 1<<35 + chunkBytes, Len: chunkBytes, ID: 0})
	m := &Manifest{Entries: []Entry{e, {Path: "c", Type: File}}}
	var buf bytes.Buffer
	must(t, Encode(&buf, m))
	if n := bytes.Count(buf.Bytes(), []byte("\n")); n != 6 {
		t.Errorf("%d lines, want header, 2+1 of chunks, entry, end", n)
	}
	got, err := Decode(&buf)
	must(t, err)
	if !cmp.Equal(m, got) {
		t.Error("decoded differs")
	}
}

func TestDecodeBroken(t *testing.T) {
	const head = `{"format":"iotape.tree","version":1}` + "\n"
	const end = `{"end":true,"entries":1,"notes":0}` + "\n"
	entry := func(fields string) string {
		return head + `{"path":"a","type":"f"` + fields + "}\n" + end
	}
	tests := []struct {
		name, text string
		is         error
		want       string
	}{
		{"empty", "", ErrTruncated, "is empty"},
		{"only a header", head, ErrTruncated, "after line 1"},
		{"cut", golden[:len(golden)-40], ErrCorrupt, "line"},
		{"cut between lines", golden[:strings.Index(golden, `{"note"`)], ErrTruncated, "after line 6"},
		{"not ours", `{"format":"tar"}` + "\n", ErrCorrupt, "first line"},
		{"no JSON", "hello\n", ErrCorrupt, "first line"},
		{"newer", `{"format":"iotape.tree","version":2}` + "\n", ErrVersion, "2, this program reads up to 1"},
		{"version 0", `{"format":"iotape.tree"}` + "\n", ErrCorrupt, "version 0"},
		{"two roots", `{"format":"iotape.tree","version":1,"root":"a","root64":"/w=="}` + "\n", ErrCorrupt, "both"},
		{"after the end", entry("") + "\n", ErrCorrupt, "line 4: corrupt tree manifest: the manifest has ended"},
		{"count", head + end, ErrCorrupt, "has 0 entries and 0 notes, but its end line says 1 and 0"},
		{"duplicate", head + `{"path":"a","type":"f"}` + "\n" + `{"path":"a","type":"f"}` + "\n" + end, ErrCorrupt, `"a": occurs twice`},
		{"unsorted", head + `{"path":"b","type":"f"}` + "\n" + `{"path":"a","type":"f"}` + "\n" + end, ErrCorrupt, `comes after "b"`},
		{"path twice", entry(`,"path64":"/w=="`), ErrCorrupt, "both path and path64"},
		{"base64", entry(`,"target64":"%"`), ErrCorrupt, "base64"},
		{"no path", head + `{"type":"f"}` + "\n" + end, ErrCorrupt, "empty"},
		{"long type", entry(`,"type":"file"`), ErrCorrupt, "one letter"},
		{"mode", entry(`,"mode":"9"`), ErrCorrupt, "octal"},
		{"mode of type bits", entry(`,"mode":"100644"`), ErrCorrupt, "impossible"},
		{"half an owner", entry(`,"uid":1`), ErrCorrupt, "without the other"},
		{"hash", entry(`,"hash":"00"`), ErrCorrupt, "2 digits"},
		{"fraction", entry(`,"size":1.5`), ErrCorrupt, "size"},
		{"big size", entry(`,"size":9223372036854775808`), ErrCorrupt, "size"},
		{"listing of a file", entry(`,"listing":true`), ErrCorrupt, "no listing"},
		{"empty chunk", entry(`,"chunks":[[]]`), ErrCorrupt, "is empty"},
		{"long run", entry(`,"chunks":[[0,4096,0,1000000000]]`), ErrCorrupt, "run of 1000000000 chunks"},
		{"run of odd length", entry(`,"chunks":[[0,4095,0,2]]`), ErrCorrupt, "4095"},
		{"run overflows", entry(`,"chunks":[[9223372036854775000,4096,0,2]]`), ErrCorrupt, "overflows"},
		{"ids overflow", entry(`,"chunks":[[0,4096,18446744073709551615,2]]`), ErrCorrupt, "overflows"},
		{"chunks of nothing", head + `{"more":[[0,1,0]]}` + "\n", ErrCorrupt, "without an entry"},
		{"many chunks in a line", entry(`,"chunks":[` + strings.Repeat("[],", runsPerLine) + `[]]`), ErrCorrupt, "more than 65536"},
		{"many xattrs", entry(`,"xattrs":[` + strings.Repeat("{},", MaxXattrs) + `{}]`), ErrCorrupt, "more than 4096"},
		{"xattr twice", entry(`,"xattrs":[{"name":"a","value":""},{"name":"a","value":""}]`), ErrCorrupt, "occurs twice"},
		{"long line", head + strings.Repeat(" ", MaxLineBytes+2), ErrCorrupt, "line 2: corrupt tree manifest: it is longer than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, err := Decode(strings.NewReader(test.text))
			wantError(t, err, test.want)
			if m != nil || !errors.Is(err, test.is) {
				t.Errorf("manifest %v, error %v", m, err)
			}
		})
	}
	_, err := Decode(iotest.ErrReader(os.ErrDeadlineExceeded))
	if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) {
		t.Errorf("error of the reader: %v", err)
	}
}

// A later version may add fields and kinds of lines.
func TestDecodeSkipsUnknown(t *testing.T) {
	m, err := Decode(strings.NewReader(`{"format":"iotape.tree","version":1,"new":[1]}
{"future":{"a":1}}
{"path":"a","type":"f","colour":"red"}
{"end":true,"entries":1,"notes":0,"sum":"x"}
`))
	must(t, err)
	if d := cmp.Diff([]string{"a"}, paths(m)); d != "" {
		t.Error(d)
	}
}

func TestEncodeRefuses(t *testing.T) {
	large := map[string][]byte{}
	for i := range 1000 {
		large[strings.Repeat("n", i%200+1)+string(rune('a'+i/200))] = make([]byte, MaxXattrBytes)
	}
	tests := []struct {
		name string
		m    *Manifest
		want string
	}{
		{"unsorted", &Manifest{Entries: []Entry{{Path: "b", Type: File}, {Path: "a", Type: File}}}, "order"},
		{"long line", &Manifest{Entries: []Entry{{Path: "a", Type: File, Known: KnownXattrs, Xattrs: large}}}, "line of 87"},
		{"note", &Manifest{Notes: []Note{{"a", "\xff"}}}, "not text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantError(t, Encode(&bytes.Buffer{}, test.m), test.want)
		})
	}
}

func FuzzDecode(f *testing.F) {
	var buf bytes.Buffer
	must(f, Encode(&buf, goldenManifest()))
	f.Add(buf.Bytes())
	f.Add([]byte(golden))
	f.Add([]byte("{\"format\":\"iotape.tree\",\"version\":1}\n{\"path\":\"a\",\"type\":\"f\"}\n" +
		"{\"more\":[[0,4096,1,3]]}\n{\"end\":true,\"entries\":1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(bytes.NewReader(data))
		if (err != nil) == (m != nil) {
			t.Fatalf("manifest %v, error %v", m, err)
		}
		if err != nil {
			return
		}
		var buf bytes.Buffer
		must(t, Encode(&buf, m))
		again, err := Decode(bytes.NewReader(buf.Bytes()))
		must(t, err)
		if d := cmp.Diff(m, again); d != "" {
			t.Fatal(d)
		}
		if diffs := Compare(m, again, &CompareOptions{MTime: true}); diffs != nil {
			t.Fatal(diffs)
		}
	})
}
