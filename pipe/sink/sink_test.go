// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe"
)

// write sends random bytes through a sink, as a stream, and returns them.
func write(t *testing.T, w io.WriteCloser, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	rand.Read(data)
	pw, err := pipe.NewWriter(w, nil, &pipe.Options{BlockBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pw.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := pw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return data
}

func read(t *testing.T, stream io.Reader) []byte {
	t.Helper()
	r, err := pipe.NewReader(stream, func(*pipe.Header) ([]pipe.Decoder, error) { return nil, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustOpen(t *testing.T, name string) io.WriteCloser {
	t.Helper()
	w, err := Open(t.Context(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestFile writes files in each way.
func TestFile(t *testing.T) {
	for _, options := range []string{"", "?sync", "?buffer=1M", "?buffer=1K&sync=1"} {
		name := filepath.Join(t.TempDir(), "a?b:c")
		sink := name
		if options != "" {
			name = filepath.Join(t.TempDir(), "plain")
			sink = "file:" + name + options
		}
		data := write(t, mustOpen(t, sink), 300_000)
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if !bytes.Equal(read(t, f), data) {
			t.Errorf("%s: other bytes", sink)
		}
		if got := Files(sink); len(got) != 1 || got[0] != name {
			t.Errorf("%s has made %q", sink, got)
		}
		if _, err := Open(t.Context(), sink, &Options{New: true}); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %v", sink, err)
		}
	}
}

// TestSync has O_SYNC set where it is asked for, and nowhere else.
func TestSync(t *testing.T) {
	for _, sync := range []bool{false, true} {
		f, err := openFile(filepath.Join(t.TempDir(), "f"), fileOptions{sync: sync})
		if err != nil {
			t.Fatal(err)
		}
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.f.Fd(), syscall.F_GETFL, 0)
		if errno != 0 || flags&syscall.O_SYNC == syscall.O_SYNC != sync {
			t.Errorf("sync %v: flags %x, %v", sync, flags, errno)
		}
		f.Close()
	}
}

// TestRotate cuts by size: every file begins with the header and can be read alone, and
// all joined are the stream.
func TestRotate(t *testing.T) {
	base := filepath.Join(t.TempDir(), "s")
	name := "file:" + base + "?rotate=1M&buffer=64K"
	data := write(t, mustOpen(t, name), 5<<20+123)
	files := Files(name)
	if len(files) != 6 {
		t.Fatalf("%q", files)
	}
	var all []io.Reader
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > 1<<20 {
			t.Errorf("%s has %d bytes", file, len(b))
		}
		s, err := pipe.NewScanner(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if h, _, err := s.Next(); err != nil || i > 0 && h.Number == 0 {
			t.Errorf("%s begins with block %d: %v", file, h.Number, err)
		}
		all = append(all, bytes.NewReader(b))
	}
	if !bytes.Equal(read(t, io.MultiReader(all...)), data) {
		t.Error("other bytes")
	}
}

// TestRotateByTime begins another file when the time is over.
func TestRotateByTime(t *testing.T) {
	f, err := openFile(filepath.Join(t.TempDir(), "s"), fileOptions{every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"header", "one", "two"} {
		if _, err := f.Write([]byte(unit)); err != nil {
			t.Fatal(err)
		}
	}
	f.begun = f.begun.Add(-2 * time.Hour)
	if _, err := f.Write([]byte("three")); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for part, want := range []string{"headeronetwo", "headerthree"} {
		if got, err := os.ReadFile(partName(f.name, part+1)); err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestDevice writes to a block device, over what was there, and reads it back.
func TestDevice(t *testing.T) {
	testenv.NeedRoot(t)
	testenv.NeedLoop(t)
	image := filepath.Join(t.TempDir(), "image")
	junk := bytes.Repeat([]byte("iotb old blocks "), 1<<16)
	if err := os.WriteFile(image, junk, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", image).Output()
	if err != nil {
		t.Fatal(err)
	}
	dev := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "-d", dev).Run() })
	for _, n := range []int{500_000, 3} {
		data := write(t, mustOpen(t, "device:"+dev), n)
		f, err := os.Open(dev)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, f), data) {
			t.Error("other bytes")
		}
		f.Close()
	}
	// A device that is full says so.
	w := mustOpen(t, "device:"+dev)
	for err = nil; err == nil; {
		_, err = w.Write(make([]byte, 64<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	w.Close()
	// One that is mounted is not touched.
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", dev).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mnt := t.TempDir()
	if out, err := exec.Command("mount", dev, mnt).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer func() { _ = exec.Command("umount", mnt).Run() }()
	if _, err := Open(t.Context(), "device:"+dev, nil); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("%v", err)
	}
}

// TestFullDisk has a file that cannot grow: the error stays.
func TestFullDisk(t *testing.T) {
	dir := testenv.MountImage(t, "tmpfs", 1)
	w := mustOpen(t, filepath.Join(dir, "f"))
	var err error
	for err == nil {
		_, err = w.Write(make([]byte, 100_000))
	}
	if _, again := w.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) || again != err {
		t.Errorf("%v, then %v", err, again)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("close: %v", err)
	}
}

// TestOpenErrors has names that are wrong.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for name, want := range map[string]string{
		"-":                              "standard output is taken",
		"http://x":                       "streams go to",
		"file:":                          "no name",
		"file:" + dir + "/f?nosuch=1":    `it has no option "nosuch"`,
		"file:" + dir + "/f?rotate=1K":   "at least 1M",
		"file:" + dir + "/f?rotate=x":    "no size",
		"file:" + dir + "/f?every=1ms":   "at least 1s",
		"file:" + dir + "/f?sync=maybe":  "it is there, or not",
		"device:" + dir:                  "no block device",
		"device:/dev/null":               "no block device",
		"unix:" + dir + "/none":          "connect",
		"tcp://127.0.0.1:1":              "refused",
		"tls://127.0.0.1:1?ca=/none":     "no such file",
		"tls://127.0.0.1:1?cert=" + dir:  "goes with its key",
		"tcp://127.0.0.1:1?ca=x":         `no option "ca"`,
		"unix:" + dir + "/none?spool=-1": "no size",
	} {
		if _, err := Open(ctx, name, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// FuzzParams reads anything as options: what is taken without an error is in its bounds.
func FuzzParams(f *testing.F) {
	for _, s := range []string{"rotate=10M&every=1h&sync", "rotate=9999999999G", "every=-1s", "sync=2", "%zz"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		p := &params{values: values}
		size, every := p.size("rotate"), p.duration("every")
		p.flag("sync")
		if err := p.done(); err == nil && (size < 0 || every < 0) {
			t.Errorf("%q: %d, %v", query, size, every)
		}
	})
}
