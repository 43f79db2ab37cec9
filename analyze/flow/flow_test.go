// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// maker makes tapes of a few calls.
type maker struct {
	t     *testing.T
	names []string
}

// call is a call of a thread, at some ms.
type call struct {
	op      event.Op
	tid     uint32
	at      int64
	file    string       // TCP:[…] or a path; a path's length is the number of its inode
	open    event.OpenID // 0: 5
	offset  int64
	content string
	n       int64 // of content that is not there, what ftruncate leaves, or what a read asks for that gets nothing
}

const ms = 1_000_000

// tape makes a tape of one host. kept says whether the content is in it.
func (m *maker) tape(host string, wall int64, kept bool, calls ...call) {
	m.t.Helper()
	dir := filepath.Join(m.t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, c := range calls {
		f := event.File{Open: cmp.Or(c.open, 5), FD: 5, Path: c.file}
		if !strings.HasPrefix(c.file, "TCP") {
			f.Known, f.Dev, f.Ino, f.Mode = true, 1, uint64(len(c.file)), 0o100644
		}
		n := max(int64(len(c.content)), c.n)
		ev := event.Event{Op: c.op, PID: 1, TID: c.tid, Enter: c.at * ms, Exit: c.at*ms + ms/2, Ret: n, Offset: -1,
			Count: n, Comm: host, Files: []event.File{f}}
		if c.file[0] == '/' {
			ev.Offset = c.offset
		}
		dir := event.In
		switch c.op {
		case event.OpPread64:
			if dir = event.Out; c.content == "" {
				ev.Ret, n = 0, 0
			}
		case event.OpRecvfrom:
			dir = event.Out
		case event.OpConnect:
			ev.Ret, n = 0, 0
		case event.OpFtruncate:
			ev.Ret, ev.Args[1], n = 0, uint64(c.n), 0
		case event.OpUnlink:
			ev.Ret, ev.Files, ev.Paths, n = 0, nil, []event.Path{{Abs: c.file}}, 0
		}
		if n > 0 {
			b := event.Buf{Arg: 1, Dir: dir, Kind: event.KindBuf, Len: n, Omitted: !kept}
			if kept && len(c.content) <= 64 {
				b.Inline = []byte(c.content)
			} else if kept {
				id, err := tw.AddChunk([]byte(c.content))
				if err != nil {
					m.t.Fatal(err)
				}
				b.Refs = []event.Ref{{Chunk: id, Len: uint32(len(c.content))}}
			}
			ev.Bufs = []event.Buf{b}
		}
		if err := tw.Write(&ev); err != nil {
			m.t.Fatal(err)
		}
	}
	content := "none"
	if kept {
		content = "full"
	}
	h := trace.Host{Head: trace.Head{Host: host, Arch: "amd64", BootID: host, WallNS: wall, Content: content}}
	if err := tw.Close(&trace.Manifest{Program: "test", Hosts: []trace.Host{h}}); err != nil {
		m.t.Fatal(err)
	}
	m.names = append(m.names, dir)
}

const (
	fromA = "TCP:[10.0.0.1:4000->10.0.0.2:80]"
	fromB = "TCP:[10.0.0.2:80->10.0.0.1:4000]"
	text  = "the content of a message that is long enough"
)

// conversation is a message from a to b that is stored there.
func conversation(m *maker, ahead int64, connect, kept bool) {
	a := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromA},
		{op: event.OpSendto, tid: 1, at: 2, file: fromA, content: text}}
	if !connect {
		a = a[1:]
	}
	m.tape("a", 1_000*ms, kept, a...)
	m.tape("b", 1_000*ms+ahead, kept,
		call{op: event.OpRecvfrom, tid: 1, at: 3, file: fromB, content: text},
		call{op: event.OpPwrite64, tid: 1, at: 4, file: "/store", content: text},
		call{op: event.OpSendto, tid: 1, at: 5, file: fromB, content: "ok"})
}

func has(t *testing.T, f *flow.Flow, note string) {
	t.Helper()
	if !slices.ContainsFunc(f.Notes(), func(s string) bool { return strings.Contains(s, note) }) {
		t.Errorf("nothing says %q: %q", note, f.Notes())
	}
}

func TestWithoutContent(t *testing.T) {
	m := &maker{t: t}
	conversation(m, 0, true, false)
	f := load(t, nil, m.names...)
	has(t, f, "the tapes have no content")
	if got := steps(f, path(t, f, "1:1", "")); got != ">10.0.0.1:4000->10.0.0.2:80 <10.0.0.1:4000->10.0.0.2:80" {
		t.Errorf("the way is %s", got)
	}
	expect(t, f, nil, "unknown == 4 and moves == 4 and wrong == 0")
}

