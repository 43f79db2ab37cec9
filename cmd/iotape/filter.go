// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/pflag"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// filterFlags are --filter and --filter-file.
type filterFlags struct {
	texts []string
	file  string
}

func (f *filterFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.texts, "filter", nil,
		"only events that match `EXPR`, such as 'path glob *.sst and latency > 10ms' (docs/filters.md), or "+
			"strace:OPTIONS, or dfstrace:FILE; repeatable: an event must match all")
	flags.StringVar(&f.file, "filter-file", "", "read a filter expression from `FILE`")
}

// given reports whether there is a filter.
func (f *filterFlags) given() bool { return len(f.texts) > 0 || f.file != "" }

// expr returns the filter, nil if none is given.
func (f *filterFlags) expr() (*predicate.Expr, error) {
	x, err := source.All(f.texts, f.file)
	return x, usageIf[*source.Error](err)
}

// graph compiles the filter for a tape, and says what is odd about it. It is nil if none
// is given.
func (f *filterFlags) graph(c *console, t *trace.Tape) (*predicate.Graph, error) {
	x, err := f.expr()
	if x == nil || err != nil {
		return nil, err
	}
	return compileFilter(c, x, slice.FilterOptions(t))
}

func compileFilter(c *console, x *predicate.Expr, o *predicate.Options) (*predicate.Graph, error) {
	g, err := predicate.Compile(x, o)
	if err != nil {
		return nil, usageError{err}
	}
	c.warn(g)
	return g, nil
}

// warn says what is odd about a filter.
func (c *console) warn(g *predicate.Graph) {
	for _, w := range g.Warnings() {
		c.say("filter: %s", w.Message)
	}
}

// recordFilter compiles the filter of a recording that is to be made.
func recordFilter(c *console, x *predicate.Expr) (*predicate.Graph, error) {
	return compileFilter(c, x, session.FilterOptions())
}

// filtered iterates over the events that a filter accepts; over all if it is nil.
func filtered(c *console, t *trace.Tape, g *predicate.Graph) iter.Seq2[*event.Event, error] {
	return slice.Events(t, g, c.unknownPrograms)
}

// unknownPrograms says for how many processes a filter with exe had no answer.
func (c *console) unknownPrograms(m *predicate.Matcher) {
	if n := m.Unknown(); n > 0 {
		c.say("filter: the tape does not name the program of a process before its first execve: until then, exe does "+
			"not match %d of them", n)
	}
}

// showPlace prints the line of a filter that is wrong, with a mark.
func (c *console) showPlace(err error) {
	var e *predicate.Error
	if errors.As(err, &e) {
		fmt.Fprintf(c.err, "    %s\n", strings.ReplaceAll(e.Shown(), "\n", "\n    "))
	}
}
