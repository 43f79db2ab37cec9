// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"testing"
)

var testColumns = []Column{
	{Name: "host"}, {Name: "ops", Kind: ColumnNumber, Keyed: true}, {Name: "duration", Aliases: []string{"duration_ns"}, Kind: ColumnSpan},
	{Name: "bytes", Kind: ColumnBytes}, {Name: "start", Kind: ColumnTime}, {Name: "lost", Kind: ColumnFlag},
}

// show writes a condition in one line.
func show(c *Condition) string {
	switch c.Join {
	case Always:
		return fmt.Sprint(c.Constant)
	case Test:
		return fmt.Sprintf("%s.%s %t %v %d %q", c.Column.Name, c.Key, c.Negated, c.Ranges, c.Match, c.Texts)
	}
	s := fmt.Sprintf("%d(", c.Join)
	for _, k := range c.Kids {
		s += show(k) + "; "
	}
	return s + ")"
}

func TestCondition(t *testing.T) {
	for _, c := range []struct{ filter, want string }{
		{`host = db7`, `host. false [] 0 ["db7"]`},
		{`host != "db7"`, `host. true [] 0 ["db7"]`},
		{`host.startsWith("db")`, `host. false [] 1 ["db"]`},
		{`host not under /a/`, `host. true [] 6 ["/a"]`},
		{`ops.fsync > 1e6`, `ops.fsync false [{1000001 9223372036854775807}] 0 []`},
		{`ops.fsync in {1e+2..2e2, 7}`, `ops.fsync false [{100 200} {7 7}] 0 []`},
		{`duration_ns > 1.5h`, `duration. false [{5400000000001 9223372036854775807}] 0 []`},
		{`bytes <= 1.5KiB`, `bytes. false [{-9223372036854775808 1536}] 0 []`},
		{`start = 1970-01-02`, `start. false [{86400000000000 86400000000000}] 0 []`},
		{`not lost or true`, `2(3(lost. false [] 0 []; ); true; )`},
	} {
		x, err := Parse(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x.Condition(testColumns)
		if err != nil || show(got) != c.want {
			t.Errorf("%s is %v, %v; want %s", c.filter, got, err, c.want)
			continue
		}
		// What a filter is written as again is the same filter.
		y, err := Parse(x.String())
		if err != nil {
			t.Fatalf("%s: %v", x, err)
		}
		if again, err := y.Condition(testColumns); err != nil || show(again) != c.want {
			t.Errorf("%s became %s: %v, %v", c.filter, x, again, err)
		}
	}
}

// TestKeysOfEvents: filters of events have no names in two parts, and say so.
func TestKeysOfEvents(t *testing.T) {
	x, err := Parse("path.size > 5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Compile(x, nil); err == nil || err.Error() != "filter, column 1: there is no field path.size" {
		t.Error(err)
	}
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{"host = a", "ops.fsync > 1e6 and not lost", "duration in {1h..2h}", "start < 2026-01-01",
		"ops.(", "host.x.y = 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := Parse(s)
		if err != nil {
			return
		}
		if c, err := x.Condition(testColumns); (c == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", s, c, err)
		}
	})
}
