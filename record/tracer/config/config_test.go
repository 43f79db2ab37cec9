// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/tracer"
)

func options() *Options {
	return &Options{
		Filter: func(text string) (*predicate.Graph, error) {
			return predicate.New(text, &predicate.Options{Hosts: []predicate.Host{{Name: "h"}}})
		},
		FilterFile: func(name string) (string, error) { return "", errors.New("open " + name + ": no such file") },
	}
}

const head = "[input]\nall = true\n" // two lines

// TestErrors says for each mistake where it is and what was perhaps meant.
func TestErrors(t *testing.T) {
	for _, k := range []struct{ doc, want string }{
		{"", `c.toml:1:1: there is no [[tracer]]; iotape run --example shows some`},
		{"[[tracer]", `c.toml:1:`},
		{"x = [\n", `c.toml:`},
		{head + "[[tracer]]\nname = 'a'\nfliter = 'op = read'\n", `c.toml:5:1: [[tracer]] has no key "fliter"; did you mean filter?`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.ouput]\ntape = 'x'\n", `c.toml:5:2: [[tracer]] has no key "ouput"; did you mean output?`},
		{head + "[[tracer]]\nname = 'a'\ncontent = 'none'\n", `c.toml:5:1: [[tracer]] has no key "content"; it is a key of [tracer.stream]`},
		{head + "[[tracer]]\nname = 'a'\ntape = 'x'\n", `c.toml:5:1: [[tracer]] has no key "tape"; it is a key of [tracer.output]`},
		{head + "[colour]\nred = 1\n[[tracer]]\nname = 'a'", `c.toml:3:2: the configuration has no key "colour"`},
		{head + "[[tracer]]\nname = 'a'\nname = 'b'\n", `c.toml:5:`},
		{head + "[[tracer]]\nname = 5\n", `c.toml:4:8: tracer.name: the value has the wrong type`},
		{head + "[[tracer]]\nname = 'a'\nstart = 'no'\n", `c.toml:5:9: tracer.start: the value has the wrong type`},
		{head + "[[tracer]]\n", `c.toml:3:3: the tracer has no name; give it one: name = "writes"`},
		{head + "[[tracer]]\nname = '../a'\n", `c.toml:4:8: name "../a": a name has letters, digits`},
		{head + "[[tracer]]\nname = 'a'\n[[tracer]]\nname = 'a'\n", `c.toml:6:8: the tracer of line 3 is named "a", too`},
		{head + "[[tracer]]\nname = 'a'\noutput = {tape = 'x.tape'}\n[[tracer]]\nname = 'b'\noutput.tape = 'x.tape'\n", `c.toml:8:15: the tracer of line 3 writes to x.tape, too`},
		{"[[tracer]]\nname = 'a'\n", `c.toml:1:3: tracer "a" has no input; say what to record in [tracer.input]`},
		{"[input]\n[[tracer]]\nname = 'a'\n", `c.toml:1:2: the input says nothing to record; it needs one of command, pid, cgroup, all and mount`},
		{"[input]\nall = true\npid = [1]\n[[tracer]]\nname = 'a'\n", `c.toml:2:7: the input has pid and all, and can have one of them`},
		{"[input]\npid = [1, -4]\n[[tracer]]\nname = 'a'\n", `c.toml:2:11: pid -4 is not the number of a process`},
		{"[input]\ncommand = []\n[[tracer]]\nname = 'a'\n", `c.toml:2:1: the command is empty`},
		{"[input]\ncommand = ['x']\nduration = '1s'\n[[tracer]]\nname = 'a'\n", `c.toml:3:12: duration is for pid, cgroup, all and mount`},
		{"[input]\nmount = {lower = '/x'}\n[[tracer]]\nname = 'a'\n", `a mount needs lower, the directory, and at`},
		// Filters: at their place in the document, however they are quoted.
		{head + "[[tracer]]\nname = 'a'\nfilter = 'op = raed'\n", `c.toml:5:16: filter: there is no op "raed"; did you mean read?`},
		{head + "[[tracer]]\nname = 'a'\nfilter = \"op = raed\"\n", `c.toml:5:16: filter: there is no op "raed"; did you mean read?`},
		{head + "[[tracer]]\nname = 'a'\nfilter = '''\nfailed and\n  op = raed'''\n", `c.toml:7:8: filter: there is no op "raed"; did you mean read?`},
		{head + "[[tracer]]\nname = 'a'\nfilter = \"name = \\\"x\\\" and op = raed\"\n", `c.toml:5:10: filter, column 21: there is no op "raed"; did you mean read?`},
		{head + "[[tracer]]\nname = 'a'\nfilter = 'uid = 0 and'\n", `c.toml:5:22: filter: the filter ends where a test`},
		{head + "[[tracer]]\nname = 'a'\nfilter = 'failed'\nfilter-file = 'x'\n", `c.toml:6:15: a tracer has a filter or a filter-file, not both`},
		{head + "[[tracer]]\nname = 'a'\nfilter-file = 'gone'\n", `c.toml:5:15: open gone: no such file`},
		// The stream and where it goes.
		{head + "[[tracer]]\nname = 'a'\n[tracer.stream]\ncontent = 'half'\n", `c.toml:6:11: content "half" is neither full`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.stream]\nomit = ['cpu', 'atributes']\n", `c.toml:6:16: omit[1] "atributes" is none of attributes, cpu, listings; did you mean attributes?`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.stream]\nresolution = 'fine'\n", `c.toml:6:14: resolution "fine" is no time such as 1us`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.output]\npipe = ['async', 'zst:3']\n", `c.toml:6:18: pipe: "zst" is no layer`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.output]\npipe = ['zstd:99']\n", `c.toml:6:9: pipe: zstd: "99" is no number from 1 to 22`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.output]\nto = 'x'\ntape = 'y'\n", `c.toml:7:8: tape is for a tape, and to = "x" makes none`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.aggregate]\nby = ['op']\n", `c.toml:5:9: this iotape has no assembly driver aggregate; [tracer.stream] records events`},
		{head + "[[tracer]]\nname = 'a'\n[tracer.aggregate]\n", `c.toml:5:9: this iotape has no assembly driver aggregate`},
		// What all share.
		{head + "[capture]\nbackend = 'epbf'\n[[tracer]]\nname = 'a'", `c.toml:4:11: backend "epbf" is none of auto, ebpf, interpose, ptrace; did you mean ebpf?`},
		{head + "[capture]\nring = 'big'\n[[tracer]]\nname = 'a'", `c.toml:4:8: ring "big" is no size such as 64K`},
		{head + "[capture]\ncontent = 'head:10'\n[[tracer]]\nname = 'a'\nstream.content = 'head:11'", `c.toml:7:18: tracer "a" asks for content head:11, and capture.content keeps head:10`},
		{head + "[control]\nlate = false\n[[tracer]]\nname = 'a'\nstart = false\n", `c.toml:7:9: nobody could start this tracer: control.late is false`},
	} {
		c, err := Parse("c.toml", []byte(k.doc), options())
		if c != nil || err == nil {
			t.Errorf("%q is taken", k.doc)
			continue
		}
		if first := err.(Errors)[0].Error(); !strings.HasPrefix(first, k.want) &&
			!(strings.HasPrefix(k.want, "a mount") && strings.Contains(first, k.want)) {
			t.Errorf("%q:\n     %s\nwant %s", k.doc, first, k.want)
		}
	}
}

