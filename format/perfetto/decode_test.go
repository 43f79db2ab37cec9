// SPDX-License-Identifier: Apache-2.0

package perfetto

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// A node is a message of protobuf's text format.
type node struct {
	fields map[string][]string
	parts  map[string][]*node
}

func (n *node) first(field string) string {
	if l := n.fields[field]; len(l) > 0 {
		return l[0]
	}
	return ""
}

func (n *node) num(field string) int64 {
	v, _ := strconv.ParseInt(n.first(field), 10, 64)
	return v
}

func (n *node) part(field string) *node {
	if l := n.parts[field]; len(l) > 0 {
		return l[0]
	}
	return nil
}

// decode has protoc decode a trace. A field that the schema lacks is an error.
func decode(t *testing.T, proto string, data []byte) *node {
	t.Helper()
	testenv.NeedProgram(t, "protoc")
	cmd := exec.Command("protoc", "--decode", "perfetto.protos.Trace", "-I", filepath.Dir(proto), filepath.Base(proto))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(data), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("protoc: %v", err)
	}
	stack := []*node{{map[string][]string{}, map[string][]*node{}}}
	for line := range strings.Lines(string(out)) {
		top := stack[len(stack)-1]
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, ": ")
		switch {
		case line == "}":
			stack = stack[:len(stack)-1]
			continue
		case strings.HasSuffix(line, " {"):
			name = strings.TrimSuffix(line, " {")
			n := &node{map[string][]string{}, map[string][]*node{}}
			top.parts[name] = append(top.parts[name], n)
			stack = append(stack, n)
		case ok:
			if s, err := strconv.Unquote(value); err == nil {
				value = s
			}
			top.fields[name] = append(top.fields[name], value)
		}
		if name[0] >= '0' && name[0] <= '9' {
			t.Fatalf("field %s is not in %s", name, proto)
		}
	}
	return stack[0]
}

// shown is what a viewer makes of a trace.
type shown struct {
	slices   []string
	arrows   []string
	counters map[string]int64 // last values
	marks    []string
	parents  map[string]string // of processes
}

// view reads a trace as a viewer does: events by time, names by their numbers.
func view(t *testing.T, root *node) *shown {
	t.Helper()
	v := &shown{counters: map[string]int64{}, parents: map[string]string{}}
	names := map[string]string{}
	tracks := map[string]string{}
	type event struct {
		*node
		time int64
	}
	var events []event
	for i, p := range root.parts["packet"] {
		if p.num("sequence_flags")&stateCleared != 0 {
			clear(names)
		} else if i < 3 && p.part("trace_packet_defaults") != nil {
			t.Error("defaults without a fresh state")
		}
		if in := p.part("interned_data"); in != nil {
			for list, entries := range in.parts {
				for _, e := range entries {
					names[list+e.first("iid")] = e.first("name") + e.first("str")
				}
			}
		}
		if d := p.part("track_descriptor"); d != nil {
			name := d.first("name")
			switch parent := tracks[d.first("parent_uuid")]; {
			case d.part("process") != nil:
				name = fmt.Sprintf("%s[%s]", d.part("process").first("process_name"), d.part("process").first("pid"))
			case d.part("thread") != nil:
				name = fmt.Sprintf("%s/%s[%s]", parent, d.part("thread").first("thread_name"),
					d.part("thread").first("tid"))
			default:
				name = strings.TrimPrefix(parent+"/"+name, "/")
			}
			tracks[d.first("uuid")] = name
		}
		if tree := p.part("process_tree"); tree != nil {
			for _, x := range tree.parts["processes"] {
				v.parents[x.first("pid")] = x.first("ppid")
			}
		}
		if e := p.part("track_event"); e != nil {
			if tracks[e.first("track_uuid")] == "" {
				t.Errorf("event on a track without a descriptor: %v", e.fields)
			}
			// Names are of the packet's state, not of when it is shown.
			e.fields["name"] = []string{names["event_names"+e.first("name_iid")]}
			e.fields["category"] = []string{names["event_categories"+e.first("category_iids")]}
			for _, a := range e.parts["debug_annotations"] {
				value := a.first("int_value") + a.first("string_value")
				if i := a.first("string_value_iid"); i != "" {
					value = names["debug_annotation_string_values"+i]
				}
				e.fields["args"] = append(e.fields["args"],
					names["debug_annotation_names"+a.first("name_iid")]+"="+value)
			}
			events = append(events, event{e, p.num("timestamp")})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.time - b.time) })
	open := map[string][]string{} // slices by track
	begun := map[string][]int64{}
	flows := map[string]string{}
	for _, e := range events {
		uuid := e.first("track_uuid")
		track := tracks[uuid]
		text := fmt.Sprintf("%s %s (%s) %s", track, e.first("name"), e.first("category"),
			strings.Join(e.fields["args"], " "))
		for _, f := range e.fields["flow_ids"] {
			here := fmt.Sprintf("%s %s@%d", track, e.first("name"), e.time)
			if from := flows[f]; from != "" {
				v.arrows = append(v.arrows, from+" -> "+here)
			}
			flows[f] = here
		}
		switch e.first("type") {
		case "TYPE_SLICE_BEGIN":
			open[uuid], begun[uuid] = append(open[uuid], text), append(begun[uuid], e.time)
		case "TYPE_SLICE_END":
			n := len(open[uuid]) - 1
			if n < 0 {
				t.Fatalf("%s: no slice is open at %d, the end of one", track, e.time)
			}
			v.slices = append(v.slices, fmt.Sprintf("%d-%d %s", begun[uuid][n], e.time, open[uuid][n]))
			open[uuid], begun[uuid] = open[uuid][:n], begun[uuid][:n]
		case "TYPE_INSTANT":
			v.marks = append(v.marks, fmt.Sprintf("%d %s", e.time, text))
		case "TYPE_COUNTER":
			v.counters[track] = e.num("counter_value")
		}
	}
	return v
}
