// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/aggregate/meter"
	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/top"
	"github.com/iotape/iotape/trace"
)

func newTop(c *cli.Console) *cobra.Command {
	var o top.Options
	var by, order, user, tape string
	var alarms []string
	var plain bool
	var clock cli.ClockFlags
	var target cli.TargetFlags
	var filter cli.FilterFlags
	cmd := &cobra.Command{
		Use:   "top [flags] {[--] COMMAND [ARG...] | --pid PID | --cgroup PATH | --all | --tape TAPE}",
		Short: "Count calls in the kernel, show and export the counters, raise alarms",
		Long: `Top counts system calls in the kernel and does not record them. For each row it counts
the calls, failures, bytes and time. The rows are operations, users, processes,
extensions of file names, containers, systemd units, latencies or signals (--by). On a terminal, top shows a screen with
the last interval. Elsewhere it prints a table for each interval and a total at the end.
It needs eBPF. docs/top.md describes what is counted, and the limits.

With the screen, top keeps the command's output and shows it at the end. Keys: q quits
(and ends the command with SIGTERM), s sorts by the next column, t shows totals,
/ filters rows, ? lists all keys.

With --listen, Prometheus can read the totals. With --alarm, top prints a line when a
rate is abnormal. --alarm-exec runs a command for each alarm. --detail records the
process in detail for a limited time after the alarm.

A rule is "MEASURE of WHAT by KEYS LIMIT for TIME". Only WHAT and LIMIT are required:

  MEASURE     calls (the default), failures, bytes, read, written, time; mean, p50, p90,
              p99, max
  WHAT        an operation, several with commas, class NAME, or any
  KEYS        evaluate the rule for each process, user, op or extension
  LIMIT       > 100/s, < 1MiB/s, > 50ms; or > 6 sigma, from the moving mean
  TIME        how long the condition must hold`,
		Example: `  iotape top -- dd if=/dev/zero of=x bs=4k count=100000
  sudo iotape top --all --by process
  sudo iotape top --pid 4711 --by op,extension --interval 5s --json
  sudo iotape top --all --filter 'class = sync and latency > 10ms'
  sudo iotape top --all --listen 127.0.0.1:9464 --alarm 'p99 of fsync > 100ms for 10s'
  sudo iotape top --all --by process --alarm 'unlink,unlinkat by process > 100/s for 3s' \
      --alarm-exec 'logger -t iotape unlinks' --detail /var/tmp/alarms
  iotape top --tape db.tape --by process,op`,
		Annotations: cli.Exits("N  the exit status of the command; 128+N if signal N ended it", "0  done",
			"2  could not be done", "126, 127  the command cannot be executed, or was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.In, o.Out, o.Note = c.In, c.Out, c.Reporter().Note
			o.Results, o.View.Clock = c.Escaped(c.Out), clock.Form()
			err := cmp.Or(cli.ParseValue(&o.Meter.By, by, aggregate.ParseBy),
				cli.ParseValue(&o.View.Order, order, top.ParseOrder))
			if err != nil {
				return err
			}
			if o.Meter.By&aggregate.BySignal != 0 && len(alarms) > 0 {
				return cli.Usage(errors.New("--by signal cannot be used with --alarm, which counts calls"))
			}
			for _, text := range alarms {
				r, err := alarm.ParseRule(text)
				if err != nil {
					return cli.Usage(err)
				}
				o.Meter.Rules = append(o.Meter.Rules, r)
			}
			if tape != "" {
				if len(args) > 0 || target.Given() || len(alarms) > 0 || o.Meter.Listen != "" {
					return cli.Usage(errors.New(
						"--tape counts a recording: it cannot be used with a command, a target, --alarm or --listen"))
				}
				return topOfTape(cmd.Context(), c, tape, &filter, &o)
			}
			if err := planTop(c, &o, &target, &filter, args, user); err != nil {
				return err
			}
			if term.IsTerminal(c.Out) {
				o.View.Width = term.Width(c.Out)
			}
			o.Live = !plain && !o.JSON && term.IsTerminal(c.Out) && term.IsTerminal(c.In) && os.Getenv("TERM") != "dumb"
			res, err := top.Run(cmd.Context(), &o)
			if err != nil {
				return cli.CommandError(err)
			}
			return cli.CommandStatus(res)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are the command's
	target.Add(cmd, "count")
	cli.AddUser(f, &user)
	f.StringVar(&by, "by", "op",
		"the keys of the rows, `WHAT` to count by: op, user, process, container, pod, unit, cgroup, signal, file (or "+
			"path), dir, extension, latency, with commas; for all but op, user, process, extension and "+
			"latency the calls are recorded and not kept, which costs more")
	filter.Add(f)
	f.DurationVar(&o.Meter.Interval, "interval", time.Second, "the `TIME` between two read-outs, from 100ms to 1m")
	f.StringVar(&order, "sort", "calls", "`ORDER` of the rows: "+top.OrderNames())
	clock.Add(cmd)
	f.IntVar(&o.View.Rows, "rows", 30, "show `N` rows; 0 means all (a screen shows as many rows as fit)")
	f.IntVar(&o.Count, "count", 0, "with --pid, --cgroup and --all: stop after `N` read-outs")
	f.BoolVar(&o.JSON, "json", false, "print one JSON object for each interval, in one line")
	f.BoolVar(&plain, "plain", false,
		"print one table after another, also on a terminal; the command keeps the terminal")
	f.IntVar(&o.KernelRows, "kernel-rows", 0,
		"keep at most `N` rows for an interval in the kernel, and count further calls in one row; 0 means as many as "+
			"fit into 64 MiB, at most 16384")
	f.StringVar(&tape, "tape", "", "count the events of a `TAPE` instead")
	f.StringVar(&o.Meter.Listen, "listen", "",
		"offer the totals to Prometheus at http://`HOST:PORT`/metrics; an empty HOST means the loopback device")
	f.IntVar(&o.Meter.Series, "series", meter.DefaultSeries,
		"with --listen: offer at most `N` rows, and the sum of all others as one more")
	f.StringArrayVar(&alarms, "alarm", nil,
		"raise an alarm when `RULE` holds, such as 'unlink by process > 100/s for 3s'; repeatable")
	f.StringVar(&o.Detail.Exec, "alarm-exec", "",
		"run `COMMAND` when an alarm starts and when it ends: words separated by spaces, without a shell; the values "+
			"are in the variables IOTAPE_ALARM…")
	f.StringVar(&o.Detail.Dir, "detail", "",
		"when an alarm starts, record its process into `DIR`; if its rule has no process, record all that is counted")
	f.DurationVar(&o.Detail.Duration, "detail-for", 10*time.Second, "with --detail: record for `TIME`")
	f.StringVar(&o.Detail.Content, "detail-content", "full",
		"with --detail: `WHICH` content to keep, as with record --content")
	return cmd
}

// planTop puts the flags and a command into the options.
func planTop(c *cli.Console, o *top.Options, target *cli.TargetFlags, filter *cli.FilterFlags, command []string,
	user string) (err error) {
	if o.Record.Backends, err = session.ParseBackends("ebpf"); err != nil {
		return err
	}
	o.Record.Capture.Overflow = capture.OverflowDrop
	if err := target.Plan(&o.Record, command); err != nil {
		return cli.Usage(err)
	}
	o.Detail.Target = target.Flags()
	if err := o.Check(); err != nil {
		return cli.Usage(err)
	}
	if o.Record.Owner, err = session.FindOwner(user); err != nil {
		return cli.Usage(err)
	}
	o.Record.Owner.Apply(&o.Record.Capture)
	if o.Meter.Needs()&aggregate.Recorded != 0 {
		if o.Record.Filter, err = filter.Expr(); o.Record.Filter == nil || err != nil {
			return err
		}
		g, err := cli.RecordFilter(c, o.Record.Filter)
		if err == nil {
			o.Record.Prefilter(g, true)
		}
		return err
	}
	o.Record.Capture.Prefilter, err = exactScreen(c, filter)
	return err
}

// topOfTape counts what a tape has.
func topOfTape(ctx context.Context, c *cli.Console, name string, filter *cli.FilterFlags, o *top.Options) error {
	t, err := cli.OpenTape(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	g, err := filter.Graph(c, t)
	if err != nil {
		return err
	}
	return countTape(c, t, g, o)
}

// countTape counts the events of a tape that a filter accepts; all if it is nil.
func countTape(c *cli.Console, t *trace.Tape, g *predicate.Graph, o *top.Options) error {
	var fits func(*event.Event) bool
	if g != nil {
		m := g.NewMatcher()
		defer c.UnknownPrograms(m)
		fits = m.Match
	}
	return top.Tape(t, fits, o)
}

// exactScreen returns the screen of a filter, nil if none is given.
func exactScreen(c *cli.Console, filter *cli.FilterFlags) (*predicate.Prefilter, error) {
	x, err := filter.Expr()
	if x == nil || err != nil {
		return nil, err
	}
	g, err := cli.RecordFilter(c, x)
	if err != nil {
		return nil, err
	}
	return top.Screen(g)
}
