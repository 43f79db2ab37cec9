// SPDX-License-Identifier: Apache-2.0

package alarm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
)

func TestParseRule(t *testing.T) {
	for src, want := range map[string]Rule{
		"unlink by process > 100/s for 3s":      {Measure: MeasureCalls, Ops: []event.Op{event.OpUnlink}, By: aggregate.ByProcess, Above: true, Limit: 100, For: 3 * time.Second},
		"calls of any < 1/s for 1m":             {Measure: MeasureCalls, Limit: 1, For: time.Minute},
		"written of any by user above 1.5MiB/s": {Measure: MeasureWritten, By: aggregate.ByUser, Above: true, Limit: 1.5 * (1 << 20)},
		"p99 of fsync,fdatasync > 50 ms":        {Measure: MeasureP99, Ops: []event.Op{event.OpFsync, event.OpFdatasync}, Above: true, Limit: 50e6},
		"read > 5/s":                            {Measure: MeasureCalls, Ops: []event.Op{event.OpRead}, Above: true, Limit: 5},
		"read of read > 5B/s":                   {Measure: MeasureRead, Ops: []event.Op{event.OpRead}, Above: true, Limit: 5},
		"time of any by process,op > 900ms/s":   {Measure: MeasureTime, By: aggregate.ByProcess | aggregate.ByOp, Above: true, Limit: 900e6},
		"failures of any by ext > 6 sigma":      {Measure: MeasureFailures, By: aggregate.ByExtension, Above: true, Limit: 6, Sigmas: true},
	} {
		got, err := ParseRule(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		if got.Source != src || !slices.Equal(got.Ops, want.Ops) {
			t.Errorf("%s: %+v", src, got)
		}
		got.Source, got.Ops, want.Ops = "", nil, nil
		if g, w := *got, want; g.Measure != w.Measure || g.By != w.By || g.Above != w.Above || g.Limit != w.Limit ||
			g.Sigmas != w.Sigmas || g.For != w.For {
			t.Errorf("%s: %+v, want %+v", src, g, w)
		}
	}
	r, err := ParseRule("class sync > 1/s")
	if err != nil || !slices.Contains(r.Ops, event.OpFsync) || slices.Contains(r.Ops, event.OpRead) {
		t.Errorf("class sync: %+v, %v", r, err)
	}
}

// TestRuleErrors holds the place and the words of what is wrong.
func TestRuleErrors(t *testing.T) {
	for src, want := range map[string]string{
		"":                            `^ the alarm ends where an operation, "any" or "class" should be`,
		"unlnk > 1/s":                 `^^^^^ there is no op "unlnk"; did you mean unlink?`,
		"unlink > 1":                  `         ^ calls is a rate; write "/s" behind the number`,
		"p99 of read > 1ms/s":         `              ^^^^^ p99 is a time, no rate: without "/s"`,
		"p98 of read > 1ms":           `^^^ there is no measure "p98"; did you mean p90?`,
		"p99 of read > 1":             `              ^ p99 needs one of the units ns, us, ms, s, m or h`,
		"unlink by proces > 1/s":      `          ^^^^^^ "proces" is none of op, user, process and extension; did you mean process?`,
		"unlink by latency > 1/s":     `          ^^^^^^^ an alarm cannot tell calls apart by latency; ask for p99 or max`,
		"unlink by process 100/s":     `                  ^^^^^ "100/s" is not ">" or "<"`,
		"unlink > 100MiB/s":           `         ^^^^^^ calls is a plain number: "MiB" cannot stand behind it`,
		"unlink > 100/m":              `             ^ rates are in a second: "/s"`,
		"unlink > 1/s for 3":          `                 ^ a time needs a unit; ns, us, ms, s, m or h`,
		"unlink > 1/s for 3s and":     `                    ^^^ "and" is not "for" and a time, or the end`,
		"class snyc > 1/s":            `      ^^^^ there is no class "snyc" of calls; did you mean sync?`,
		"uring_read > 1/s":            `^^^^^^^^^^ there is no op "uring_read"`,
		"any > 1/s for 2h":            `              ^^ at most 1h0m0s`,
		"any > x":                     `      ^ "x" is not a number`,
		"calls of any by user, > 1/s": `                      ^ ">" is not op, user, process or extension`,
	} {
		_, err := ParseRule(src)
		var e *predicate.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", src, err)
			continue
		}
		_, mark, _ := strings.Cut(e.Shown(), "\n")
		got := mark + " " + e.Message
		if e.Hint != "" {
			got += "; " + e.Hint
		}
		if !strings.HasPrefix(got, want) || !strings.HasPrefix(err.Error(), "alarm, column ") {
			t.Errorf("%s:\n%s\nwant\n%s", src, got, want)
		}
	}
}

// FuzzParseRule: a rule or an error whose place is in the text, never both; and what is
// read can be held against read-outs.
func FuzzParseRule(f *testing.F) {
	for _, src := range []string{"unlink by process > 100/s for 3s", "p99 of fsync, fdatasync > 50ms",
		"bytes of any by user,ext < 5 sigma", "class data above 1GiB/s # x", "time of any > .5s/s for"} {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		r, err := ParseRule(src)
		var e *predicate.Error
		if err != nil {
			if r != nil || !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(e.Source) || e.End < e.Pos {
				t.Fatalf("%q: %v, %+v", src, r, err)
			}
			return
		}
		if again, err := ParseRule(r.Source); err != nil || again.Limit != r.Limit ||
			again.By != r.By || again.For != r.For {
			t.Fatalf("%q: read again: %+v, %v", src, again, err)
		}
		w := NewWatch(r)
		tab := aggregate.NewTable(r.Needs(), 0)
		tab.Add(aggregate.Key{Op: event.OpUnlink, PID: 1}, &aggregate.Counts{Calls: 1, NS: 10})
		w.Look(&aggregate.IntervalSnapshot{Table: tab, At: time.Unix(1, 0), Elapsed: time.Second})
	})
}
