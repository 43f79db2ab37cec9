// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
)

// sites returns the offsets of all syscall instructions, and of bytes that look like one, in
// a file's code, and the region that the code is in.
func sites(t *testing.T, path string) (r region, list []uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		return r, nil
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 {
			continue
		}
		r = region{start: p.Off, end: p.Off + p.Filesz, name: path}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i += 2 {
			k := bytes.Index(text[i:], syscallBytes)
			if k < 0 {
				return r, list
			}
			i += k
			list = append(list, p.Off+uint64(i))
		}
	}
	return r, nil
}

func TestCoverageX(t *testing.T) {
	for _, path := range []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/tmp/cx/gm", "/lib/x86_64-linux-gnu/libpthread.so.0"} {
		r, list := sites(t, path)
		mem, err := os.Open(path)
		if err != nil {
			continue
		}
		sp := &space{mem: mem}
		head := make([]byte, headBytes)
		sp.read(head, 0)
		im := &image{plans: map[uint64]plan{}, taken: map[uint64]bool{}, gogo: bytes.Contains(head, []byte("Go\x00\x00"))}
		bad := 0
		for _, s := range list {
			if len(im.plan(sp, &r, s).steps) == 0 {
				bad++
				t.Logf("%s+%#x", filepath.Base(path), s)
			}
		}
		t.Logf("%s: %d sites, %d without a way, %d frames, go %v", path, len(list), bad, len(im.frames), im.gogo)
	}
}
