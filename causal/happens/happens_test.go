// SPDX-License-Identifier: Apache-2.0

package happens

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/trace"
)

// write makes a tape of the events of some hosts.
func write(t testing.TB, hosts []trace.Host, events []event.Event) *trace.Tape {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "x.tape")
	tw, err := trace.CreateTape(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := tw.Write(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Program: "test", Hosts: hosts}); err != nil {
		t.Fatal(err)
	}
	tape, err := trace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tape.Close() })
	return tape
}

func host(name string, wall int64) trace.Host {
	return trace.Host{Head: trace.Head{Host: name, Arch: "amd64", BootID: name, WallNS: wall}}
}

func load(t testing.TB, tapes ...*trace.Tape) *Order {
	t.Helper()
	o, err := Load(tapes)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// checkSchedule fails if an event is not there once, or stands before one that happened
// before it.
func checkSchedule(t testing.TB, o *Order) {
	t.Helper()
	place := make([]int, o.Len())
	for i := range place {
		place[i] = -1
	}
	for at, i := range o.Schedule() {
		if place[i] >= 0 {
			t.Fatalf("event %d is there twice", i)
		}
		place[i] = at
	}
	if len(o.Schedule()) != o.Len() {
		t.Fatalf("%d events of %d", len(o.Schedule()), o.Len())
	}
	last := map[int]int{}
	for i := range o.Len() {
		from, _ := o.Before(i)
		for _, f := range from {
			if place[f] > place[i] && o.Circular() == 0 {
				t.Fatalf("event %d stands behind %d, which it comes before", f, i)
			}
		}
		if k, ok := last[o.Line(i)]; ok && place[k] > place[i] && o.Circular() == 0 {
			t.Fatalf("events %d and %d of one thread are the wrong way round", k, i)
		}
		last[o.Line(i)] = i
	}
}

// falconEvent is a line of Falcon's log.
type falconEvent struct {
	Type, Thread, Child, Socket, Src, Dst string
	Timestamp                             int64
	SrcPort                               int `json:"src_port"`
	DstPort                               int `json:"dst_port"`
	Size                                  int64
}

// falcon imports a log and returns its order, the log's events, and the position of each.
func falcon(t *testing.T, log []byte) (o *Order, events []falconEvent, position []int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "falcon.log")
	if err := os.WriteFile(path, log, 0o666); err != nil {
		t.Fatal(err)
	}
	tapes, _ := formattest.Import(t, &catlog.Format, path)
	var list []*trace.Tape
	for _, name := range slices.Sorted(maps.Keys(tapes)) {
		list = append(list, tapes[name])
	}
	o = load(t, list...)
	threads := map[string][]int{}
	for line := range bytes.Lines(log) {
		var e falconEvent
		if json.Unmarshal(line, &e) == nil && e.Type != "" {
			threads[e.Thread] = append(threads[e.Thread], len(events))
			events = append(events, e)
		}
	}
	for _, list := range threads {
		slices.SortStableFunc(list, func(a, b int) int { return int(events[a].Timestamp - events[b].Timestamp) })
	}
	position = make([]int, len(events))
	next := map[string]int{}
	for i := range o.Len() {
		if !o.Counts(i) {
			continue
		}
		l := o.Lines()[o.Line(i)]
		name := fmt.Sprintf("%d@%s", l.TID, o.Hosts()[l.Host].Host)
		if next[name] >= len(threads[name]) {
			t.Fatalf("event %d of %s is not in the log", i, name)
		}
		position[threads[name][next[name]]] = i
		next[name]++
	}
	return o, events, position
}

