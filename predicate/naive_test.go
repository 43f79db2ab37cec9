// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/iotape/iotape/event"
)

// The naive evaluator: it follows the tree as it was written, one event at a time, and
// shares only the parser with what it is compared with.

// naiveNumbers returns all values of a field of numbers.
func naiveNumbers(name string, ev *event.Event) []int64 {
	called := ev.Kind == event.Call
	returned := called && ev.Flags&event.Interrupted == 0
	one := func(ok bool, v int64) []int64 {
		if !ok {
			return nil
		}
		return []int64{v}
	}
	var list []int64
	switch name {
	case "pid":
		return one(true, int64(ev.PID))
	case "tid":
		return one(true, int64(ev.TID))
	case "uid":
		return one(true, int64(ev.UID))
	case "seq":
		return one(true, int64(ev.Seq))
	case "latency":
		return one(returned, ev.Exit-ev.Enter)
	case "delay_before", "delay_within":
		known := ev.Kind == event.Call && ev.Flags&event.Delays != 0
		if name == "delay_within" {
			return one(known, int64(ev.DelayWithin))
		}
		return one(known, int64(ev.DelayBefore))
	case "result":
		return one(returned, ev.Ret)
	case "errno":
		return one(returned, int64(ev.Errno))
	case "offset":
		return one(ev.Offset >= 0, ev.Offset)
	case "count":
		return one(ev.Count >= 0, ev.Count)
	case "fd", "size", "type":
		for _, f := range ev.Files {
			switch {
			case name == "fd" && f.FD >= 0:
				list = append(list, int64(f.FD))
			case name == "size" && f.Known:
				list = append(list, f.Size)
			case name == "type" && f.Known:
				list = append(list, int64(f.Mode>>12))
			}
		}
		return list
	}
	panic(name)
}

