// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// Part is the part of a tape that flags pick.
type Part struct {
	slice.Pick
	filter FilterFlags
}

// Add adds the flags that pick events, of slice and of replay.
func (p *Part) Add(f *pflag.FlagSet) {
	f.StringVar(&p.From, "from", "", "the first event, by number, `TIME` or note:TEXT")
	f.StringVar(&p.To, "to", "", "the last event, by number, `TIME` or note:TEXT")
	f.StringVar(&p.Notes, "between-notes", "",
		"only what lies between two notes, `FIRST,LAST`: from the first note with the one text to the next note with "+
			"the other")
	AddPIDs(f, &p.PIDs, "only calls of the process `PID`, or of several with commas")
	f.BoolVar(&p.Tree, "tree", false, "with --pid: also calls of the descendants of these processes")
	p.filter.Add(f)
}

// AddPIDs adds a flag --pid with the numbers of processes, none if it is not given.
func AddPIDs(f *pflag.FlagSet, pids *[]uint, usage string) {
	f.UintSliceVar(pids, "pid", nil, usage)
	f.Lookup("pid").DefValue = "" // the help would show [] otherwise
}

// Picks reports whether only a part of the tape is wanted.
func (p *Part) Picks() bool { return !p.All() || p.filter.Given() }

// Options says what is wanted of a tape.
func (p *Part) Options(c *Console, t *trace.Tape) (*slice.Options, error) {
	o := &slice.Options{Program: Program()}
	filters, err := p.Filters()
	if err != nil {
		return nil, Usage(err)
	}
	p.filter.Texts = append(p.filter.Texts, filters...)
	if o.Filter, err = p.filter.Graph(c, t); err != nil {
		return nil, err
	}
	if err := p.Apply(t, o); err != nil {
		return nil, Usage(err)
	}
	return o, nil
}

// Temporary makes a slice that is gone when it is closed.
func (p *Part) Temporary(ctx context.Context, c *Console, t *trace.Tape) (*trace.Tape, error) {
	o, err := p.Options(c, t)
	if err != nil {
		return nil, err
	}
	part, err := slice.Temporary(ctx, t, "", o)
	return part, Found(err, slice.ErrEmpty)
}
