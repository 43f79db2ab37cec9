// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/format"
)

// FuzzImport: any text is refused, or becomes a stream.
func FuzzImport(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.strace")
	old, _ := filepath.Glob("testdata/old/*.strace")
	for _, name := range append(names, old...) {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for lines := bytes.SplitAfter(b, []byte("\n")); len(lines) > 0; { // small ones change faster
			n := min(len(lines), 8)
			f.Add(bytes.Join(lines[:n], nil))
			lines = lines[n:]
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		match(text)
		im := format.NewImport(t.TempDir(), "test")
		w, err := im.Host("")
		if err != nil {
			t.Fatal(err)
		}
		if err := Import(bytes.NewReader(text), 0, w, &im.Done); err != nil {
			im.Close()
			return
		}
		if _, err := im.Close(); err != nil {
			t.Fatal(err)
		}
		if im.Records == 0 {
			t.Error("neither an error nor an event")
		}
	})
}
