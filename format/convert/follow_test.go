// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

type updates chan [2]int64

func (u updates) Update(what string, done, total int64) {
	select {
	case u <- [2]int64{done, total}:
	default:
	}
}

func (updates) Done() {}

// TestFollow: the position of a file is how far it is read.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.CopyN(io.Discard, f, 7); err != nil {
		t.Fatal(err)
	}
	u := make(updates, 1)
	stop := follow(f, u)
	got := <-u
	stop()
	if want := [2]int64{7, 10}; got != want {
		t.Errorf("read %d of %d bytes, want %d of %d", got[0], got[1], want[0], want[1])
	}
}
