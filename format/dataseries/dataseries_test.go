// SPDX-License-Identifier: Apache-2.0

package dataseries_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ds "github.com/iotape/iotape/format/dataseries"
)

// samples returns the files that the C++ tools wrote: those kept here, and, where
// the project's shared directory is, all of them.
func samples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.ds")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	more, _ := filepath.Glob("../../../shared/dataseries/*.ds")
	return append(files, more...)
}

func open(t testing.TB, b []byte) *ds.Reader {
	t.Helper()
	r, err := ds.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestText compares with what ds2txt printed.
func TestText(t *testing.T) {
	for _, file := range samples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var got bytes.Buffer
			if err := open(t, read(t, file)).WriteText(&got); err != nil {
				t.Fatal(err)
			}
			want := read(t, strings.TrimSuffix(file, ".ds")+".txt")
			if bytes.Equal(got.Bytes(), want) {
				return
			}
			g, w := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
			for i := range w {
				if i >= len(g) || g[i] != w[i] {
					t.Fatalf("line %d:\n%.300q, ds2txt has\n%.300q", i+1, g[min(i, len(g)-1)], w[i])
				}
			}
			t.Fatal("there is more than ds2txt has")
		})
	}
}

// TestRewrite copies each sample and reads the copy. What was not compressed comes
// out byte for byte.
func TestRewrite(t *testing.T) {
	for _, file := range samples(t) {
		for _, codec := range []ds.Codec{ds.None, ds.Zlib, ds.LZF, ds.Snappy, ds.LZ4, ds.LZ4HC} {
			t.Run(fmt.Sprintf("%s/%v", filepath.Base(file), codec), func(t *testing.T) {
				orig := read(t, file)
				r := open(t, orig)
				var out bytes.Buffer
				copyFile(t, &out, r, codec)
				again := open(t, out.Bytes())
				if a, b := rows(t, r), rows(t, again); a != b {
					t.Errorf("the copy differs:\n%.2000s\n%.2000s", a, b)
				}
				if identical[filepath.Base(file)] && codec == ds.None && !bytes.Equal(out.Bytes(), orig) {
					at := 0
					for at < min(out.Len(), len(orig)) && out.Bytes()[at] == orig[at] {
						at++
					}
					t.Errorf("%d bytes, the original has %d; they differ at %d", out.Len(), len(orig), at)
				}
			})
		}
	}
}

// identical are samples in one extent per type, little-endian, without compression
// and without what the C++ writer leaves undefined.
var identical = map[string]bool{"00-none-tiny.ds": true, "10-none-packopts.ds": true, "12-none-nullcompact.ds": true,
	"17-none-unique.ds": true}

func copyFile(t *testing.T, out *bytes.Buffer, r *ds.Reader, codec ds.Codec) {
	t.Helper()
	w, err := ds.NewWriter(out, r.Types(), ds.Options{Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Extents() {
		if err != nil {
			t.Fatal(err)
		}
		for row := range e.Len() {
			x, err := w.Row(e.Type)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range e.Type.Fields {
				switch f.Kind {
				case ds.Bool:
					x.SetBool(i, e.Bool(row, i))
				case ds.Double:
					x.SetDouble(i, e.Double(row, i))
				case ds.Variable32, ds.FixedWidth:
					x.SetBytes(i, e.Bytes(row, i))
				default:
					x.SetInt(i, e.Int(row, i))
				}
				if e.Null(row, i) {
					x.SetNull(i)
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// rows returns all records, by type.
func rows(t *testing.T, r *ds.Reader) string {
	t.Helper()
	byType := map[string]*strings.Builder{}
	for e, err := range r.Extents() {
		if err != nil {
			t.Fatal(err)
		}
		b := byType[e.Type.Name]
		if b == nil {
			b = &strings.Builder{}
			byType[e.Type.Name] = b
		}
		for row := range e.Len() {
			for i := range e.Type.Fields {
				b.WriteString(e.Text(row, i) + "|")
			}
			b.WriteByte('\n')
		}
	}
	var all strings.Builder
	for _, t := range r.Types() {
		if b := byType[t.Name]; b != nil {
			all.WriteString(t.Name + "\n" + b.String())
		}
	}
	return all.String()
}

// TestDamage flips bytes and cuts: every change is found, and nothing panics. The
// header's NaN may have any bits but its own.
func TestDamage(t *testing.T) {
	for _, file := range []string{"testdata/00-none-tiny.ds", "testdata/24-lzf-csv2ds.ds",
		"testdata/12-none-nullcompact.ds"} {
		orig := read(t, file)
		all := func(b []byte) error {
			r, err := ds.NewReader(bytes.NewReader(b), int64(len(b)))
			if err != nil {
				return err
			}
			for _, err := range r.Extents() {
				if err != nil {
					return err
				}
			}
			return nil
		}
		if err := all(orig); err != nil {
			t.Fatal(err)
		}
		for at := range orig {
			b := bytes.Clone(orig)
			b[at] ^= 1 << (at % 8)
			if err := all(b); err == nil && !(at >= 32 && at < 40) {
				t.Errorf("%s: flip at %d is not found", file, at)
			}
			if err := all(orig[:at]); !errors.Is(err, ds.ErrDamaged) {
				t.Errorf("%s cut at %d: %v", file, at, err)
			}
		}
	}
}

func TestBadSamples(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.ds")
	if len(files) == 0 {
		t.Fatal("no bad samples")
	}
	for _, file := range files {
		b := read(t, file)
		r, err := ds.NewReader(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			for _, err = range r.Extents() {
				if err != nil {
					break
				}
			}
		}
		if !errors.Is(err, ds.ErrDamaged) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestRandom writes random tables of random types and reads them.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	kinds := []string{"bool", "byte", "int32", "int64", "double", "variable32"}
	for round := range 150 {
		var x strings.Builder
		x.WriteString(`<ExtentType name="R" namespace="n" version="1.0"`)
		if rng.IntN(3) == 0 {
			x.WriteString(` pack_null_compact="non_bool"`)
		}
		if rng.IntN(3) == 0 {
			x.WriteString(` pack_pad_record="max_column_size"`)
		}
		x.WriteString(">\n<field type=\"bool\" name=\"first\" />\n")
		for i := range 1 + rng.IntN(9) {
			k := kinds[rng.IntN(len(kinds))]
			fmt.Fprintf(&x, `<field type="%s" name="f%d"`, k, i)
			if rng.IntN(2) == 0 {
				x.WriteString(` opt_nullable="yes"`)
			}
			if k == "variable32" && rng.IntN(2) == 0 {
				x.WriteString(` pack_unique="yes"`)
			}
			if (k == "int32" || k == "int64") && rng.IntN(2) == 0 {
				fmt.Fprintf(&x, ` pack_relative="f%d"`, i)
			}
			x.WriteString(" />\n")
		}
		x.WriteString("</ExtentType>\n")
		typ, err := ds.ParseType(x.String())
		if err != nil {
			t.Fatalf("%v in %s", err, x.String())
		}
		codec := []ds.Codec{ds.None, ds.Zlib, ds.LZF, ds.Snappy, ds.LZ4, ds.LZ4HC}[round%6]
		var out bytes.Buffer
		w, err := ds.NewWriter(&out, []*ds.Type{typ}, ds.Options{Codec: codec, ExtentBytes: 1 + rng.IntN(5000)})
		if err != nil {
			t.Fatal(err)
		}
		var want strings.Builder
		for range rng.IntN(200) {
			row, err := w.Row(typ)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range typ.Fields {
				switch f.Kind {
				case ds.Bool:
					v := rng.IntN(2) == 0
					row.SetBool(i, v)
					fmt.Fprint(&want, v)
				case ds.Double:
					v := math.Float64frombits(rng.Uint64() &^ (1 << 62))
					row.SetDouble(i, v)
					fmt.Fprint(&want, v)
				case ds.Variable32:
					v := bytes.Repeat([]byte{byte(rng.IntN(4))}, rng.IntN(1000)*rng.IntN(2))
					if f.Nullable && rng.IntN(3) == 0 {
						row.SetNull(i)
						v = nil
						want.WriteString("null")
					} else {
						row.SetBytes(i, v)
					}
					fmt.Fprintf(&want, "%q", v)
				default:
					v := int64(rng.Uint64())
					switch f.Kind {
					case ds.Int32:
						v = int64(int32(v))
					case ds.Byte:
						v = int64(byte(v))
					}
					row.SetInt(i, v)
					fmt.Fprint(&want, v)
				}
			}
			want.WriteByte('\n')
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for e, err := range open(t, out.Bytes()).Extents() {
			if err != nil {
				t.Fatalf("%v\n%s", err, x.String())
			}
			for row := range e.Len() {
				for i, f := range e.Type.Fields {
					if e.Null(row, i) {
						got.WriteString("null")
					}
					switch f.Kind {
					case ds.Bool:
						fmt.Fprint(&got, e.Bool(row, i))
					case ds.Double:
						fmt.Fprint(&got, e.Double(row, i))
					case ds.Variable32:
						fmt.Fprintf(&got, "%q", e.Bytes(row, i))
					default:
						fmt.Fprint(&got, e.Int(row, i))
					}
				}
				got.WriteByte('\n')
			}
		}
		if got.String() != want.String() {
			t.Fatalf("another table came back of %s", x.String())
		}
	}
}

func FuzzReader(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.ds")
	for _, file := range files {
		f.Add(read(f, file))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ds.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		_ = r.WriteText(&bytes.Buffer{})
	})
}

func FuzzType(f *testing.F) {
	f.Add(`<ExtentType name="T" pack_null_compact="non_bool"><field type="int32" name="i" ` +
		`opt_nullable="yes"/></ExtentType>`)
	f.Fuzz(func(t *testing.T, s string) {
		if typ, err := ds.ParseType(s); err == nil && typ.Index(typ.Fields[0].Name) != 0 {
			t.Error("the first field is not the first")
		}
	})
}