func TestMissingHost(t *testing.T) {
	m := &maker{t: t}
	conversation(m, 0, true, true)
	f := load(t, nil, m.names[1])
	has(t, f, "2 streams with one side only")
	expect(t, f, nil, "dangling == 2 and wrong == 0")
	if got := steps(f, path(t, f, "0", "")); !strings.HasSuffix(got, " >store") {
		t.Errorf("the way is %s", got)
	}
}

func TestClocksHoursApart(t *testing.T) {
	for _, ahead := range []int64{5 * 3600_000 * ms, -5 * 3600_000 * ms} {
		m := &maker{t: t}
		conversation(m, ahead, true, true)
		f := load(t, nil, m.names...)
		has(t, f, "is not known: no messages both ways")
		expect(t, f, nil, "contradictions == 0 and wrong == 0")
		if got := steps(f, path(t, f, "1:1",
			"/store")); got != ">10.0.0.1:4000->10.0.0.2:80 <10.0.0.1:4000->10.0.0.2:80 >store" {
			t.Errorf("ahead by %d: the way is %s", ahead, got)
		}
	}
}

// TestInodeAgain: a file that gets the inode of a removed one is another file. Who has the
// removed one open still uses that.
func TestInodeAgain(t *testing.T) {
	m := &maker{t: t}
	m.tape("a", 1_000*ms, true,
		call{op: event.OpPwrite64, tid: 1, at: 1, file: "/old", content: text},
		call{op: event.OpUnlink, tid: 1, at: 2, file: "/old"},
		call{op: event.OpPwrite64, tid: 1, at: 3, file: "/new", open: 6, content: text},
		call{op: event.OpPwrite64, tid: 1, at: 4, file: "/old", offset: 100, content: text},
		call{op: event.OpUnlink, tid: 1, at: 5, file: "/new"},
		call{op: event.OpPwrite64, tid: 1, at: 6, file: "/end", open: 7, content: text})
	f := load(t, nil, m.names...)
	var got []string
	for id := range f.Len() {
		got = append(got, f.Move(id).Object.Name)
	}
	// The second and the fifth are the removals.
	if want := []string{"/old", "/old", "/new", "/old", "/new", "/end"}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

// TestBegunBefore has a connection whose beginning is not in the tapes: content connects
// its two sides, and it is said.
func TestBegunBefore(t *testing.T) {
	m := &maker{t: t}
	conversation(m, 0, false, true)
	f := load(t, nil, m.names...)
	has(t, f, "1 stream whose beginning is not in the tapes")
	if got := steps(f, path(t, f, "1:0",
		"/store")); got != ">10.0.0.1:4000->10.0.0.2:80 <10.0.0.1:4000->10.0.0.2:80 >store" {
		t.Errorf("the way is %s", got)
	}
}

func TestTwice(t *testing.T) {
	m := &maker{t: t}
	conversation(m, 0, true, true)
	var tapes []*trace.Tape
	for _, name := range []string{m.names[0], m.names[1], m.names[0]} {
		tape, err := trace.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		tapes = append(tapes, tape)
	}
	if _, err := flow.Load(t.Context(), tapes, nil); err == nil || !strings.Contains(err.Error(), "is there twice") {
		t.Errorf("%v", err)
	}
}

// TestMissingFields imports logs that lack this and that.
func TestMissingFields(t *testing.T) {
	log := `{"timestamp":1525880628000,"type":"SND","thread":"1@a","src":"10.0.0.1","src_port":1000,"dst":"10.0.0.2","dst_port":80,"socket":"x","socket_type":"TCP","size":10}
{"timestamp":1525880628001,"type":"RCV","thread":"2@b","src":"10.0.0.1","src_port":1000,"dst":"10.0.0.2","dst_port":80,"socket":"x","socket_type":"TCP"}
{"timestamp":1525880628002,"type":"RCV","thread":"2@b","size":3}
{"timestamp":1525880628003,"type":"WR","thread":"2@b","data":{"filename":"/f","size":5,"returned_value":5}}
{"timestamp":1525880628004,"type":"RD","thread":"2@b","data":{"filename":"/f","fd":3,"size":5,"offset":0,"returned_value":5,"signature":[1,2]}}
{"timestamp":1525880628005,"type":"SND","thread":"1@a"}
`
	f := loadLog(t, log)
	has(t, f, "the tapes have no content")
	for id := range f.Len() {
		f.Before(id)
		f.After(id)
	}
}

// loadLog imports a log of CAT.
func loadLog(t *testing.T, log string) *flow.Flow {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(name, []byte(log), 0o666); err != nil {
		t.Fatal(err)
	}
	tapes, _ := formattest.Import(t, &catlog.Format, name)
	f, err := flow.Load(t.Context(), slices.Collect(maps.Values(tapes)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiles has what is read from a file come from who wrote it last, by offsets, until
// it is cut off; and finds what is not as it was written.
func TestFiles(t *testing.T) {
	m := &maker{t: t}
	long := strings.Repeat("0123456789", 20)
	m.tape("a", 0, true,
		call{op: event.OpPwrite64, tid: 1, at: 1, file: "/f", content: long},
		call{op: event.OpPwrite64, tid: 2, at: 2, file: "/f", offset: 50, content: "between"},
		call{op: event.OpPread64, tid: 1, at: 3, file: "/f", offset: 40,
			content: long[40:50] + "between" + long[57:60]},
		call{op: event.OpPread64, tid: 1, at: 4, file: "/f", offset: 40,
			content: long[40:50] + "BETWEEN" + long[57:60]},
		call{op: event.OpFtruncate, tid: 1, at: 5, file: "/f", n: 50},
		call{op: event.OpPread64, tid: 1, at: 6, file: "/f", offset: 40, content: long[40:50] + "-------"})
	f := load(t, nil, m.names...)
	for _, c := range []struct {
		event string
		want  []flow.Edge
	}{
		{"2", []flow.Edge{{From: 0, Bytes: 13, FromOff: 40}, {From: 1, Bytes: 7, Off: 10}}},
		{"5", []flow.Edge{{From: 0, Bytes: 10, FromOff: 40}}},
	} {
		ids, err := f.Select(c.event)
		if err != nil {
			t.Fatal(err)
		}
		got := f.Before(ids[0])
		if len(got) != len(c.want) {
			t.Fatalf("event %s: %+v", c.event, got)
		}
		for i, w := range c.want {
			if g := got[i]; g.Why != flow.Stored || f.Move(g.From).Event != w.From || g.Bytes != w.Bytes ||
				g.FromOff != w.FromOff || g.Off != w.Off {
				t.Errorf("event %s: %+v, want %+v", c.event, g, w)
			}
		}
	}
	expect(t, f, nil, "corrupted == 1 and wrong == 1")
	x := f.Findings()[0]
	if d := x.Diff; d.First != 10 || d.Differ != 7 || string(d.After[d.Context:][:7]) != "BETWEEN" ||
		string(d.Before[d.Context:][:7]) != "between" {
		t.Errorf("%s %+v", x.Text, d)
	}
}

func TestExpect(t *testing.T) {
	m := &maker{t: t}
	conversation(m, 0, true, true)
	f := load(t, nil, m.names...)
	for expr, want := range map[string]bool{
		"hosts == 2": true, "hosts = 2 and wrong == 0": true, "hosts != 2 or moves < 1": false, "not wrong": true, "hosts in {1, 2}": true, "bytes >= 1K": false, "moves 1..4": false,
	} {
		x, err := predicate.Parse(expr)
		if err == nil {
			var got bool
			if got, err = f.Expect(x, nil); err == nil && got != want {
				t.Errorf("%s: %v", expr, got)
			}
		}
		if (err != nil) != (expr == "moves 1..4") {
			t.Errorf("%s: %v", expr, err)
		}
	}
	for _, expr := range []string{"replica == 3", "hosts startsWith 2", "hosts == x", "descendant of 3"} {
		x, err := predicate.Parse(expr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Expect(x, nil); err == nil {
			t.Errorf("%s is understood", expr)
		}
	}
}

func TestReadable(t *testing.T) {
	random := make([]byte, 4096)
	s := uint64(1)
	for i := range random {
		s = s*6364136223846793005 + 1442695040888963407
		random[i] = byte(s >> 56)
	}
	for _, n := range []int{64, 100, 256, 1000, 4096} {
		if flow.Readable(random[:n]) {
			t.Errorf("%d random bytes can be read", n)
		}
		if !flow.Readable([]byte(strings.Repeat("the quick brown fox ", 300)[:n])) {
			t.Errorf("%d bytes of text cannot be read", n)
		}
	}
}
