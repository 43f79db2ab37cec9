// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/iotape/iotape/internal/spell"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/tracer"
)

// parser makes a Config of a document, and collects what is wrong.
type parser struct {
	file   string
	doc    []byte
	o      *Options
	places places
	errs   Errors
	warn   Errors
}

func (p *parser) errorf(path, format string, args ...any) *Error {
	e := newError(p.file, p.doc, p.places, path, fmt.Sprintf(format, args...))
	p.errs = append(p.errs, e)
	return e
}

// maxTracers bounds the tracers of a configuration.
const maxTracers = 64

func (p *parser) config(d *document) *Config {
	c := &Config{File: p.file, doc: p.doc, places: p.places}
	c.Capture = p.capture(&d.Capture)
	c.Control = Control{Name: d.Control.Name, Off: !yes(d.Control.Enabled, true), Late: yes(d.Control.Late, true)}
	if n := c.Control.Name; n != "" && !validName().MatchString(n) {
		p.errorf("control.name", "control.name %q: a name has letters, digits, dots, dashes and underscores", n)
	}
	c.Control.Late = c.Control.Late && !c.Control.Off
	common := p.o.Input
	if d.Input != nil {
		if common != nil {
			p.errorf("input", "what to record is on the command line, too").Hint = "take out one of both"
		}
		common = p.input("input", d.Input)
	}
	if len(d.Tracer) == 0 {
		p.errorf("", "there is no [[tracer]]").Hint = "iotape run --example shows some"
	}
	if len(d.Tracer) > maxTracers {
		p.errorf(fmt.Sprintf("tracer[%d]", maxTracers), "more than %d tracers", maxTracers)
		return c
	}
	names, tapes := map[string]string{}, map[string]string{}
	for i := range d.Tracer {
		t := p.tracer(fmt.Sprintf("tracer[%d]", i), &d.Tracer[i], common)
		if other, taken := names[t.Name]; taken {
			line, _ := p.line(other)
			p.errorf(t.Path+".name", "the tracer of line %d is named %q, too", line, t.Name)
		}
		names[t.Name] = t.Path
		if out := t.Output.Tape + t.Output.To; out != "" && out != "-" {
			if other, taken := tapes[out]; taken {
				line, _ := p.line(other)
				at := t.Path + ".output.tape"
				if t.Output.To != "" {
					at = t.Path + ".output.to"
				}
				p.errorf(at, "the tracer of line %d writes to %s, too", line, out)
			}
			tapes[out] = t.Path
		}
		if !c.Control.Late && !t.Start {
			p.errorf(t.Path+".start", "nobody could start this tracer: control.late is false")
		}
		c.Tracers = append(c.Tracers, t)
	}
	p.covered(c)
	c.Warnings = p.warn
	return c
}

// line returns where a path's table begins.
func (p *parser) line(path string) (line, column int) {
	v, _ := p.places.of(path)
	return lineColumn(p.doc, max(v.key, 0))
}

func yes(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

var validName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)
})

