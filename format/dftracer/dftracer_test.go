// SPDX-License-Identifier: Apache-2.0

package dftracer

import (
	"bytes"
	"compress/gzip"
	"context"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

const sample = `[
 {"id":1,"name":"HH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"h","value":51242}}
{"id":2,"name":"read","cat":"POSIX","pid":7,"tid":7,"ts":1727387308054418,"dur":4,"ph":"X","args":{"hhash":51242,"count":4,"ret":4,"fhash":9,"fd":11}},
{"id":3,"name":"FH","cat":"dftracer","pid":7,"tid":7,"ph":"M","args":{"name":"/a","value":9}}
]`

func run(t *testing.T, text []byte) (*format.Import, error) {
	t.Helper()
	im := format.NewImport(t.TempDir(), "test")
	err := Import(context.Background(), bytes.NewReader(text), im)
	if _, err := im.Close(); err != nil {
		t.Fatal(err)
	}
	return im, err
}

func compressed(s string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.Bytes()
}

func TestMatch(t *testing.T) {
	for _, b := range [][]byte{[]byte(sample), compressed(sample),
		compressed(sample + strings.Repeat("x", 1<<20))[:200]} {
		if !match(b) {
			t.Errorf("%.40q is not known", b)
		}
	}
	for _, s := range []string{"", "[", "\x1f\x8b", `{"name":"x","ph":"X","pid":1,"cat":"other"}`, `{"cat":"POSIX"}`,
		"\n\n   \n"} {
		if match([]byte(s)) || match(compressed(s)) {
			t.Errorf("%q is none", s)
		}
	}
}

func TestImport(t *testing.T) {
	for _, b := range [][]byte{[]byte(sample), compressed(sample)} {
		if im, err := run(t, b); err != nil || im.Records != 1 || len(im.Left) != 0 {
			t.Errorf("%v: %d records, left out %v", err, im.Records, im.Left)
		}
	}
	if _, err := run(t, compressed(sample)[:100]); err == nil {
		t.Error("a cut file is read without an error")
	}
}

func TestCallsAreInTheOperationTable(t *testing.T) {
	for name, c := range calls {
		if spec := event.Lookup(c.op); len(strings.Fields(c.args)) > len(spec.Args) {
			t.Errorf("%s has more arguments than %s", name, spec.Name)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(sample))
	f.Add(compressed(sample))
	f.Fuzz(func(t *testing.T, b []byte) {
		match(b)
		im := format.NewImport(t.TempDir(), "fuzz")
		err := Import(context.Background(), bytes.NewReader(b), im)
		streams, closeErr := im.Close()
		if closeErr != nil {
			t.Fatal(closeErr)
		}
		if err == nil && (im.Records > 0) != (len(streams) > 0) {
			t.Errorf("%d records, %d streams", im.Records, len(streams))
		}
	})
}
