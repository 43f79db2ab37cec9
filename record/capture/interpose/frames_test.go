// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
)

// builtProgram returns a program that a compiler made.
func builtProgram(t *testing.T, compiler, source string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		testenv.Lacks(t, err.Error()+": Debian's package musl-tools has it")
	}
	bin := filepath.Join(t.TempDir(), source)
	args := append([]string{"-w", "-O1", "-pthread", "-o", bin, "testdata/" + source + ".c"}, flags...)
	cmd := exec.Command(compiler, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return bin
}

// TestWithoutFrames records programs and libraries without a table of functions that is mapped, or without any (what
// was stripped, musl): their calls are made at patched places all the same.
func TestWithoutFrames(t *testing.T) {
	for _, compiler := range []string{
		"gcc -static", "gcc -static -s", "musl-gcc -static", "musl-gcc -static -s", "musl-gcc",
	} {
		t.Run(compiler, func(t *testing.T) {
			words := strings.Fields(compiler)
			bin, dir := builtProgram(t, words[0], "connections", words[1:]...), shortDir(t)
			stops := func(rounds int) uint64 {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				rec := record(t, &capture.Options{Command: []string{bin, strconv.Itoa(rounds), dir}}).succeeded(t)
				if rec.output != "done\n" {
					t.Fatalf("the program wrote %q", rec.output)
				}
				return rec.result.Stops
			}
			if few, more := stops(10), stops(60); few == 0 || more >= few+50 {
				t.Errorf("%d stops in 10 rounds, %d in 60: want about as many, and more than 0", few, more)
			}
		})
	}
}

// TestStaticFrames holds the ranges of functions against the symbols, of which the linker knows no other.
func TestStaticFrames(t *testing.T) {
	f, err := os.Open(builtProgram(t, "gcc", "connections", "-static"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	first := e.Progs[0].Vaddr
	section := e.Section(".eh_frame")
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	frames := parseFrames(data, section.Addr-first)
	slices.SortFunc(frames, func(a, b frame) int { return int(a.start) - int(b.start) })
	text, symbols, found := e.Section(".text"), symbolFrames(e, first), 0
	for _, s := range symbols {
		i, ok := slices.BinarySearchFunc(frames, s, func(a, b frame) int { return int(a.start) - int(b.start) })
		if ok && frames[i].end == s.end {
			found++
		}
	}
	if len(symbols) < 1000 || found*10 < len(symbols)*9 {
		t.Errorf("%d of %d functions have the frame that their symbols say, want nearly all", found, len(symbols))
	}
	for _, r := range frames {
		if start := r.start + first; start < e.Progs[0].Vaddr || r.end+first > text.Addr+text.Size+1<<20 {
			t.Errorf("a frame is at %#x to %#x, outside the program", r.start, r.end)
		}
	}
}

// FuzzFrames looks for unwinding information that makes its reading fail.
func FuzzFrames(f *testing.F) {
	e, err := elf.Open("/proc/self/exe")
	if err != nil {
		f.Fatal(err)
	}
	defer e.Close()
	if s := e.Section(".eh_frame"); s != nil {
		if data, err := s.Data(); err == nil {
			f.Add(data[:min(len(data), 4096)])
		}
	}
	cie := "\x14\x00\x00\x00\x00\x00\x00\x00\x01zR\x00\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01\x00\x00"
	fde := "\x10\x00\x00\x00\x1c\x00\x00\x00\x00\x10\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00"
	f.Add([]byte(cie + fde))
	f.Fuzz(func(t *testing.T, section []byte) {
		frames := parseFrames(section, 0x2000)
		if len(frames) > len(section)/12 {
			t.Errorf("%d frames in %d bytes", len(frames), len(section))
		}
		for _, r := range frames {
			if r.end <= r.start {
				t.Errorf("frame %+v", r)
			}
		}
		fileFrames(bytes.NewReader(section))
		withStretches(bytes.NewReader(section), frames)
	})
}