// TestFalcon is the log of ZooKeeper that Falcon published: every constraint of its model
// holds, and the clocks are those of the longest-path layering, which is what the solver
// finds.
func TestFalcon(t *testing.T) {
	f, err := os.Open("testdata/zookeeper.log.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	o, events, position := falcon(t, log)
	checkSchedule(t, o)
	n, sum, most := 0, uint32(0), uint32(0)
	for i := range o.Len() {
		if o.Counts(i) {
			n++
			sum += o.Clock(i)
			most = max(most, o.Clock(i))
		}
	}
	if n != 688 || sum != 58435 || most != 187 {
		t.Errorf("%d events, clocks to %d, in sum %d; want 688, 187 and 58435", n, most, sum)
	}

	constraints := 0
	before := func(a, b int, rule string) {
		constraints++
		if !o.HappenedBefore(position[a], position[b]) || o.Clock(position[a]) >= o.Clock(position[b]) {
			t.Errorf("%s: %+v is not before %+v", rule, events[a], events[b])
		}
		if o.HappenedBefore(position[b], position[a]) {
			t.Errorf("%s: %+v is after %+v, too", rule, events[a], events[b])
		}
	}
	threads, starts, asked := map[string][]int{}, map[string]int{}, map[string]int{}
	type piece struct {
		event    int
		from, to int64
	}
	sent, got := map[string][]piece{}, map[string][]piece{}
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(events[a].Timestamp - events[b].Timestamp) })
	for _, i := range order {
		e := &events[i]
		threads[e.Thread] = append(threads[e.Thread], i)
		channel := fmt.Sprint(e.Src, e.SrcPort, e.Dst, e.DstPort)
		put := func(all map[string][]piece) {
			at := int64(0)
			if list := all[channel]; len(list) > 0 {
				at = list[len(list)-1].to
			}
			all[channel] = append(all[channel], piece{i, at, at + e.Size})
		}
		switch e.Type {
		case "START":
			starts[e.Thread] = i
		case "CONNECT":
			asked[e.Socket] = i
		case "SND":
			put(sent)
		case "RCV":
			put(got)
		}
	}
	for _, list := range threads {
		for k := 1; k < len(list); k++ {
			before(list[k-1], list[k], "program order")
		}
	}
	for i := range events {
		switch e := &events[i]; e.Type {
		case "CREATE":
			if s, ok := starts[e.Child]; ok {
				before(i, s, "CREATE before START")
			}
		case "JOIN":
			if list := threads[e.Child]; len(list) > 0 {
				before(list[len(list)-1], i, "the last before JOIN")
			}
		case "ACCEPT":
			if c, ok := asked[e.Socket]; ok {
				before(c, i, "CONNECT before ACCEPT")
			}
		}
	}
	for channel, list := range got {
		for _, r := range list {
			for _, s := range sent[channel] {
				if s.from < r.to && r.from < s.to {
					before(s.event, r.event, "SND before RCV")
				}
			}
		}
	}
	if constraints != 806 {
		t.Errorf("%d constraints, want 806", constraints)
	}
}

// TestInterleaved has two connections whose receives take parts: Falcon gives the second
// part of A's to the send on B.
func TestInterleaved(t *testing.T) {
	var log strings.Builder
	at := 0
	line := func(kind, thread string, port, size int) {
		at++
		fmt.Fprintf(&log, `{"timestamp":%d,"type":%q,"thread":%q,"src":"10.0.0.1","src_port":%d,"dst":"10.0.0.2",`+
			`"dst_port":80,"socket":"%d","socket_type":"TCP","size":%d}`+"\n",
			1525880628000+at, kind, thread, port, port, size)
	}
	line("SND", "1@a", 1000, 10) // 0
	line("RCV", "2@b", 1000, 4)  // 1
	line("SND", "3@a", 2000, 10) // 2
	line("RCV", "4@b", 2000, 10) // 3
	line("RCV", "2@b", 1000, 6)  // 4
	o, _, position := falcon(t, []byte(log.String()))
	for _, c := range []struct {
		a, b int
		want bool
	}{{0, 1, true}, {0, 4, true}, {2, 3, true}, {0, 3, false}, {2, 4, false}, {3, 4, false}, {4, 3, false}} {
		if got := o.HappenedBefore(position[c.a], position[c.b]); got != c.want {
			t.Errorf("event %d before %d: %v", c.a, c.b, got)
		}
	}
}

