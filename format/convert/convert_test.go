// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/convert"
)

func TestResult(t *testing.T) {
	r := &convert.Result{From: "tape", To: "strace", Done: format.Done{Records: 1234, Missing: 4096,
		Left: map[string]uint64{"b": 2, "a": 2, "c": 30}}}
	const want = `1,234 records from tape to strace
4.00 KiB of content are not in the tape
left out: 30 c
left out: 2 a
left out: 2 b
`
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
	if !r.Lossy() || (&convert.Result{}).Lossy() {
		t.Errorf("Lossy is %v of %+v, and %v of nothing", r.Lossy(), r, (&convert.Result{}).Lossy())
	}
}

func TestFileRefuses(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, []byte("nothing that is known\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{"x.unknown", "x.tape"} {
		var refused *convert.RequestError
		done, err := convert.File(t.Context(), in, filepath.Join(dir, out), &convert.Options{Format: &format.Options{}})
		if !errors.As(err, &refused) {
			t.Errorf("File to %s = %v, %v; want a RequestError", out, done, err)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("File to %s leaves %v", out, files)
		}
	}
	if done, err := convert.File(t.Context(), in, in, &convert.Options{}); err == nil {
		t.Errorf("File to itself = %v, want an error", done)
	}
}
