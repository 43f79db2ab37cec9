// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/pflag"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// FilterFlags are --filter and --filter-file.
type FilterFlags struct {
	Texts []string // expressions
	File  string   // a file with another one
}

func (f *FilterFlags) Add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.Texts, "filter", nil,
		"only events that match `EXPR`, such as 'path glob *.sst and latency > 10ms' (docs/filters.md), or "+
			"strace:OPTIONS, or dfstrace:FILE; repeatable: an event must match all")
	flags.StringVar(&f.File, "filter-file", "", "read a filter expression from `FILE`")
}

// Given reports whether there is a filter.
func (f *FilterFlags) Given() bool { return len(f.Texts) > 0 || f.File != "" }

// Expr returns the filter, nil if none is given.
func (f *FilterFlags) Expr() (*predicate.Expr, error) {
	x, err := source.All(f.Texts, f.File)
	return x, UsageIf[*source.Error](err)
}

// Graph compiles the filter for a tape, and says what is odd about it. It is nil if none
// is given.
func (f *FilterFlags) Graph(c *Console, t *trace.Tape) (*predicate.Graph, error) {
	x, err := f.Expr()
	if x == nil || err != nil {
		return nil, err
	}
	return compileFilter(c, x, slice.FilterOptions(t))
}

func compileFilter(c *Console, x *predicate.Expr, o *predicate.Options) (*predicate.Graph, error) {
	g, err := predicate.Compile(x, o)
	if err != nil {
		return nil, Usage(err)
	}
	c.warn(g)
	return g, nil
}

// warn says what is odd about a filter.
func (c *Console) warn(g *predicate.Graph) {
	for _, w := range g.Warnings() {
		c.Say("filter: %s", w.Message)
	}
}

// RecordFilter compiles the filter of a recording that is to be made.
func RecordFilter(c *Console, x *predicate.Expr) (*predicate.Graph, error) {
	return compileFilter(c, x, session.FilterOptions())
}

// Filtered iterates over the events that a filter accepts; over all if it is nil.
func Filtered(c *Console, t *trace.Tape, g *predicate.Graph) iter.Seq2[*event.Event, error] {
	return slice.Events(t, g, c.UnknownPrograms)
}

// UnknownPrograms says for how many processes a filter with exe, cgroup, container, pod or unit had no answer.
func (c *Console) UnknownPrograms(m *predicate.Matcher) {
	if n := m.Unknown(); n > 0 {
		c.Say("filter: the tape does not say what %s ran, and where, before the first execve: exe, cgroup, container, "+
			"pod and unit do not match there", report.Plural(n, "process", "processes"))
	}
}

// ShowPlace prints the line of a filter that is wrong, with a mark.
func (c *Console) ShowPlace(err error) {
	var e *predicate.Error
	if errors.As(err, &e) {
		fmt.Fprintf(c.Err, "    %s\n", strings.ReplaceAll(e.Shown(), "\n", "\n    "))
	}
}