// TestShared is of Falcon's events on what threads share: locks and notifications.
func TestShared(t *testing.T) {
	var log strings.Builder
	at := 0
	line := func(kind, thread, variable string) {
		at++
		fmt.Fprintf(&log, `{"timestamp":%d,"type":%q,"thread":%q,"variable":%q}`+"\n", 1525880628000+at, kind, thread,
			variable)
	}
	line("LOCK", "1@a", "m")     // 0
	line("LOCK", "1@a", "m")     // 1: again
	line("UNLOCK", "1@a", "m")   // 2
	line("UNLOCK", "1@a", "m")   // 3
	line("LOCK", "2@a", "m")     // 4
	line("UNLOCK", "2@a", "m")   // 5
	line("NOTIFY", "1@a", "c")   // 6
	line("WAIT", "3@a", "c")     // 7
	line("WAIT", "4@a", "c")     // 8: has no notification
	line("LOCK", "5@a", "other") // 9
	o, _, position := falcon(t, []byte(log.String()))
	for _, c := range []struct {
		a, b int
		want bool
	}{{3, 4, true}, {2, 4, true}, {6, 7, true}, {3, 7, true}, {6, 8, false}, {3, 9, false}, {5, 6, false}} {
		if got := o.HappenedBefore(position[c.a], position[c.b]); got != c.want {
			t.Errorf("event %d before %d: %v", c.a, c.b, got)
		}
	}
}

// conversation is a request and an answer between two hosts whose clocks are not the
// same, each message under way for 1 ms.
func conversation(t *testing.T, ahead int64) (client, server *trace.Tape) {
	const ms = 1_000_000
	from := []event.File{{Open: 5, Path: "TCP:[10.0.0.1:4000->10.0.0.2:80]"}}
	to := []event.File{{Open: 5, Path: "TCP:[10.0.0.2:80->10.0.0.1:4000]"}}
	call := func(op event.Op, at, n int64, files []event.File) event.Event {
		return event.Event{Op: op, PID: 1, TID: 1, Enter: at, Exit: at, Ret: n, Files: files, Offset: -1, Count: -1}
	}
	client = write(t, []trace.Host{host("client", 0)}, []event.Event{
		call(event.OpConnect, 1*ms, 0, from), call(event.OpSendto, 2*ms, 10, from), call(event.OpRecvfrom, 5*ms, 20, from),
	})
	server = write(t, []trace.Host{host("server", ahead)}, []event.Event{
		call(event.OpRecvfrom, 3*ms, 10, to), call(event.OpSendto, 4*ms, 20, to),
	})
	return client, server
}

func TestSkew(t *testing.T) {
	const ms, hours = 1_000_000, 5 * 3600 * 1_000_000_000
	for _, ahead := range []int64{0, hours, -hours} {
		client, server := conversation(t, ahead)
		for _, tapes := range [][]*trace.Tape{{client, server}, {server, client}} {
			o := load(t, tapes...)
			checkSchedule(t, o)
			want := ahead
			if tapes[0] == server {
				want = -ahead
			}
			s := o.Skews()[1]
			if s.NS != want || s.Min != want-ms || s.Max != want+ms || s.Drift {
				t.Errorf("ahead by %d: %+v", want, s)
			}
			if o.Circular() != 0 || o.Faults().Unsents != 0 {
				t.Errorf("ahead by %d: contradictions", want)
			}
		}
	}
}

func TestTwice(t *testing.T) {
	client, _ := conversation(t, 0)
	again := write(t, client.Manifest().Hosts, nil)
	client.Manifest().Hosts[0].WallNS, again.Manifest().Hosts[0].WallNS = 7, 7
	if _, err := Load([]*trace.Tape{client, again}); err == nil ||
		!strings.Contains(err.Error(), "the recording of host client is there twice") {
		t.Errorf("got %v", err)
	}
}

