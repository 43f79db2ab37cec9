// SPDX-License-Identifier: Apache-2.0

package wholefile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/internal/wholefile"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x")
	put := func(text string, fail error) error {
		return wholefile.Write(name, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fail)
		})
	}
	want := func(text string) {
		t.Helper()
		if got, err := os.ReadFile(name); err != nil || string(got) != text {
			t.Errorf("the file has %q, %v; want %q", got, err, text)
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("the directory has %v, want one file", files)
		}
	}
	if err := put("one", nil); err != nil {
		t.Fatal(err)
	}
	want("one")
	if err := put("two", nil); err != nil {
		t.Fatal(err)
	}
	want("two")
	broken := errors.New("broken")
	if err := put("thr", broken); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	want("two")
}