func naiveTexts(name string, ev *event.Event) (list []string) {
	switch name {
	case "comm":
		list = append(list, ev.Comm)
	case "op":
		if ev.Kind == event.Call {
			list = append(list, ev.Op.String())
		}
	case "class":
		if ev.Kind == event.Call {
			list = append(list, ev.Spec().Class.String())
		}
	default:
		for _, f := range ev.Files {
			list = append(list, f.Path)
		}
		for _, p := range ev.Paths {
			list = append(list, p.Abs)
		}
		list = slices.DeleteFunc(list, func(s string) bool { return s == "" })
		for i := range list {
			if name == "path" {
				continue
			}
			list[i] = path.Base(list[i])
			if ext := path.Ext(list[i]); name == "ext" {
				if ext == "" {
					list[i] = ""
				} else {
					list[i] = ext[1:]
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

var naiveScale = map[string]int64{"KiB": 1024, "ms": 1e6, "us": 1e3, "": 1}

func naiveNumber(text string) int64 {
	unit := strings.TrimLeft(text, "-0123456789")
	if v, ok := map[string]int64{"file": 8, "dir": 4, "socket": 12}[text]; ok {
		return v
	}
	if text == "ENOENT" {
		return int64(syscall.ENOENT)
	}
	v, err := strconv.ParseInt(strings.TrimSuffix(text, unit), 10, 64)
	if err != nil {
		panic(err)
	}
	return v * naiveScale[unit]
}

func naive(n node, ev *event.Event) bool {
	switch n := n.(type) {
	case *constant:
		return n.value
	case *negation:
		return !naive(n.x, ev)
	case *logic:
		for _, k := range n.kids {
			if naive(k, ev) != n.and {
				return !n.and
			}
		}
		return n.and
	}
	c := n.(*comparison)
	fits := 0
	all := 0
	switch fields[fieldNames[c.name]].typ {
	case typeText, typeOp, typeClass:
		for _, s := range naiveTexts(c.name, ev) {
			all++
			for _, v := range c.values {
				if naiveText(c.rel, s, v.text) {
					fits++
				}
			}
		}
	case typeBool:
		return ev.Kind == event.Call && ev.Errno != 0
	default:
		for _, x := range naiveNumbers(c.name, ev) {
			all++
			for _, v := range c.values {
				y := naiveNumber(v.text)
				switch c.rel {
				case relEqual, relNotEqual, relIn:
					if x == y {
						fits++
					}
				case relLess:
					fits += count(x < y)
				case relLessEqual:
					fits += count(x <= y)
				case relGreater:
					fits += count(x > y)
				case relGreaterEqual:
					fits += count(x >= y)
				}
			}
		}
	}
	if c.rel == relNotEqual || c.negated {
		return all > 0 && fits == 0
	}
	return fits > 0
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func naiveText(rel relation, s, v string) bool {
	switch rel {
	case relStartsWith:
		return strings.HasPrefix(s, v)
	case relEndsWith:
		return strings.HasSuffix(s, v)
	case relContains:
		return strings.Contains(s, v)
	case relUnder:
		return s == v || strings.HasPrefix(s, v+"/")
	case relGlob:
		if strings.Contains(v, "/") { // none of them has wildcards
			return s == v || strings.HasPrefix(s, v+"/")
		}
		ok, _ := path.Match(v, path.Base(s))
		return ok
	case relMatches:
		return regexp.MustCompile(v).MatchString(s)
	}
	return s == v
}

func drawFilter(t *rapid.T, depth int) string {
	pick := func(label string, list ...string) string { return rapid.SampledFrom(list).Draw(t, label) }
	if depth > 0 {
		switch pick("node", "and", "or", "not", "test", "test") {
		case "and", "or":
			var parts []string
			word := pick("word", " and ", " or ", " && ", " || ")
			for range rapid.IntRange(2, 4).Draw(t, "kids") {
				parts = append(parts, "("+drawFilter(t, depth-1)+")")
			}
			return strings.Join(parts, word)
		case "not":
			return pick("negation", "not ", "!") + "(" + drawFilter(t, depth-1) + ")"
		}
	}
	small := []string{"0", "1", "2", "3", "7"}
	values := small
	name := pick("field", "pid", "tid", "uid", "seq", "latency", "delay_before", "delay_within", "result", "errno",
		"offset", "count", "fd", "size", "type", "comm", "op", "class", "path", "name", "ext", "failed", "true")
	rels := []string{"=", "==", "!=", "<", "<=", ">", ">=", "in", "not in"}
	texts := []string{"=", "!=", "in", "not in", "startsWith", "endsWith", "not endsWith",
		"contains", "matches", "glob"}
	switch name {
	case "failed", "true":
		return name
	case "latency", "delay_before", "delay_within":
		values = []string{"0", "3us", "1ms", "2ms"}
	case "result", "offset", "count", "size":
		values = append(small, "1KiB", "4KiB")
	case "errno":
		values = []string{"0", "2", "ENOENT"}
	case "type":
		values, rels = []string{"file", "dir", "socket"}, []string{"=", "!=", "in", "not in"}
	case "comm":
		values, rels = []string{"make", "cc1", "ma"}, texts
	case "op":
		values, rels = []string{"read", "write", "openat", "close"}, []string{"=", "!=", "in", "not in"}
	case "class":
		values, rels = []string{"data", "descriptor", "meta"}, []string{"=", "!=", "in"}
	case "path", "name", "ext":
		values, rels = []string{`"/db/a.sst"`, "/db", "a.sst", "sst", `"log"`, "b"}, append(texts, "under")
	}
	rel := pick("rel", rels...)
	if strings.HasSuffix(rel, "in") {
		list := rapid.SliceOfN(rapid.SampledFrom(values), 1, 3).Draw(t, "set")
		return name + " " + rel + " {" + strings.Join(list, ", ") + "}"
	}
	v := pick("value", values...)
	if rel == "<" && v == "0" && name != "result" && name != "fd" {
		v = values[1] // none is less than 0, which is an error
	}
	if rel == "matches" {
		v = strings.Trim(v, `"`)
		v = `"` + v + `"`
	}
	return name + " " + rel + " " + v
}

func drawEvent(t *rapid.T) *event.Event {
	u := func(label string) uint32 { return rapid.Uint32Range(0, 8).Draw(t, label) }
	ev := &event.Event{
		Seq: uint64(u("seq")), PID: u("pid"), TID: u("tid"), UID: u("uid"), PPID: u("ppid"),
		Op: rapid.SampledFrom([]event.Op{event.OpRead, event.OpWrite, event.OpOpenat, event.OpClose,
			event.OpStat}).Draw(t, "op"),
		Kind: rapid.SampledFrom([]event.EventKind{event.Call, event.Call, event.Call, event.Exited, event.Forked,
			event.NoteMark}).Draw(t, "kind"),
		Comm:   rapid.SampledFrom([]string{"", "make", "cc1", "sh"}).Draw(t, "comm"),
		Enter:  10,
		Ret:    rapid.SampledFrom([]int64{-1, 0, 3, 1024, 4096}).Draw(t, "ret"),
		Errno:  rapid.SampledFrom([]syscall.Errno{0, 0, syscall.ENOENT, syscall.EIO}).Draw(t, "errno"),
		Offset: rapid.SampledFrom([]int64{-1, 0, 1, 4096}).Draw(t, "offset"),
		Count:  rapid.SampledFrom([]int64{-1, 0, 7, 1024}).Draw(t, "count"),
		Flags:  rapid.SampledFrom([]event.EventFlags{0, event.Delays, event.Interrupted}).Draw(t, "flags"),
	}
	ev.DelayBefore = rapid.SampledFrom([]uint32{0, 3000, 1e6 + 1}).Draw(t, "before")
	ev.DelayWithin = rapid.SampledFrom([]uint32{0, 2e6}).Draw(t, "within")
	ev.Exit = ev.Enter + rapid.SampledFrom([]int64{0, 1, 3000, 1e6, 1e6 + 1}).Draw(t, "latency")
	name := rapid.SampledFrom([]string{"", "/db/a.sst", "/db", "/db/x.log", "/b", "/dbx/a", "sst"})
	for range rapid.IntRange(0, 2).Draw(t, "files") {
		ev.Files = append(ev.Files, event.File{
			FD: int32(u("fd")) - 1, Known: rapid.Bool().Draw(t, "known"), Size: int64(u("size")),
			Mode: rapid.SampledFrom([]uint32{0o100644, 0o040755, 0o140777, 0}).Draw(t, "mode"),
			Path: name.Draw(t, "path"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "paths") {
		ev.Paths = append(ev.Paths, event.Path{Abs: name.Draw(t, "abs")})
	}
	if ev.Kind != event.Call {
		ev.Op, ev.Errno = 0, 0
	}
	if len(ev.Files) == 0 {
		ev.Files = append(ev.Files, event.File{FD: -1}) // no descriptors among the arguments
	}
	return ev
}

func TestGraphAgreesWithTheTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawFilter(t, 3)
		x, err := Parse(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		g, err := Compile(x, nil)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		again, err := New(x.String(), nil)
		if err != nil || again.Simplified() != g.Simplified() {
			t.Fatalf("%s: written as %s: %v", src, x, err)
		}
		m := g.NewMatcher()
		for range 20 {
			ev := drawEvent(t)
			want := naive(x.root, ev)
			if got := m.Match(ev); got != want {
				t.Fatalf("%s of %+v: %t, the tree says %t\n%s", src, ev, got, want, g)
			}
			if g.Never() && want || g.Always() && !want {
				t.Fatalf("%s of %+v: never %t, always %t", src, ev, g.Never(), g.Always())
			}
		}
	})
}

func TestEqualNodesExistOnce(t *testing.T) {
	g, err := New("(uid = 1 and path = /a) or (uid = 2 and path = /a) or (gid = 3 and path = /a)", nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]int{}
	for _, n := range g.Nodes() {
		tests[n.Test+fmt.Sprint(n.Yes, n.No)]++
	}
	for n, times := range tests {
		if times > 1 {
			t.Errorf("%s exists %d times:\n%s", n, times, g)
		}
	}
}