// oneOf says that a value is none of some words.
func (p *parser) oneOf(path, value string, words ...string) {
	if slices.Contains(words, value) {
		return
	}
	e := p.errorf(path, "%s %q is none of %s", last(path), value, strings.Join(words, ", "))
	if near := spell.Nearest(value, words); near != "" {
		e.Hint = "did you mean " + near + "?"
	}
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func (p *parser) capture(t *captureTable) Capture {
	c := Capture{Backend: "auto", Wakeups: t.Wakeups}
	if t.Backend != "" {
		p.oneOf("capture.backend", t.Backend, "auto", "ebpf", "interpose", "ptrace")
		c.Backend = t.Backend
	}
	if t.OnOverflow != "" {
		p.oneOf("capture.on-overflow", t.OnOverflow, "block", "drop")
		c.Overflow = capture.Overflow(t.OnOverflow)
	}
	if t.Mmap != "" {
		p.oneOf("capture.mmap", t.Mmap, "data", "full", "written", "off")
		c.Mmap = capture.Mmap(t.Mmap)
	}
	if t.Ring != "" {
		c.Ring = p.size("capture.ring", t.Ring)
	}
	if t.Content != "" {
		content := p.content("capture.content", t.Content)
		c.Content = &content
	}
	return c
}

func (p *parser) content(path, text string) capture.Content {
	c, err := capture.ParseContent(text)
	if err != nil {
		p.errorf(path, "%v", err)
	}
	return c
}

func (p *parser) size(path, text string) int64 {
	digits := strings.TrimRight(text, "KMG")
	shift, ok := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}[text[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !ok || n < 1 {
		p.errorf(path, "%s %q is no size such as 64K, 128M or 1G", last(path), text)
	}
	return n << shift
}

// duration reads a time that is more than nothing; "" is 0.
func (p *parser) duration(path, text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		p.errorf(path, "%s %q is no time such as 1us, 50ms or 30s", last(path), text)
	}
	return d
}

func (p *parser) input(path string, t *inputTable) *Input {
	in := &Input{Command: t.Command, PIDs: t.PID, Cgroup: t.Cgroup, All: t.All, User: t.User, path: path}
	var given []string
	for _, k := range []struct {
		name string
		is   bool
	}{{"command", t.Command != nil}, {"pid", t.PID != nil}, {"cgroup", t.Cgroup != ""}, {"all", t.All},
		{"mount", t.Mount != nil}} {
		if k.is {
			given = append(given, k.name)
		}
	}
	switch {
	case len(given) == 0:
		p.errorf(path, "the input says nothing to record").Hint = "it needs one of command, pid, cgroup, all and mount"
		return in
	case len(given) > 1:
		p.errorf(path+"."+given[1], "the input has %s and %s, and can have one of them", given[0],
			given[1]).Hint = "tracers can have an input each: [tracer.input]"
	}
	if t.Command != nil && (len(t.Command) == 0 || t.Command[0] == "") {
		p.errorf(path+".command", "the command is empty")
	}
	for i, pid := range t.PID {
		if pid <= 0 {
			p.errorf(fmt.Sprintf("%s.pid[%d]", path, i), "pid %d is not the number of a process", pid)
		}
	}
	if t.PID != nil && len(t.PID) == 0 {
		p.errorf(path+".pid", "the list of processes is empty")
	}
	if t.User != "" && t.Command == nil {
		p.errorf(path+".user", "user is for a command")
	}
	if in.Duration = p.duration(path+".duration", t.Duration); in.Duration > 0 && t.Command != nil {
		p.errorf(path+".duration", "duration is for pid, cgroup, all and mount: a command is recorded to its end")
	}
	if m := t.Mount; m != nil {
		in.Mount = &Mount{Lower: m.Lower, At: m.At, Cache: p.duration(path+".mount.cache", m.Cache)}
		if m.Lower == "" || m.At == "" {
			p.errorf(path+".mount", "a mount needs lower, the directory, and at, where it is shown")
		}
	}
	return in
}

func (p *parser) tracer(path string, t *tracerTable, common *Input) *TracerSpec {
	out := &TracerSpec{Path: path, Name: t.Name, Input: common, Start: yes(t.Start, true), Resolution: 1}
	switch {
	case t.Name == "":
		p.errorf(path, "the tracer has no name").Hint = `give it one: name = "writes"`
	case !validName().MatchString(t.Name):
		p.errorf(path+".name", "name %q: a name has letters, digits, dots, dashes and underscores, at most 64", t.Name)
	}
	if t.Input != nil {
		out.Input = p.input(path+".input", t.Input)
	} else if common == nil {
		p.errorf(path, "tracer %q has no input",
			t.Name).Hint = "say what to record in [tracer.input], in [input] for all tracers, or as iotape run " +
			"CONFIG -- COMMAND"
	}
	out.Filter = p.filter(path, t)
	if _, given := p.places[path+".aggregate"]; given || t.Aggregate != nil { // perhaps without keys
		out.Aggregate = p.aggregate(path+".aggregate", t)
		out.Verbosity.Content = capture.Everywhere(capture.KeepNone)
	} else if t.Stream != nil {
		p.stream(path+".stream", t.Stream, out)
	}
	out.Output = p.output(path+".output", &t.Output)
	p.redact(path+".output.redact", t, out)
	return out
}

func (p *parser) filter(path string, t *tracerTable) *predicate.Graph {
	at, text := path+".filter", t.Filter
	if t.FilterFile != "" {
		if t.Filter != "" {
			p.errorf(path+".filter-file", "a tracer has a filter or a filter-file, not both")
			return nil
		}
		at = path + ".filter-file"
		if p.o.FilterFile == nil {
			return nil
		}
		var err error
		if text, err = p.o.FilterFile(t.FilterFile); err != nil {
			p.errorf(at, "%v", err)
			return nil
		}
	}
	if text == "" || p.o.Filter == nil {
		return nil
	}
	g, err := p.o.Filter(text)
	if err != nil {
		p.inFilter(at, err)
		return nil
	}
	for _, w := range g.Warnings() {
		e := newError(p.file, p.doc, p.places, at, "")
		if offset, ok := p.places[at].inside(w.Pos); ok && g.Expr().Source() == text {
			e.Line, e.Column = lineColumn(p.doc, offset)
		}
		e.What = fmt.Sprintf("tracer %q: %s", t.Name, w.Message)
		p.warn = append(p.warn, e)
	}
	return g
}

// inFilter says what is wrong with a filter, at its place in the document if it is there.
func (p *parser) inFilter(path string, err error) {
	e := p.errorf(path, "%v", err)
	if !errors.As(err, &e.Filter) {
		return
	}
	if offset, ok := p.places[path].inside(e.Filter.Pos); ok && strings.Contains(p.places[path].text, e.Filter.Source) {
		e.Line, e.Column = lineColumn(p.doc, offset)
		e.What, e.Hint = "filter: "+e.Filter.Message, e.Filter.Hint
	}
}

func (p *parser) stream(path string, t *streamTable, out *TracerSpec) {
	v := &out.Verbosity
	v.Wakeups = t.Wakeups
	if t.Content != "" {
		v.Content = p.content(path+".content", t.Content)
	}
	if d := p.duration(path+".resolution", t.Resolution); d > 0 {
		if out.Resolution = d; d > time.Hour {
			p.errorf(path+".resolution", "resolution %s is more than an hour", d)
		}
	}
	groups := slices.Sorted(maps.Keys(tracer.Groups))
	for i, name := range t.Omit {
		p.oneOf(fmt.Sprintf("%s.omit[%d]", path, i), name, groups...)
		v.Omit |= tracer.Groups[name]
	}
}

func (p *parser) aggregate(path string, t *tracerTable) any {
	if t.Stream != nil {
		p.errorf(path, "a tracer has one assembly driver: stream or aggregate")
	}
	if p.o.Aggregate == nil {
		p.errorf(path, "this iotape has no assembly driver aggregate").Hint = "[tracer.stream] records events"
		return nil
	}
	a, err := p.o.Aggregate(t.Aggregate)
	if err != nil {
		var keyed interface{ Key() string }
		if errors.As(err, &keyed) {
			path += "." + keyed.Key()
		}
		p.errorf(path, "aggregate: %v", err)
	}
	return a
}

func (p *parser) output(path string, t *outputTable) Output {
	out := Output{Tape: strings.TrimRight(t.Tape, "/"), To: t.To, Index: yes(t.Index, true), KeepStream: t.KeepStream}
	if t.To != "" {
		for _, k := range []struct {
			key   string
			given bool
		}{{"tape", t.Tape != ""}, {"index", t.Index != nil}, {"keep-stream", t.KeepStream}} {
			if k.given {
				p.errorf(path+"."+k.key, "%s is for a tape, and to = %q makes none", k.key, t.To)
			}
		}
	}
	if t.Tape != "" && out.Tape == "" {
		p.errorf(path+".tape", "the tape cannot be the root directory")
	}
	if len(t.Pipe) == 0 {
		return out
	}
	for i, word := range t.Pipe { // one by one, to say which is wrong
		if _, err := chain.Parse(word); err != nil {
			e := p.errorf(fmt.Sprintf("%s.pipe[%d]", path, i), "pipe: %v", err)
			name, _, _ := strings.Cut(word, ":")
			if near := spell.Nearest(name, chain.Words()); near != "" && near != name {
				e.Hint = "did you mean " + near + "?"
			}
			return out
		}
	}
	var err error
	if out.Pipe, err = chain.Parse(strings.Join(t.Pipe, ",")); err != nil {
		p.errorf(path+".pipe", "pipe: %v", err)
	}
	return out
}

// redact reads the patterns of what the tracer masks.
func (p *parser) redact(path string, t *tracerTable, out *TracerSpec) {
	if t.Output.Redact == "" {
		return
	}
	switch {
	case p.o.Redact == nil:
		p.errorf(path, "this iotape cannot mask")
		return
	case t.Aggregate != nil:
		p.errorf(path, "an aggregate has sums, and nothing that could be masked")
		return
	case out.Verbosity.Content.Hashes():
		p.errorf(path, "content of which only hashes or signatures are kept cannot be masked: they are made before").
			Hint = "use content = full, head:N or none"
		return
	}
	var err error
	if out.Output.Redact, err = p.o.Redact(t.Output.Redact); err != nil {
		p.errorf(path, "%v", err)
	}
}

// covered checks that the capture, if it is told what to keep, has what tracers ask for.
func (p *parser) covered(c *Config) {
	if c.Capture.Content == nil {
		return
	}
	for _, t := range c.Tracers {
		if !c.Capture.Content.Covers(t.Verbosity.Content) {
			p.errorf(t.Path+".stream.content", "tracer %q asks for content %s, and capture.content keeps %s", t.Name,
				t.Verbosity.Content, c.Capture.Content)
		}
	}
}