func TestContradictions(t *testing.T) {
	a := []event.File{{Open: 5, Path: "TCP:[10.0.0.1:4000->10.0.0.2:80]"}}
	b := []event.File{{Open: 5, Path: "TCP:[10.0.0.2:80->10.0.0.1:4000]"}}
	call := func(op event.Op, host uint32, at, n int64, files []event.File) event.Event {
		return event.Event{Op: op, Host: host, PID: 1, TID: 1, Enter: at, Exit: at, Ret: n, Files: files, Offset: -1,
			Count: -1}
	}
	hosts := []trace.Host{host("a", 0), host("b", 0)}
	t.Run("a receive whose send is missing", func(t *testing.T) {
		o := load(t, write(t, hosts, []event.Event{
			call(event.OpConnect, 0, 1, 0, a), call(event.OpSendto, 0, 2, 10, a), call(event.OpRecvfrom, 1, 3, 8, b), call(event.OpRecvfrom, 1, 4, 8, b),
		}))
		if f := o.Faults(); f.Unsents != 1 || f.Unsent[0] != (causal.Unsent{Event: 3, Bytes: 6}) {
			t.Errorf("%+v", f)
		}
	})
	t.Run("answers before questions", func(t *testing.T) {
		o := load(t, write(t, hosts, []event.Event{
			call(event.OpConnect, 0, 1, 0, a), call(event.OpRecvfrom, 0, 2, 5, a), call(event.OpSendto, 0, 3, 7, a),
			call(event.OpRecvfrom, 1, 2, 7, b), call(event.OpSendto, 1, 3, 5, b), call(event.OpSync, 1, 4, 0, nil),
		}))
		checkSchedule(t, o)
		c := o.Circle()
		slices.Sort(c)
		if o.Circular() != 5 || !slices.Equal(c, []uint32{1, 2, 3, 4}) {
			t.Errorf("%d events, the circle %v", o.Circular(), c)
		}
	})
	t.Run("a host that is missing", func(t *testing.T) {
		client, _ := conversation(t, 0)
		o := load(t, client)
		if f := o.Faults(); f.Danglings != 2 || f.Unsents != 0 || f.Dangling[0].Event != 1 || !f.Dangling[0].Writes {
			t.Errorf("%+v", f)
		}
	})
}

// TestIndex compares the answers with a search of all paths, with and without vector
// clocks.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 80).Draw(t, "events")
		b := causal.NewBuilder()
		o := &Order{first: []int{0, n}, tapes: make([]*trace.Tape, 1), skew: make([]Skew, 1)}
		reach := make([][]bool, n)
		for i := range n {
			b.Add(&event.Event{Op: event.OpSync, TID: uint32(rapid.IntRange(1, 5).Draw(t, "thread")), PID: 1})
			o.enter, o.exit, o.weight = append(o.enter, int64(i)), append(o.exit, int64(i)), append(o.weight, true)
			reach[i] = make([]bool, n)
		}
		for i := 1; i < n; i++ {
			for _, from := range rapid.SliceOfN(rapid.IntRange(0, i-1), 0, 2).Draw(t, "edges") {
				b.Edge(i, from, causal.Bytes)
				reach[i][from] = true
			}
		}
		o.graph = b.Graph()
		o.number()
		o.arrange()
		for _, room := range []bool{true, false} {
			o.index.build(o)
			if !room {
				for _, joins := range o.index.joins {
					for i := range joins {
						joins[i].clock = nil
					}
				}
			}
			for i := range n {
				for j := range i {
					if o.Line(i) == o.Line(j) {
						reach[i][j] = true
					}
					if reach[i][j] {
						for k := range j {
							reach[i][k] = reach[i][k] || reach[j][k]
						}
					}
				}
			}
			for i := range n {
				for j := range n {
					if got, want := o.HappenedBefore(j, i), reach[i][j]; got != want {
						t.Fatalf("%d before %d: %v (room %v)", j, i, got, room)
					}
				}
			}
		}
	})
}
