// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
)

const by = aggregate.ByOp | aggregate.ByProcess

// counts returns calls that took about so long each.
func counts(calls, ns uint64) *aggregate.Counts {
	c := &aggregate.Counts{Calls: calls, NS: calls * ns, MaxNS: ns, Read: calls * 4096}
	c.Latency[aggregate.BucketOf(ns)] = calls
	return c
}

// some is a table of three processes, of which one has a name that is no good for a terminal.
func some() *aggregate.Table {
	t := aggregate.NewTable(by, 0)
	t.Add(aggregate.Key{Op: event.OpRead, PID: 7, Comm: "db"}, counts(1000, 3000))
	t.Add(aggregate.Key{Op: event.OpFsync, PID: 7, Comm: "db"}, counts(10, 5e6))
	t.Add(aggregate.Key{Op: event.OpRead, PID: 9, Comm: "e\x1b[31mvil\xff"}, counts(500, 900))
	t.Add(aggregate.Key{Op: event.OpExitGroup, PID: 9, Comm: "e\x1b[31mvil\xff"},
		&aggregate.Counts{Calls: 1, Unfinished: 1})
	t.Add(aggregate.Key{Other: true}, counts(3, 100))
	return t
}

func TestText(t *testing.T) {
	o := Options{Rows: 3}
	var b bytes.Buffer
	if err := o.Text(&b, some(), 0); err != nil {
		t.Fatal(err)
	}
	want := `process                operation  calls  failed      read  written     time      p50      p99      max  64n 1µs       1ms       1s
db[7]                  read       1,000       –  3.91 MiB        –  3.00 ms  2.82 µs  2.82 µs  3.00 µs  ·····█······················
e\x1b[31mvil\xff[9]  read         500       –  1.95 MiB        –   450 µs   900 ns   900 ns   900 ns  ···█························
db[7]                  fsync         10       –  40.0 KiB        –  50.0 ms  4.72 ms  4.72 ms  5.00 ms  ················█···········
(2 rows more)                         4       –  12.0 KiB        –   300 ns    100 ns   100 ns   100 ns  █···························
`
	// Only the words matter here, not how far they are apart.
	if got := b.String(); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%s", got)
	}
	b.Reset()
	o.Width = 90
	if err := o.Text(&b, some(), 2*time.Second); err != nil || strings.Contains(b.String(), "1ms") ||
		!strings.Contains(b.String(), "2.5 %") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// TestSignals: rows of signals have no columns that only calls have, also on a screen.
func TestSignals(t *testing.T) {
	table := aggregate.NewTable(aggregate.BySignal, 10)
	table.Count(&event.Event{Kind: event.Signalled, Args: [6]uint64{15, uint64(event.SignalTerminates)}})
	var b strings.Builder
	o := Options{}
	if err := o.Text(&b, table, 0); err != nil {
		t.Fatal(err)
	}
	want := "signal   signals  fatal\nSIGTERM        1      1\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	if got, want := TotalText(table), "in all: 1 signal, 1 fatal"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, width := range []int{10, 20, 100} {
		m := screen(width, 24)
		m.take(&aggregate.IntervalSnapshot{Table: table, Elapsed: time.Second, At: time.Unix(0, 0)})
		press(m, "enter")
		if text := strings.Join(shown(m), "\n"); width == 100 && !strings.Contains(text, "1 signals/s  1 fatal/s") {
			t.Errorf("the screen:\n%s", text)
		}
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	r := &aggregate.IntervalSnapshot{Table: some(), At: time.Unix(5, 0).UTC(), Elapsed: 2 * time.Second, Lost: 4}
	if err := (&Options{Rows: 4}).JSON(&b, r); err != nil || strings.Count(b.String(), "\n") != 1 {
		t.Fatalf("%v %q", err, b.String())
	}
	var x struct {
		Version int
		Elapsed int64  `json:"elapsed_ns"`
		Lost    uint64 `json:"uncounted_calls"`
		More    int    `json:"more_rows"`
		By      []string
		Total   struct{ Calls uint64 }
		Rows    []map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &x); err != nil {
		t.Fatal(err)
	}
	first := x.Rows[0]
	if x.Version != 1 || x.Elapsed != 2e9 || x.Lost != 4 || x.More != 1 || len(x.By) != 2 ||
		x.Total.Calls != 1514 || len(x.Rows) != 4 ||
		first["pid"] != 7.0 || first["comm"] != "db" || first["op"] != "read" || first["read_bytes"] != 4096000.0 {
		t.Errorf("%+v", x)
	}
	if _, has := first["uid"]; has {
		t.Error("a row has a user, though it is not of one")
	}
}

