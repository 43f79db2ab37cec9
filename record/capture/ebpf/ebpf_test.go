// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// probe is whether the back end works here.
var probe = sync.OnceValue(func() error { return Probe(&capture.Options{RingBytes: minRingBytes}) })

// need skips a test where the back end does not work.
func need(t testing.TB) {
	t.Helper()
	if err := probe(); err != nil {
		testenv.Lacks(t, err.Error())
	}
}

// call is a call with all that was recorded of it.
type call struct {
	trace.Record
	spec *event.Spec
	data map[uint8][]byte // content by argument
	more bool             // DataLast is missing
	gap  int64            // bytes missing
	omit int64            // bytes not wanted
	held bool             // has content that the recorder read
}

// recording is a decoded stream.
type recording struct {
	head   *trace.Head
	end    bool
	calls  []*call
	others []trace.Record
	frames []trace.Frame
	lost   uint64 // by frame headers
	torn   error
}

func (r *recording) op(op event.Op) []*call {
	var c []*call
	for _, x := range r.calls {
		if event.Op(x.Op) == op {
			c = append(c, x)
		}
	}
	return c
}

func (r *recording) of(kind trace.RecordType) []trace.Record {
	var c []trace.Record
	for _, x := range r.others {
		if x.Type == kind {
			c = append(c, x)
		}
	}
	return c
}

type key struct {
	tid   uint32
	enter uint64
}

func decode(t testing.TB, stream []byte) *recording {
	t.Helper()
	r := &recording{}
	fr := trace.NewFrameReader(bytes.NewReader(stream))
	byKey, entered := map[key]*call{}, map[key]trace.Record{}
	announced := map[uint32]bool{}
	var until, complete uint64 // of this round, of those before
	round := uint32(0)
	for {
		f, payload, err := fr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			r.torn = err
			break
		}
		switch f.Kind {
		case trace.FrameHead:
			if r.head, err = trace.ReadHead(payload); err != nil {
				t.Fatal(err)
			}
			continue
		case trace.FrameEnd:
			r.end = true
			continue
		}
		r.frames = append(r.frames, f)
		if f.Round != round {
			round, complete = f.Round, max(complete, until)
		}
		until = max(until, f.Until)
		r.lost += f.Lost
		own := int(f.Shard) == r.head.Shards-1
		payload = bytes.Clone(payload)
		for body, err := range trace.Records(payload) {
			if err != nil {
				t.Fatal(err)
			}
			var rec trace.Record
			if err := rec.Decode(body); err != nil {
				t.Fatalf("record: %v", err)
			}
			k := key{rec.TID, rec.Enter}
			if at := max(rec.Exit, rec.Enter); !own && rec.Type != trace.RecData && rec.Type != trace.RecEnter &&
				at < complete {
				t.Errorf("record type %d came %d ns late", rec.Type, complete-at)
			}
			if !own && (rec.Type == trace.RecCall || rec.Type == trace.RecExit) && !announced[rec.TID] {
				t.Errorf("thread %d: record type %d before its RecTask", rec.TID, rec.Type)
			}
			switch rec.Type {
			case trace.RecCall:
				c := &call{Record: rec, spec: event.Lookup(event.Op(rec.Op)), data: map[uint8][]byte{},
					more: rec.Flags&trace.CallMore != 0}
				if e, ok := entered[k]; ok {
					c.add(t, e.Pieces)
				}
				c.add(t, rec.Pieces)
				byKey[k] = c
				r.calls = append(r.calls, c)
			case trace.RecData:
				c := byKey[k]
				if c == nil {
					t.Errorf("RecData of no call: tid %d enter %d", rec.TID, rec.Enter)
					continue
				}
				if !c.more {
					t.Errorf("RecData after the last of %s", c.spec.Name)
				}
				c.held = c.held || own
				c.add(t, rec.Pieces)
				if rec.Flags&trace.DataLast != 0 {
					c.more = false
				}
			case trace.RecEnter:
				entered[k] = rec
			case trace.RecTask:
				announced[rec.TID] = true
				fallthrough
			default:
				r.others = append(r.others, rec)
			}
		}
	}
	slices.SortStableFunc(r.calls, func(a, b *call) int { return cmp.Compare(a.Exit, b.Exit) })
	for _, c := range r.calls {
		if c.more && r.torn == nil && r.lost == 0 {
			t.Errorf("%s by %d: data records are missing", c.spec.Name, c.TID)
		}
	}
	return r
}

func (c *call) add(t testing.TB, pieces []trace.Piece) {
	for _, p := range pieces {
		switch {
		case p.Flags&trace.PieceShape != 0:
		case p.Flags&trace.PieceMissing != 0:
			c.gap += int64(p.Len)
			if p.Len == 0 {
				c.gap++
			}
		case p.Flags&trace.PieceOmitted != 0:
			c.omit += int64(p.Len)
		default:
			if uint64(len(c.data[p.Arg])) != p.Off {
				t.Errorf("%s: piece at %d after %d bytes", c.spec.Name, p.Off, len(c.data[p.Arg]))
			}
			c.data[p.Arg] = append(c.data[p.Arg], p.Data...)
		}
	}
}

