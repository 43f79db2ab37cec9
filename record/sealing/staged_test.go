// SPDX-License-Identifier: Apache-2.0

package sealing_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

func TestMakeFails(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.tape")
	o := &sealing.MakeOptions{Unit: func(n uint64) string { return strconv.FormatUint(n, 10) }}
	broken := errors.New("broken")
	made, err := sealing.Make(t.Context(), name, o, func(_ *trace.TapeWriter, update sealing.Update) (*trace.Manifest,
		error) {
		update("working", 1, 2)
		return nil, broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("Make = %v, %v; want %v", made, err, broken)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%v is left, want nothing", files)
	}
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	if made, err := sealing.Make(t.Context(), name, o, nil); err == nil {
		t.Errorf("Make of what exists = %v, want an error", made)
	}
}
