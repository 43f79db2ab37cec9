// SPDX-License-Identifier: Apache-2.0

package rotate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/rotate"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/merge"
)

// program has processes that share descriptors, files that stay open, changes of directory, and names that move.
const program = `mkdir -p a/b; exec 3>a/log 4<a/log 5<>a/both
i=0
while [ $i -lt ${ROUNDS:-12} ]; do
	i=$((i+1))
	echo line $i >&3
	(cd a/b && echo $i >f$((i%7)) && cat f$((i%7)) >&5)
	read x <&4
	cat nothing 2>/dev/null
	dd if=/dev/zero of=big bs=70000 count=1 2>/dev/null
	[ $((i%5)) = 0 ] && mv a/b/f$((i%7)) a/g && ln -sf g a/l && cat a/l | tr 0-9 a-j >h$i
done
exit 0
`

// recorded records the program, and returns its stream.
func recorded(t *testing.T, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	args = append(append([]string{"record"}, args...), "--keep-stream", "--no-index", "-o", "s.tape", "--", "sh", "-c",
		program)
	cmd := exec.Command(testenv.Iotape(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "s.stream"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// file is a part in memory.
type file struct {
	bytes.Buffer
	full    bool
	settled int64
}

func (f *file) Settled(length int64) error {
	f.settled = max(f.settled, length)
	return nil
}

func (f *file) Cut(length int64) error {
	if length < f.settled {
		return fmt.Errorf("cut at %d, and %d bytes are settled", length, f.settled)
	}
	f.Truncate(int(length))
	return nil
}

// split divides a stream.
func split(t *testing.T, stream []byte, o rotate.Options) []*file {
	t.Helper()
	var parts []*file
	o.Open = func(part int) (rotate.File, error) {
		if part != len(parts)+1 {
			t.Errorf("part %d comes behind %d parts", part, len(parts))
		}
		parts = append(parts, &file{})
		return parts[part-1], nil
	}
	o.Full = func(part int) error {
		parts[part-1].full = true
		return nil
	}
	o.Now = func() (int64, int64) { return 1, 2 }
	s := rotate.New(&o)
	fr := trace.NewFrameReader(bytes.NewReader(stream))
	for {
		f, payload, err := fr.Next()
		if err != nil {
			break
		}
		var h [trace.FrameHeaderBytes]byte
		f.Put(h[:], payload)
		for _, b := range [][]byte{h[:], payload} {
			if _, err := s.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return parts
}

// sealed makes a tape of a stream.
func sealed(t *testing.T, stream []byte) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	st, err := seal.Seal(t.Context(), bytes.NewReader(stream), tw, nil)
	if err != nil {
		t.Fatal(err)
	}
	if st.Damage != nil || st.Lost > 0 || st.End == nil {
		t.Errorf("sealed with damage %v, %d lost, end %v", st.Damage, st.Lost, st.End)
	}
	return closed(t, dir, tw, st.Manifest("test"))
}

// closed completes a tape, and opens it.
func closed(t *testing.T, dir string, tw *trace.TapeWriter, m *trace.Manifest) *trace.Tape {
	t.Helper()
	if err := tw.Close(m); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

// texts returns the events of a tape, with their content.
func texts(t *testing.T, tape *trace.Tape) (all []string) {
	t.Helper()
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		x := *ev
		x.Bufs, x.Stack = nil, nil
		s := fmt.Sprintf("%+v", x)
		if ev.Stack != nil {
			s += fmt.Sprintf(" %+v", *ev.Stack)
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			content, missing, err := tape.ContentZero(b, nil)
			s += fmt.Sprintf(" %d:%d-%d-%v %q %d %v", b.Arg, b.Len, b.Missing, b.Omitted, content, missing, err)
		}
		all = append(all, s)
	}
	return all
}

// joined checks that the parts, merged in whatever order they are named, are the whole.
func joined(t *testing.T, whole []string, parts []*file) {
	t.Helper()
	var tapes []*trace.Tape
	for i, p := range parts {
		if last := i == len(parts)-1; p.full == last {
			t.Errorf("part %d of %d is full: %t", i+1, len(parts), p.full)
		}
		tape := sealed(t, p.Bytes())
		h := tape.Host(0)
		if h.Rotation == nil || h.Rotation.Part != i+1 || (h.Window != nil) != (i > 0) {
			t.Errorf("part %d has the rotation %+v and the window %+v", i+1, h.Rotation, h.Window)
		}
		described(t, i+1, tape)
		tapes = append(tapes, tape)
	}
	slices.Reverse(tapes)
	dir := filepath.Join(t.TempDir(), "all.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	m, err := merge.Tapes(t.Context(), tw, tapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	tape := closed(t, dir, tw, m)
	if h := tape.Host(0); len(m.Hosts) != 1 || h.Rotation != nil || h.Window != nil {
		t.Errorf("merged: %d hosts, rotation %+v, window %+v; want one whole recording", len(m.Hosts), h.Rotation,
			h.Window)
	}
	all, bad := texts(t, tape), 0
	for i := range min(len(all), len(whole)) {
		if all[i] != whole[i] && bad < 4 {
			bad++
			t.Errorf("event %d:\ngot  %.2000s\nwant %.2000s", i, all[i], whole[i])
		}
	}
	if len(all) != len(whole) {
		t.Errorf("%d events in %d parts, want %d", len(all), len(parts), len(whole))
	}
}

// described checks that a part says of each process with calls where it runs, as the whole does.
func described(t *testing.T, part int, tape *trace.Tape) {
	t.Helper()
	var known facts.Tracker
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		known.See(ev)
		started := ev.Op == event.OpExecve // of which the first process is described by its end
		if ev.Kind == event.Call && !started && known.Of(ev.Host, ev.PID) == nil {
			t.Errorf("part %d does not say where process %d runs, which calls %s", part, ev.PID, ev.Op)
			return
		}
	}
}

func TestSplit(t *testing.T) {
	testenv.Short(t, "it seals each part")
	t.Run("ptrace", func(t *testing.T) { splitBy(t, "ptrace") })
	t.Run("ebpf", func(t *testing.T) {
		testenv.NeedBPF(t)
		splitBy(t, "ebpf")
	})
}

// TestSplitStacks: a call and its stack are in one part.
func TestSplitStacks(t *testing.T) {
	stream := recorded(t, "--backend", "ptrace", "--mmap", "off", "--stacks=op = openat")
	whole := texts(t, sealed(t, stream))
	joined(t, whole, split(t, stream, rotate.Options{Bytes: int64(len(stream)/3 + 1000)}))
}

func splitBy(t *testing.T, backend string) {
	stream := recorded(t, "--backend", backend, "--mmap", "off")
	tape := sealed(t, stream)
	whole := texts(t, tape)
	for _, n := range []int{1, 3, 12} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			parts := split(t, stream, rotate.Options{Bytes: int64(len(stream)/n + 1000)})
			t.Logf("%d events in %d parts", len(whole), len(parts))
			joined(t, whole, parts)
		})
	}
	t.Run("by time", func(t *testing.T) {
		length := time.Duration(tape.Manifest().LastNS - tape.Manifest().FirstNS)
		joined(t, whole, split(t, stream, rotate.Options{Every: length / 4}))
	})
}

// TestMergeRefuses names parts of one recording between which one is missing, or that are the same.
func TestMergeRefuses(t *testing.T) {
	var parts []*file
	for rounds := 12; len(parts) < 3; rounds *= 2 { // a part has at least a frame, of which there may be few
		if rounds > 2000 {
			t.Fatalf("%d parts, want 3 or more", len(parts))
		}
		t.Setenv("ROUNDS", strconv.Itoa(rounds))
		stream := recorded(t, "--backend", "ptrace", "--mmap", "off")
		parts = split(t, stream, rotate.Options{Bytes: int64(len(stream)/5 + 1000)})
	}
	var tapes []*trace.Tape
	for _, p := range parts {
		tapes = append(tapes, sealed(t, p.Bytes()))
	}
	for _, list := range [][]*trace.Tape{{tapes[0], tapes[2]}, {tapes[1], tapes[1]}} {
		tw, err := trace.CreateTape(filepath.Join(t.TempDir(), "x.tape"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := merge.Tapes(t.Context(), tw, list, nil); err == nil {
			t.Error("merged")
		}
		tw.Abort()
	}
}
