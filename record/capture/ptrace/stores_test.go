// SPDX-License-Identifier: Apache-2.0

package ptrace

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

// TestStores records stores through shared mappings: what is recorded makes the files again, and shows each call
// that reads one what the program saw.
func TestStores(t *testing.T) {
	dir := t.TempDir()
	rec := record(t, &capture.Options{Command: []string{program(t, "stores"), dir}})
	files := map[uint64][]byte{} // by inode
	reads := 0
	for i := range rec.records {
		r := &rec.records[i]
		if r.Type != trace.RecCall || len(r.Objects) == 0 || r.Ret <= 0 {
			continue
		}
		ino, off := r.Objects[0].Ino, int64(r.Args[3])
		switch op := event.Op(r.Op); op {
		case event.OpMmapPwrite, event.OpPwrite64:
			data := content(r, 1)
			files[ino] = append(files[ino], make([]byte, max(0, int(off)+len(data)-len(files[ino])))...)
			copy(files[ino][off:], data)
		case event.OpPread64, event.OpRead:
			if op == event.OpRead {
				off = r.Objects[0].Pos - r.Ret
			}
			if data := content(r, 1); len(files[ino]) >= int(off)+len(data) {
				reads++
				if got := files[ino][off:][:len(data)]; !bytes.Equal(got, data) {
					t.Errorf("%v at %d returned %q, the records before it make %q", op, off, data, got)
				}
			}
		}
	}
	if reads < 2 {
		t.Errorf("%d reads of what was stored, want 2", reads)
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
			at := 0
			for at < len(got) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s: the records make another file, from byte %d on: %.20q, want %.20q", name, at, got[at:],
				want[at:])
		}
	}
}

// TestStoresOff checks that the policy is kept.
func TestStoresOff(t *testing.T) {
	rec := record(t, &capture.Options{Command: []string{program(t, "stores"), t.TempDir()}, Mmap: capture.MmapOff})
	if n := len(rec.calls(event.OpMmapPwrite)); n > 0 {
		t.Errorf("%d stores recorded, want none", n)
	}
}