// record runs a command and decodes what was recorded.
func record(t testing.TB, o *capture.Options, argv ...string) (*recording, *capture.Result) {
	t.Helper()
	var b bytes.Buffer
	r, res := recordTo(t, o, &b, &b, argv...)
	return r, res
}

func recordTo(t testing.TB, o *capture.Options, w io.Writer, b *bytes.Buffer, argv ...string) (*recording,
	*capture.Result) {
	t.Helper()
	need(t)
	o.Command = argv
	sw, err := trace.NewStreamWriter(w, 1, &trace.Head{Backend: name, Arch: "amd64", Shards: Shards(o)})
	if err != nil {
		t.Fatal(err)
	}
	res, err := Backend{}.Run(context.Background(), o, sw)
	if err != nil {
		t.Fatal(err)
	}
	_ = sw.Close(&trace.End{})
	return decode(t, b.Bytes()), res
}

// losses says what was lost, and why.
func losses(r *recording) string {
	list := []string{fmt.Sprintf("%d: the ring was full", r.lost)}
	for _, x := range r.of(trace.RecLoss) {
		list = append(list, fmt.Sprintf("%d: %s", x.Count, trace.LossReason(x.Reason)))
	}
	return strings.Join(list, ", ")
}

// build compiles a C program of testdata.
func build(t testing.TB, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	if b, err := exec.Command("cc", "-O1", "-o", out, filepath.Join("testdata", name+".c"),
		"-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, b)
	}
	return out
}

func text(c *call, arg uint8) string { return string(c.data[arg]) }

func TestShell(t *testing.T) {
	dir := t.TempDir()
	r, res := record(t, &capture.Options{Dir: dir}, "sh", "-c",
		"printf 'hello\\n' | tr a-z A-Z > out; cat out out > both; exit 3")
	if res.ExitStatus != 3 || res.Lost != 0 {
		t.Errorf("result %+v", res)
	}
	if len(r.calls) == 0 || event.Op(r.calls[0].Op) != event.OpExecve {
		t.Fatalf("%d calls; the first is not execve", len(r.calls))
	}
	if uint64(len(r.calls)) != res.Events {
		t.Errorf("%d calls in the stream, %d counted", len(r.calls), res.Events)
	}
	first := r.calls[0]
	if got := text(first, 1); got != "sh\x00-c\x00printf 'hello\\n' | tr a-z A-Z > out; cat out out > both; exit 3" {
		t.Errorf("argv of the command: %q", got)
	}
	found := map[string]bool{}
	for _, c := range r.calls {
		if c.gap > 0 {
			t.Errorf("%s %v: %d bytes missing", c.spec.Name, c.Args, c.gap)
		}
		if event.Op(c.Op) == event.OpWrite {
			found[text(c, 1)] = true
		}
	}
	for _, want := range []string{"hello\n", "HELLO\n"} {
		if !found[want] {
			t.Errorf("no write of %q", want)
		}
	}
	if n := len(r.of(trace.RecStart)); n != 1 {
		t.Errorf("%d RecStart", n)
	}
	forks, exits := r.of(trace.RecFork), r.of(trace.RecExit)
	if len(exits) != len(forks)+1 {
		t.Errorf("%d forks, %d exits", len(forks), len(exits))
	}
	if testing.Verbose() {
		for _, c := range r.calls {
			t.Log(c.describe())
		}
		for _, o := range r.others {
			t.Logf("%d pid %d tid %d: ppid %d pgid %d sid %d uid %d comm %s ret %x child %d share %x objects %v "+
				"pieces %v", o.Type, o.PID, o.TID, o.PPID, o.PGID, o.SID, o.UID, bytes.TrimRight(o.Comm[:],
				"\x00"), o.Ret, o.Child, o.Share, o.Objects, o.Pieces)
		}
	}
}

func (c *call) describe() string {
	s := fmt.Sprintf("%d %s(%x) = %d [%d ns]", c.TID, c.spec.Name, c.Args, c.Ret, c.Exit-c.Enter)
	for a, d := range c.data {
		if len(d) > 64 {
			d = d[:64]
		}
		s += fmt.Sprintf(" arg%d=%q", a, d)
	}
	for _, o := range c.Objects {
		s += fmt.Sprintf(" obj%d{fd %d ino %d size %d pos %d dev %x mode %o flags %o nlink %d}", o.Arg, o.FD, o.Ino,
			o.Size, o.Pos, o.Dev, o.Mode, o.Flags, o.Nlink)
	}
	return s
}
