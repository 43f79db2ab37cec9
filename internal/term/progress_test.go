// SPDX-License-Identifier: Apache-2.0

package term

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func newTest(bar bool) (*Progress, *bytes.Buffer, func(time.Duration)) {
	var b bytes.Buffer
	now := time.Unix(1000, 0)
	p := &Progress{w: &b, bar: bar, width: 60, prefix: "x: ", unit: func(n int64) string { return fmt.Sprint(n) },
		now: func() time.Time { return now }}
	return p, &b, func(d time.Duration) { now = now.Add(d) }
}

func TestPlain(t *testing.T) {
	p, b, wait := newTest(false)
	p.Update("sealing", 0, 200)
	wait(500 * time.Millisecond)
	p.Update("sealing", 50, 200)
	if b.Len() > 0 {
		t.Errorf("something is shown at once: %q", b)
	}
	wait(time.Second)
	p.Update("sealing", 100, 200)
	wait(time.Second)
	p.Update("sealing", 150, 200)
	wait(5 * time.Second)
	p.Note("3 differ")
	p.Update("sealing", 190, 0)
	p.Done()
	if want := "x: sealing: 100 of 200 (50 %)\nx: sealing: 190, 3 differ\n"; b.String() != want {
		t.Errorf("%q, want %q", b, want)
	}
}

func TestBar(t *testing.T) {
	p, b, wait := newTest(true)
	for i := range 10 {
		p.Update("replaying", int64(i*10), 100)
		wait(400 * time.Millisecond)
	}
	p.Done()
	for part := range strings.SplitSeq(b.String(), "\r\x1b[K") {
		if len(part) >= 60 {
			t.Errorf("line of %d columns: %q", len(part), part)
		}
	}
	if !strings.Contains(b.String(), "[###") || !strings.HasSuffix(b.String(), "\r\x1b[K") {
		t.Errorf("no bar, or it stays: %q", b)
	}
}

func TestNoTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if IsTerminal(f) || Width(f) != 80 {
		t.Error("a file is taken for a terminal")
	}
	if s := StyleOf(f).Bad("x"); s != "x" {
		t.Errorf("colour in a file: %q", s)
	}
}
