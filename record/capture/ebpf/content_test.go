// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// patterned returns what testdata/content.c puts at an offset.
func patterned(off, n int64) []byte {
	b := make([]byte, n)
	for i := range b {
		o := uint64(off) + uint64(i)
		b[i] = byte(o*131 + o>>9*17 + o>>20)
	}
	return b
}

// shm returns a directory in memory, so that large files cost little.
func shm(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "iotape-test")
	if err != nil {
		t.Skipf("skipped: no /dev/shm: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// checkContent compares each call on the regular files of dir with the pattern,
// and returns how many bytes it compared.
func checkContent(t *testing.T, r *recording, dir string) (compared int64, held int) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	dev := uint32(unix.Major(st.Dev))<<20 | unix.Minor(st.Dev)
	for _, c := range r.calls {
		var at int64
		arg := uint8(1)
		obj := 0
		switch event.Op(c.Op) {
		case event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev:
			at = -1
		case event.OpPread64, event.OpPwrite64, event.OpPreadv, event.OpPwritev:
			at = int64(c.Args[3])
		case event.OpSendfile:
			arg, at, obj = 1, 0, 1
		case event.OpCopyFileRange:
			arg, at = 0, 0
		case event.OpSplice:
			arg, at = 0, 0
			if len(c.Objects) == 2 && c.Objects[0].Mode&unix.S_IFMT != unix.S_IFREG {
				obj = 1
			}
		default:
			continue
		}
		if len(c.Objects) <= obj || c.Objects[obj].Dev != dev || c.Objects[obj].Mode&unix.S_IFMT != unix.S_IFREG ||
			c.Ret <= 0 {
			continue
		}
		if at < 0 {
			at = c.Objects[0].Pos - c.Ret
		}
		if c.gap > 0 {
			t.Errorf("%s of %d: %d bytes missing", c.spec.Name, c.Ret, c.gap)
		}
		if want := patterned(at, c.Ret); !bytes.Equal(c.data[arg], want) {
			i := 0
			for i < len(want) && i < len(c.data[arg]) && c.data[arg][i] == want[i] {
				i++
			}
			t.Errorf("%s of %d at %d: content of %d bytes differs from byte %d on", c.spec.Name, c.Ret, at,
				len(c.data[arg]), i)
		}
		compared += c.Ret
		if c.held {
			held++
		}
	}
	return compared, held
}

// Its largest calls do not fit any ring.
func TestContent(t *testing.T) { testContent(t, 100) }

// testContent records calls of many sizes, the largest of so many MiB.
func testContent(t *testing.T, largest int64) {
	dir := shm(t)
	r, res := record(t, &capture.Options{}, build(t, "content"), dir, strconv.FormatInt(largest, 10))
	if res.ExitStatus != 0 || res.Lost != 0 || r.lost != 0 {
		t.Fatalf("result %+v, %d lost by frames", res, r.lost)
	}
	n, held := checkContent(t, r, dir)
	if n < largest<<20*11/6 {
		t.Errorf("only %d bytes compared", n)
	}
	t.Logf("%d calls, %d bytes compared, %d with held content, %d stops", len(r.calls), n, held, res.Stops)
	var fds []int32
	for _, c := range r.op(event.OpFcntl) {
		for _, o := range c.Objects {
			if o.Arg == event.ResultArg {
				fds = append(fds, o.FD)
			}
		}
	}
	if len(fds) != 2 || fds[0] < 100 || fds[1] < 200 {
		t.Errorf("descriptors made by fcntl: %v", fds)
	}
}

func TestContentNone(t *testing.T) {
	dir := shm(t)
	r, res := record(t, &capture.Options{Content: capture.Everywhere(capture.KeepNone)}, build(t, "content"), dir)
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	for _, c := range r.calls {
		if c.spec.Class == event.Data && c.spec.Result == event.KindSize && c.Ret > 0 && c.omit != c.Ret {
			t.Errorf("%s = %d: %d bytes marked as omitted", c.spec.Name, c.Ret, c.omit)
		}
		if c.gap > 0 {
			t.Errorf("%s %x = %d: %d bytes missing", c.spec.Name, c.Args, c.Ret, c.gap)
		}
	}
}

// slow is a writer that takes its time.
type slow struct {
	bytes.Buffer
	pause time.Duration
}

func (s *slow) Write(b []byte) (int, error) {
	time.Sleep(s.pause)
	return s.Buffer.Write(b)
}

func TestTinyRings(t *testing.T) {
	dir := shm(t)
	w := &slow{pause: 3 * time.Millisecond}
	r, res := recordTo(t, &capture.Options{RingBytes: 256 << 10}, w, &w.Buffer, build(t, "content"), dir, "0", "50")
	if res.ExitStatus != 0 || res.Signal != 0 || res.Lost != 0 || r.lost != 0 {
		t.Fatalf("result %+v, %d lost by frames", res, r.lost)
	}
	if res.Stops == 0 {
		t.Error("no thread was ever held")
	}
	n, held := checkContent(t, r, dir)
	t.Logf("%d calls, %d bytes compared, %d with held content, %d stops in %v", len(r.calls), n, held, res.Stops,
		res.Elapsed)
	for _, c := range r.calls {
		if c.Ret == -4 || c.Ret <= -512 && c.Ret >= -516 {
			t.Errorf("%s was interrupted: %d", c.spec.Name, c.Ret)
		}
	}
}

func TestDrop(t *testing.T) {
	dir := shm(t)
	loop := build(t, "loop")
	argv := []string{loop, dir + "/file", "2000"}
	all, res := record(t, &capture.Options{Mmap: capture.MmapOff}, argv...) // with faults, no two runs are the same
	if res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	w := &slow{pause: 20 * time.Millisecond}
	r, res := recordTo(t, &capture.Options{RingBytes: 256 << 10, Overflow: capture.OverflowDrop, Mmap: capture.MmapOff},
		w, &w.Buffer, argv...)
	if res.ExitStatus != 0 || res.Stops != 0 {
		t.Fatalf("result %+v", res)
	}
	if res.Lost == 0 {
		t.Error("nothing was lost")
	}
	said := r.lost
	for _, rec := range r.of(trace.RecLoss) { // with reasons of their own
		said += rec.Count
	}
	if said != res.Lost {
		t.Errorf("frames and records say that %d were lost, the result %d", said, res.Lost)
	}
	if got, want := uint64(len(r.calls)+len(r.of(trace.RecExit)))+res.Lost, uint64(len(all.calls)+1); got != want {
		t.Errorf("%d records and losses of %d", got, want)
	}
	t.Logf("%d calls recorded, %d records lost", len(r.calls), res.Lost)
}

// TestLatency: a recorder that hardly looks at its rings loses nothing of what is many times
// as large as they are, and sees the end: rings that fill wake it.
func TestLatency(t *testing.T) {
	argv := []string{build(t, "loop"), shm(t) + "/file", "5000", "1024"}
	r, res := record(t, &capture.Options{RingBytes: 1 << 20, Latency: time.Hour, Mmap: capture.MmapOff}, argv...)
	if res.ExitStatus != 0 || res.Lost != 0 || r.lost != 0 || !r.end {
		t.Fatalf("result %+v, %d lost by frames", res, r.lost)
	}
	if n := len(r.op(event.OpPwrite64)); n != 5000+256 {
		t.Errorf("%d writes of %d", n, 5000+256)
	}
}

// failing is a disk that fills up.
type failing struct {
	bytes.Buffer
	left int
}

func (f *failing) Write(b []byte) (int, error) {
	n := min(f.left, len(b))
	f.Buffer.Write(b[:n])
	f.left -= n
	if n < len(b) {
		return n, unix.ENOSPC
	}
	return n, nil
}

func TestDiskFull(t *testing.T) {
	dir := shm(t)
	w := &failing{left: 20 << 20}
	r, res := recordTo(t, &capture.Options{RingBytes: 1 << 20}, w, &w.Buffer, build(t, "content"), dir)
	if res.ExitStatus != 0 || res.Signal != 0 {
		t.Fatalf("result %+v", res)
	}
	if !errors.Is(res.WriteErr, unix.ENOSPC) || res.Lost == 0 {
		t.Errorf("write error %v, %d lost", res.WriteErr, res.Lost)
	}
	if !errors.Is(r.torn, trace.ErrTruncated) {
		t.Errorf("the stream's end: %v", r.torn)
	}
	if len(r.calls) == 0 {
		t.Error("nothing was written before")
	}
}