// screen is a screen without a terminal.
func screen(width, height int) *model {
	m := newModel(Options{}, "test")
	m.quit = func() {}
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	return m
}

// shown returns the screen's text, without escapes.
func shown(m *model) []string {
	lines := m.draw()
	for i, l := range lines {
		for _, e := range []string{bold, dim, inverse, red, normal, "\x1b[22m"} {
			l = strings.ReplaceAll(l, e, "")
		}
		lines[i] = l
	}
	return lines
}

func press(m *model, keys ...string) {
	for _, k := range keys {
		text := ""
		if len(k) == 1 {
			text = k
		}
		m.key(k, text)
	}
}

// TestScreenFits draws screens of many sizes: no line is too long, and nothing that
// programs chose gets to the terminal.
func TestScreenFits(t *testing.T) {
	for _, width := range []int{1, 10, 40, 80, 130, 300} {
		for _, height := range []int{1, 3, 10, 24, 60} {
			m := screen(width, height)
			shown(m)
			for i := range 5 {
				m.take(&aggregate.IntervalSnapshot{Table: some(), At: time.Unix(int64(i), 0), Elapsed: time.Second})
				m.note("a note with \x1b[2J in it, and "+strings.Repeat("long ", 50), true)
			}
			for _, keys := range [][]string{nil, {"down", "down"}, {"t"}, {"o"}, {"pgdown", "end", "up", "home"}, {"?"},
				{"?", "/", "d", "b"}, {"enter", "s", "S"}, {"esc", "esc"}} {
				press(m, keys...)
				lines := shown(m)
				if len(lines) > height {
					t.Fatalf("%dx%d after %q: %d lines", width, height, keys, len(lines))
				}
				for _, l := range lines {
					if runes(l) > max(width, 20) || strings.ContainsAny(l, "\x1b\n") || strings.Contains(l, "\xff") {
						t.Fatalf("%dx%d after %q: line of %d: %q", width, height, keys, runes(l), l)
					}
				}
			}
		}
	}
}

func TestKeys(t *testing.T) {
	m := screen(120, 40)
	m.take(&aggregate.IntervalSnapshot{Table: some(), At: time.Unix(1, 0), Elapsed: time.Second})
	m.take(&aggregate.IntervalSnapshot{Table: some(), At: time.Unix(2, 0), Elapsed: time.Second})
	row := func(n int) string { return strings.Join(strings.Fields(shown(m)[3+n]), " ") }
	if r := row(0); !strings.HasPrefix(r, "db[7] read 1,000") {
		t.Errorf("by calls: %s", r)
	}
	press(m, "t")
	if r := row(0); !strings.HasPrefix(r, "db[7] read 2,000") {
		t.Errorf("sums: %s", r)
	}
	press(m, "t", "s") // by time
	if r := row(0); !strings.HasPrefix(r, "db[7] fsync 10") {
		t.Errorf("by time: %s", r)
	}
	press(m, "p") // without processes
	if r := row(1); !strings.HasPrefix(r, "read 1,500") {
		t.Errorf("without processes: %s", r)
	}
	press(m, "o") // the last dimension stays
	if r := row(1); !strings.HasPrefix(r, "read") {
		t.Errorf("without anything: %s", r)
	}
	press(m, "p", "/", "v", "i", "l", "enter")
	if r := row(0); !strings.Contains(r, "vil") || len(m.visible) != 2 {
		t.Errorf("filtered: %d rows, %s", len(m.visible), r)
	}
	press(m, "esc", "space")
	m.take(&aggregate.IntervalSnapshot{Table: aggregate.NewTable(by, 0), At: time.Unix(3, 0), Elapsed: time.Second})
	if r := row(0); !strings.HasPrefix(r, "db[7]") || !strings.Contains(shown(m)[0], "PAUSED") {
		t.Errorf("held: %s", r)
	}
	press(m, "space", "down", "down")
	m.take(&aggregate.IntervalSnapshot{Table: some(), At: time.Unix(4, 0), Elapsed: time.Second})
	shown(m)
	press(m, "up")
	if m.selected.Op != event.OpFsync || !strings.Contains(strings.Join(shown(m), "\n"), "p50    4.72 ms") {
		t.Errorf("chosen: %+v\n%s", m.selected, strings.Join(shown(m), "\n"))
	}
	quits := 0
	m.quit = func() { quits++ }
	press(m, "/", "q", "ctrl+c", "q")
	if quits != 1 {
		t.Errorf("%d times asked to quit", quits)
	}
}