// TestAllErrors says everything that is wrong, from top to bottom.
func TestAllErrors(t *testing.T) {
	_, err := Parse("c.toml", []byte(head+
		"[[tracer]]\nname = 'a b'\nfilter = 'op = raed'\n[tracer.stream]\ncontent = 'half'\n[capture]\nring = '0'\n"),
		options())
	var list Errors
	if !errors.As(err, &list) || len(list) != 4 {
		t.Fatal(err)
	}
	for i, line := range []int{4, 5, 7, 9} {
		if list[i].Line != line {
			t.Errorf("%v, want line %d", list[i], line)
		}
	}
	var filter *predicate.Error
	if !errors.As(list[1], &filter) || !strings.Contains(filter.Shown(), "^^^^") {
		t.Error("the error of a filter does not show the place")
	}
}

func TestWarnings(t *testing.T) {
	c, err := Parse("c.toml", []byte(head+"[[tracer]]\nname = 'a'\nfilter = 'uid = 1 and uid = 2'\n"), options())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) == 0 ||
		!strings.HasPrefix(c.Warnings[0].Error(), `c.toml:5:11: tracer "a": the filter is never true`) {
		t.Error(c.Warnings)
	}
}

// TestExample reads what --example prints, to the last key.
func TestExample(t *testing.T) {
	c, err := Parse("example.toml", []byte(Example), options())
	if err != nil {
		t.Fatal(err)
	}
	w := c.Tracers[0]
	if w.Name != "writes" || w.Verbosity != (tracer.Verbosity{Content: capture.Everywhere(capture.KeepHash),
		Omit: tracer.GroupCPU | tracer.GroupAttributes | tracer.GroupListings}) ||
		w.Resolution != time.Microsecond || w.Output.Tape != "writes.tape" || len(w.Output.Pipe.Layers) != 3 ||
		w.Filter == nil || !w.Start {
		t.Errorf("%+v", w)
	}
	if f := c.Tracers[1]; f.Start || f.Output.To == "" || f.Input != w.Input {
		t.Errorf("%+v", f)
	}
	if len(c.Groups()) != 1 || !c.Control.Late || c.Control.Name != "build" || c.Capture.Ring != 128<<20 {
		t.Errorf("%+v", c)
	}
	// Every key is in it, if only in a comment.
	for table, keys := range tables {
		for _, key := range keys {
			if !regexp.MustCompile(`(?m)(\b|\.)`+regexp.QuoteMeta(key)+`(\b|\])`).MatchString(Example) &&
				key != "aggregate" {
				t.Errorf("the example lacks %s.%s", table, key)
			}
		}
	}
}

