// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// feed writes n rounds of frames, each with some numbered calls of two threads, whose
// times are 10 µs apart.
func feed(t *testing.T, r *Recorder, n int) {
	t.Helper()
	feedRounds(t, r, n, func(i int) uint32 { return uint32(i + 1) })
}

func feedRounds(t *testing.T, r *Recorder, n int, number func(int) uint32) {
	t.Helper()
	sw, err := trace.NewStreamWriterTo(r, 1, &trace.Head{Arch: "amd64", Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	call := uint64(0)
	for round := range n {
		for shard := range uint32(2) {
			var payload []byte
			for range 20 {
				call++
				at := call * 10_000
				payload = trace.AppendRecord(payload, &trace.Record{
					Type: trace.RecCall, Op: uint16(event.OpPwrite64), PID: 7, TID: 7 + shard, Enter: at - 5000,
					Exit: at, Ret: 8192, Args: [6]uint64{3, 0, 8192, call},
					Objects: []trace.Object{{FD: 3, Ino: 9, Mode: 0o100644}},
					Pieces:  []trace.Piece{{Arg: 1, Len: 8192, Data: bytes.Repeat([]byte{byte(call)}, 8192)}},
				})
			}
			if err := sw.WriteRecords(trace.Frame{Shard: shard, Round: number(round), Until: call * 10_000},
				payload); err != nil {
				t.Error(err)
				return
			}
		}
	}
}

// slow is a disk that takes its time.
type slow struct {
	bytes.Buffer
	pause time.Duration
}

func (s *slow) Write(b []byte) (int, error) {
	time.Sleep(s.pause)
	return s.Buffer.Write(b)
}

// Dumps that are made while the recording goes on have every call of a stretch of it,
// once, with its content.
func TestDumpWhileRecording(t *testing.T) {
	r, err := start(&Options{Bytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		feed(t, r, 400)
		close(done)
	})
	dumps := 0
	for running := true; running; dumps++ {
		select {
		case <-done:
			running = false
		default:
		}
		w := &slow{pause: 100 * time.Microsecond}
		_, err := r.Dump(w, 2, "test")
		if errors.Is(err, errEmpty) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var first, last, n uint64
		for _, ev := range sealed(t, w.Bytes()) {
			if ev.Kind != event.Call {
				continue
			}
			if n++; first == 0 {
				first = ev.Args[3]
			}
			last = ev.Args[3]
		}
		if n != last-first+1 && n > 0 {
			t.Fatalf("dump %d has %d calls from %d to %d", dumps, n, first, last)
		}
		if first > 1 && n < 100 {
			t.Errorf("dump %d has only %d calls", dumps, n)
		}
		checkBytes(t, w.Bytes())
	}
	wg.Wait()
	if dumps < 2 {
		t.Errorf("%d dumps", dumps)
	}
	if held, _ := r.Held(); held > 2<<20+slackBytes {
		t.Errorf("%d bytes held", held)
	}
}

// waiting is a disk that takes nothing until the recorder has no room left.
type waiting struct {
	bytes.Buffer
	r    *Recorder
	done <-chan struct{} // closed when the recording is over
}

func (w *waiting) Write(b []byte) (int, error) {
	for full := w.Len() > 0; !full; {
		select {
		case <-w.done:
			full = true
		case <-time.After(10 * time.Microsecond):
			w.r.mu.Lock()
			full = w.r.need > 0
			w.r.mu.Unlock()
		}
	}
	return w.Buffer.Write(b)
}

// What a dump is to write is not overwritten while the recording fills all memory.
func TestDumpWhileMemoryIsFull(t *testing.T) {
	r, err := start(&Options{Bytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan struct{})
	go func() {
		feed(t, r, 1000)
		close(done)
	}()
	for last := uint64(0); last < 40_000; {
		w := &waiting{r: r, done: done}
		if _, err := r.Dump(w, 2, "test"); errors.Is(err, errEmpty) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		var numbers []uint64
		for _, ev := range sealed(t, w.Bytes()) {
			if ev.Kind == event.Call {
				numbers = append(numbers, ev.Args[3])
			}
		}
		for i := 1; i < len(numbers); i++ {
			if numbers[i] != numbers[i-1]+1 {
				t.Fatalf("in a dump, call %d follows call %d", numbers[i], numbers[i-1])
			}
		}
		if len(numbers) > 0 {
			last = numbers[len(numbers)-1]
		}
	}
}

// checkBytes checks the content of all calls in a stream.
func checkBytes(t *testing.T, stream []byte) {
	t.Helper()
	fr := trace.NewFrameReader(bytes.NewReader(stream))
	var rec trace.Record
	for {
		f, payload, err := fr.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != trace.FrameRecords {
			continue
		}
		for body, err := range trace.Records(payload) {
			if err == nil {
				err = rec.Decode(body)
			}
			if err != nil {
				t.Fatal(err)
			}
			if rec.Type == trace.RecCall &&
				!bytes.Equal(rec.Pieces[0].Data, bytes.Repeat([]byte{byte(rec.Args[3])}, 8192)) {
				t.Fatalf("content of call %d", rec.Args[3])
			}
		}
	}
}

// failing is a disk that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A dump that fails, or a closed recorder, harms nobody.
func TestDumpFails(t *testing.T) {
	r, err := start(&Options{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	feed(t, r, 10)
	if _, err := r.Dump(failing{}, 1, "test"); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("dump to a full disk: %v", err)
	}
	feed(t, r, 50)
	var b bytes.Buffer
	if _, err := r.Dump(&b, 1, "test"); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.WriteFrame(&trace.Frame{Kind: trace.FrameRecords}, make([]byte, 8)); !errors.Is(err, errClosed) {
		t.Errorf("write to a closed recorder: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// What is older than the age is forgotten, however little it is.
func TestAge(t *testing.T) {
	r, err := start(&Options{Bytes: 64 << 20, Age: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	feed(t, r, 200) // 80 ms, of which the last 20 have 2000 calls
	r.settle()
	var b bytes.Buffer
	if _, err := r.Dump(&b, 1, "test"); err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, ev := range sealed(t, b.Bytes()) {
		if ev.Kind == event.Call {
			calls++
		}
	}
	if calls < 2000 || calls > 2500 {
		t.Errorf("%d calls of the last 20 ms", calls)
	}
}

// A round that is larger than memory cannot be put into order as a whole, and is
// recorded all the same.
func TestRoundLargerThanMemory(t *testing.T) {
	r, err := start(&Options{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	feedRounds(t, r, 100, func(int) uint32 { return 1 }) // 32 MiB
	var b bytes.Buffer
	if _, err := r.Dump(&b, 1, "test"); err != nil {
		t.Fatal(err)
	}
	last := uint64(0)
	for _, ev := range sealed(t, b.Bytes()) {
		if ev.Kind == event.Call {
			last = ev.Args[3]
		}
	}
	if last != 4000 {
		t.Errorf("the last call is %d of 4000", last)
	}
	checkBytes(t, b.Bytes())
}

func TestTooSmall(t *testing.T) {
	if _, err := New(&Options{Bytes: MinBytes - 1}); err == nil {
		t.Error("a recorder that is too small")
	}
}
