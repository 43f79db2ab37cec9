// SPDX-License-Identifier: Apache-2.0

package blkparse

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/trace"
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

// TestRequests reads requests of which the trace does not have every event.
func TestRequests(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"only queued", "1 Q W 1000 + 8; 2 Q R 2000 + 8; 3 Q W 1000 + 8",
			"W 1000+8 from 1 not done; R 2000+8 from 2 not done; W 1000+8 from 3 not done"},
		{"only issued", "1 D W 1000 + 8; 2 D R 2000 + 8; 3 D W 1000 + 8",
			"W 1000+8 from 1 not done; R 2000+8 from 2 not done; W 1000+8 from 3 not done"},
		{"only completed", "1 C W 1000 + 8; 2 C W 1000 + 8", "W 1000+8 from 1 to 1; W 1000+8 from 2 to 2"},
		{"a read does not complete a write", "1 D W 8 + 8; 2 C R 8 + 8", "W 8+8 from 1 not done; R 8+8 from 2 to 2"},
		{"two at one place", "1 D W 8 + 8; 2 D W 8 + 8; 3 C W 8 + 8; 4 C W 8 + 8", "W 8+8 from 1 to 3; W 8+8 from 2 to 4"},
		{"merged behind", "1 Q W 8 + 8; 2 Q W 16 + 8; 2 M W 16 + 8; 3 D W 8 + 16; 4 C W 8 + 16", "W 8+16 from 3 to 4"},
		{"merged in front", "1 Q W 16 + 8; 2 Q W 8 + 8; 2 F W 8 + 8; 3 D W 8 + 16; 4 C W 8 + 16", "W 8+16 from 3 to 4"},
		{"merged, and neither issued nor completed", "1 Q W 8 + 8; 2 Q W 16 + 8; 2 M W 16 + 8",
			"W 8+8 from 1 not done; W 16+8 from 2 not done"},
		{"merged, and only completed", "1 Q W 8 + 8; 2 Q W 16 + 8; 4 C W 8 + 16", "W 8+16 from 1 to 4"},
		{"completed in parts", "1 D W 8 + 24; 2 C W 8 + 8; 3 C W 16 + 16", "W 8+8 from 1 to 2; W 16+16 from 1 to 3"},
		{"split", "1 Q R 8 + 24; 2 X R 8 / 16; 3 D R 8 + 8; 4 D R 16 + 16; 5 C R 8 + 8; 6 C R 16 + 16",
			"R 8+8 from 3 to 5; R 16+16 from 4 to 6"},
	} {
		var text strings.Builder
		for e := range strings.SplitSeq(c.events, "; ") {
			at, rest, _ := strings.Cut(e, " ")
			fmt.Fprintf(&text, "8,0 0 %s 0.00000000%s 7 %s [0]\n", at, at, rest)
		}
		tape, _ := formattest.Tape(t, func(im *format.Import) error {
			return Import(t.Context(), strings.NewReader(text.String()), im)
		})
		if got := strings.Join(described(t, tape), "; "); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", c.name, c.events, got, c.want)
		}
	}
}

// described returns the requests of a tape, with their times in ns.
func described(t *testing.T, tape *trace.Tape) (all []string) {
	t.Helper()
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call {
			continue
		}
		kind := map[event.Op]string{event.OpPread64: "R", event.OpPwrite64: "W"}[ev.Op]
		end := fmt.Sprintf("to %d", ev.Exit)
		if ev.Flags&event.Interrupted != 0 {
			end = "not done"
		}
		all = append(all, fmt.Sprintf("%s %d+%d from %d %s", kind, ev.Args[3]/512, ev.Args[2]/512, ev.Enter, end))
	}
	return all
}

func FuzzImport(f *testing.F) {
	f.Add([]byte("  8,0 0 1 0.000000000 697 Q W 8 + 8 [x]\n  8,0 0 2 0.000000100 1 D W 8 + 8 [y]\n  8,0 0 3 " +
		"0.000000200 0 C W 8 + 8 [0]\n"))
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

// TestNeverCompleted: a request without a completion is on its device, also if it came before one that completed.
func TestNeverCompleted(t *testing.T) {
	const text = "  8,0    1        1     0.000000000   500  Q   W 900 + 8 [x]\n" +
		"  8,0    1        2     0.000100000   500  Q   W 100 + 8 [x]\n" +
		"  8,0    1        3     0.000200000   500  D   W 100 + 8 [x]\n" +
		"  8,0    1        4     0.000300000     0  C   W 100 + 8 [0]\n"
	path := filepath.Join(t.TempDir(), "x.blkparse")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tape, _ := formattest.One(t, &Format, path)
	got := strings.Join(formattest.Describe(t, tape), "\n")
	const want = "500/500 x pwrite64 0:fd3=/dev/block/8:0 1:4096 @51200 = 4096\n" +
		"500/500 x pwrite64 0:fd3=/dev/block/8:0 @460800 = 0 (interrupted)"
	if got != want && got != want[strings.Index(want, "\n")+1:]+"\n"+want[:strings.Index(want, "\n")] {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
