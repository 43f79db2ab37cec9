// SPDX-License-Identifier: Apache-2.0

package blkparse

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
)

func TestParse(t *testing.T) {
	for _, x := range []struct {
		text string
		want line
	}{
		{"  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]",
			line{major: 8, pid: 697, action: "G", rwbs: "W", sized: true, sector: 223490, sectors: 8, what: "kjournald"}},
		{"259,1   11     2053    61.009507758     0  C  RA 8192 + 16 (  105000) [65531]",
			line{major: 259, minor: 1, ns: 61009507758, action: "C", rwbs: "RA", sized: true, sector: 8192, sectors: 16, what: "65531", number: 65531}},
		{"  8,0    0        5     0.000000829   697  P   N [kworker/0:1]",
			line{major: 8, ns: 829, pid: 697, action: "P", rwbs: "N", what: "kworker/0:1"}},
		{"  8,0    0       26     0.000799000     0  C FWS 0 [0]", line{major: 8, ns: 799000, action: "C", rwbs: "FWS", what: "0"}},
	} {
		if l, ok := parse([]byte(x.text)); !ok || l != x.want {
			t.Errorf("%s: %v %+v", x.text, ok, l)
		}
	}
	for _, text := range []string{
		"",
		"CPU0 (sda):",
		"Events (s): 43 entries",
		"  8,0    3        1     0.0   697  G   W 223490 + 8 [x]",
		"  8    3        1     0.000000000   697  G   W 223490 + 8 [x]",
		"  8,0    3        1     0.000000000   -1  G   W 223490 + 8 [x]",
		"  8,0    3        1     0.000000000   1  G   W 99999999999999999 + 8 [x]",
		"  8,0    3        1     0.000000000   1  G   W 1 + 9999999999 [x]",
	} {
		if l, ok := parse([]byte(text)); ok {
			t.Errorf("%q is %+v", text, l)
		}
	}
}

func TestMatch(t *testing.T) {
	if !match([]byte("\n  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n")) {
		t.Error("blkparse's text is not known")
	}
	for _, s := range []string{"", "\n\n", "1 2 3 4 5 6 7 8\n", strings.Repeat(" ", 100)} {
		if match([]byte(s)) {
			t.Errorf("%q is none of it", s)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte("  8,0 0 1 0.000000000 697 Q W 8 + 8 [x]\n  8,0 0 2 0.000000100 1 D W 8 + 8 [y]\n  8,0 0 3 0.000000200 0 C W 8 + 8 [0]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		match(b)
		im := format.NewImport(t.TempDir(), "fuzz")
		err := Import(context.Background(), bytes.NewReader(b), im)
		streams, closeErr := im.Close()
		if closeErr != nil {
			t.Fatal(closeErr)
		}
		if err == nil && (im.Records > 0) != (len(streams) == 1) {
			t.Errorf("%d records, %d streams", im.Records, len(streams))
		}
	})
}
