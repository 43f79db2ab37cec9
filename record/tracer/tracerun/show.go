// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/internal/wallclock"
	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/record/tracer/control"
)

// Named reports whether a run has a name or process number; "" is any.
func Named(r *control.Remote, run string) bool {
	return run == "" || run == r.Name || run == strconv.Itoa(r.PID)
}

// Pick returns the one run that is Named.
func Pick(all []*control.Remote, run string) (*control.Remote, error) {
	var found []*control.Remote
	var names []string
	for _, r := range all {
		names = append(names, fmt.Sprintf("%s (%d)", report.Printable(r.Name), r.PID))
		if Named(r, run) {
			found = append(found, r)
		}
	}
	switch {
	case len(all) == 0:
		return nil, hint.With(errors.New("no iotape run of this user is running"),
			"as root, those of root are found; sudo iotape tracers …")
	case len(found) == 0:
		return nil, fmt.Errorf("no iotape run is called %s; there are: %s", run, strings.Join(names, ", "))
	case len(found) > 1:
		return nil, hint.With(fmt.Errorf("several are running: %s", strings.Join(names, ", ")), "choose one with --run")
	}
	return found[0], nil
}

// WriteListJSON writes runs with their tracers as one array.
func WriteListJSON(w io.Writer, list []control.Info) error { return jsonout.Object(w, list) }

// WriteTracerJSON writes all of one tracer as one object.
func WriteTracerJSON(w io.Writer, x *control.TracerStatus) error { return jsonout.Object(w, x) }

// WriteList writes a table of the tracers of runs.
func WriteList(w io.Writer, list []control.Info) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tPID\tTRACER\tSTATE\tBYTES\tLOST\tOUTPUT\tFILTER")
	for _, run := range list {
		for i := range run.Tracers {
			x := &run.Tracers[i]
			filter := x.Filter
			if filter == "" {
				filter = "(all)"
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%d\t%s\t%s\n", report.Printable(run.Name), run.PID,
				report.Printable(x.Name), report.Printable(x.State),
				report.Bytes(x.Bytes), x.Lost, report.Printable(x.Output), report.Printable(filter))
		}
	}
	return t.Flush()
}

// WriteTracer writes all of one tracer for people.
func WriteTracer(w io.Writer, x *control.TracerStatus, clock wallclock.Form) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, report.Printable(value))
		}
	}
	row("tracer", x.Name)
	row("state", x.State)
	row("input", x.Input)
	filter := x.Filter
	if filter == "" {
		filter = "(all)"
	}
	row("filter", filter)
	row("driver", x.Driver)
	row("content", x.Content)
	row("omit", strings.Join(x.Omit, ", "))
	row("resolution", x.Resolution)
	row("layers", strings.Join(x.Layers, ", "))
	row("output", x.Output)
	row("recordings", strconv.Itoa(x.Recordings))
	if !x.Since.IsZero() {
		row("since", clock.Text(x.Since, wallclock.Second))
	}
	row("records", report.Bytes(x.Bytes))
	row("lost", strconv.FormatUint(x.Lost, 10))
	row("error", x.Error)
	row("last", x.Last)
	return t.Flush()
}

// Describe says what a configuration means.
func Describe(w io.Writer, cfg *config.Config) error {
	for _, group := range cfg.Groups() {
		in := group[0].Input
		fmt.Fprintf(w, "%s\n", in.String())
		for _, t := range group {
			filter := "all events"
			if t.Filter != nil {
				filter = t.Filter.Expr().String()
			}
			driver, to := "stream, content "+t.Verbosity.Content.String(), t.OutputName()
			if t.Aggregate != nil {
				driver = "aggregate"
			}
			layers := ""
			if p := t.Output.Pipe; p != nil {
				var names []string
				for _, l := range p.Layers {
					names = append(names, l.Name())
				}
				layers = " through " + strings.Join(names, ", ")
			}
			waits := ""
			if !t.Start {
				waits = "; waits to be started"
			}
			fmt.Fprintf(w, "  %s: %s; %s%s to %s%s\n", t.Name, filter, driver, layers, to, waits)
		}
	}
	return nil
}