// TestDocs reads the configurations of the documentation.
func TestDocs(t *testing.T) {
	key, err := os.ReadFile("../../../pipe/chain/testdata/key")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SUM_KEY", strings.TrimSpace(string(key)))
	files, err := filepath.Glob("../../../docs/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		doc, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(name, doc, options())
		if err != nil {
			t.Error(err)
		} else if len(c.Warnings) > 0 {
			t.Error(c.Warnings)
		}
	}
	page, err := os.ReadFile("../../../docs/tracers.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?s)\$ cat build.toml\n(.*?)\n\n    \$`).FindSubmatch(page)
	if shown == nil {
		t.Fatal("no configuration in docs/tracers.md")
	}
	o := options()
	o.Input = &Input{Command: []string{"make"}}
	if c, err := Parse("build.toml", []byte(regexp.MustCompile(`(?m)^    `).ReplaceAllString(string(shown[1]), "")),
		o); err != nil || len(c.Tracers) != 2 {
		t.Error(err)
	}
}

func TestGroups(t *testing.T) {
	c, err := Parse("c.toml", []byte(`
[input]
pid = [1]
[[tracer]]
name = "a"
[[tracer]]
name = "b"
input.all = true
[[tracer]]
name = "c"
input.pid = [1]
`), options())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range c.Groups() {
		for _, t := range g {
			got = append(got, t.Name)
		}
		got = append(got, "|")
	}
	if strings.Join(got, "") != "ac|b|" {
		t.Error(got)
	}
}

// keyed is an error of an assembly driver's table.
type keyed struct{ error }

func (keyed) Key() string { return "interval" }

func TestAggregate(t *testing.T) {
	doc := []byte(head + "[[tracer]]\nname = 'a'\n[tracer.aggregate]\nby = ['op', 'user']\ninterval = '0s'\n")
	o := options()
	o.Aggregate = func(table map[string]any) (any, error) {
		if table["interval"] == "0s" {
			return nil, keyed{errors.New("no time")}
		}
		return len(table), nil
	}
	if _, err := Parse("c.toml", doc, o); err == nil || err.Error() != "c.toml:7:12: aggregate: no time" {
		t.Error(err)
	}
	c, err := Parse("c.toml", []byte(strings.ReplaceAll(string(doc), "0s", "1s")), o)
	if err != nil || c.Tracers[0].Aggregate != 2 ||
		c.Tracers[0].Verbosity.Content != capture.Everywhere(capture.KeepNone) {
		t.Errorf("%v, %+v", err, c)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Example))
	f.Add([]byte(head + "[[tracer]]\nname = 'a'\nfilter = '''\nuid = 1 and uid = 2'''\n[[tracer]]\nname=\"b\"\n" +
		"output={pipe=['zstd', 'x'], to=\"y\"}\nstream.omit=['cpu']"))
	f.Add([]byte("[tracer]\nname='x'\n[a.b.c]\nd=1\n[[a.b.c.e]]\n"))
	f.Add([]byte("tracer = [{name='a', input={pid=[1]}, filter=\"\"\"\\\nop = x\"\"\"}]\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := Parse("f", doc, options())
		if (c == nil) != (err != nil) {
			t.Fatalf("%v, %v", c, err)
		}
		if err == nil {
			for _, w := range c.Warnings {
				within(t, doc, w)
			}
			if len(c.Tracers) == 0 || len(c.Groups()) == 0 {
				t.Fatal("no tracers")
			}
			return
		}
		for _, e := range err.(Errors) {
			within(t, doc, e)
		}
	})
}

// within checks that an error is about a place in the document.
func within(t *testing.T, doc []byte, e *Error) {
	t.Helper()
	lines := strings.Split(string(doc), "\n")
	if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > len(lines[e.Line-1])+1 || e.What == "" {
		t.Errorf("%v: not in the document", e)
	}
}
