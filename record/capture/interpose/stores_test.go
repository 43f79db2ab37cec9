// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// TestStores records stores through shared mappings: what is recorded makes the files again.
func TestStores(t *testing.T) {
	dir := t.TempDir()
	rec := record(t, &capture.Options{
		Command: []string{program(t, "../../ptrace/testdata/stores"), dir},
	}).succeeded(t)
	files := map[uint64][]byte{} // by inode
	for i := range rec.records {
		r := &rec.records[i]
		stores := event.Op(r.Op) == event.OpMmapPwrite || event.Op(r.Op) == event.OpPwrite64
		if r.Type != trace.RecCall || !stores || r.Ret <= 0 {
			continue
		}
		ino, off, data := r.Objects[0].Ino, int(r.Args[3]), content(r, 1)
		files[ino] = append(files[ino], make([]byte, max(0, off+len(data)-len(files[ino])))...)
		copy(files[ino][off:], data)
	}
	for _, name := range []string{"calls", "child", "exec", "again"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(filepath.Join(dir, name), &st); err != nil {
			t.Fatal(err)
		}
		got := append(files[st.Ino], make([]byte, max(0, len(want)-len(files[st.Ino])))...)
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the records make another file", name)
		}
	}
	// Each call that makes what was stored matter comes after the store.
	found := 0
	for _, r := range rec.calls(event.OpMmapPwrite) {
		for _, word := range []string{"msync", "fsync", "pread", "read", "sendfile", "munmap"} {
			if bytes.Contains(content(r, 1), []byte(word)) {
				found++
			}
		}
	}
	if found < 6 {
		t.Errorf("%d stores recorded by the calls that follow them, want 6", found)
	}
}
