// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/predicate/source"
)

func TestAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "filter")
	if err := os.WriteFile(file, []byte("latency > 10ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if x, err := source.All(nil, ""); x != nil || err != nil {
		t.Errorf("All of nothing is %v, %v", x, err)
	}
	x, err := source.All([]string{"op = read", "failed"}, file)
	if want := "(op = read and failed) and latency > 10ms"; err != nil || x.String() != want {
		t.Errorf("All = %v, %v; want %s", x, err, want)
	}
	if _, err := source.All([]string{"strace:-e trace=fsync"}, ""); err != nil {
		t.Errorf("options of strace: %v", err)
	}
	var wrong *source.Error
	if x, err := source.All([]string{"op ="}, ""); !errors.As(err, &wrong) {
		t.Errorf("All of half a test = %v, %v; want an Error", x, err)
	}
	for _, text := range []string{"dfstrace:" + file + ".gone"} {
		if x, err := source.All([]string{text}, ""); !errors.Is(err, fs.ErrNotExist) || errors.As(err, &wrong) {
			t.Errorf("All(%s) = %v, %v; want %v", text, x, err, fs.ErrNotExist)
		}
	}
}
