package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/aggregate/meter"
	"github.com/iotape/iotape/analyze/aggregate/view"
	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/count"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
)

// topPlan is what to count, and what to do with it.
type topPlan struct {
	record session.Plan // of which only the target, the filter's screen and the owner count
	meter  meter.Options
	view   view.Options
	json   bool
	live   bool   // on a screen of its own
	count  int    // read-outs; 0: until the end
	rows   int    // of the kernel's tables
	tape   string // count this instead
	detail detailPlan
}

func newTop(c *console) *cobra.Command {
	var p topPlan
	var by, order, user string
	var alarms []string
	var plain bool
	var target targetFlags
	var filter filterFlags
	cmd := &cobra.Command{
		Use:   "top [flags] {[--] COMMAND [ARG...] | --pid PID | --cgroup PATH | --all | --tape TAPE}",
		Short: "Count calls in the kernel, show them live, export them, raise alarms",
		Long: `Top counts system calls without recording them: how many, how many failed, what
they moved and how long they took, by operation, user, process, extension of the
file's name, or latency. It shows what the last interval had, on a terminal as a
screen that is drawn anew, elsewhere as a table for each interval and one of all at
the end. It needs eBPF; docs/top.md says what is counted and where the limits are.

On a screen the command's output is kept, and shown at the end. Keys: q quits (and
ends the command with SIGTERM), s sorts by the next column, t shows sums, / filters
rows, ? says what else there is.

With --listen the sums are offered to Prometheus. With --alarm a line says when a
rate is abnormal, --alarm-exec runs a command for it, and --detail records the
process in detail from then on, for a while:

  what        an operation, several with commas, class NAME, or any
  of          before it, what is measured: calls (if nothing is said), failures,
              bytes, read, written, time; mean, p50, p90, p99, max
  by          after it, for each what: process, user, op, extension
  limit       > 100/s, < 1MiB/s, > 50ms; or > 6 sigma: from the moving mean
  for         how long it has to be so`,
		Example: `  iotape top -- dd if=/dev/zero of=x bs=4k count=100000
  sudo iotape top --all --by process
  sudo iotape top --pid 4711 --by op,extension --interval 5s --json
  sudo iotape top --all --filter 'class = sync and latency > 10ms'
  sudo iotape top --all --listen 127.0.0.1:9464 --alarm 'p99 of fsync > 100ms for 10s'
  sudo iotape top --all --by process --alarm 'unlink,unlinkat by process > 100/s for 3s' \
      --alarm-exec 'logger -t iotape unlinks' --detail /var/tmp/alarms
  iotape top --tape db.tape --by process,op`,
		Annotations: exits("N  what the command returned; 128+N if signal N ended it", "0  done", "2  could not be done", "126, 127  the command cannot be executed, was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if p.meter.By, err = aggregate.ParseBy(by); err != nil {
				return usageError{err}
			}
			if p.view.Order = aggregate.Order(order); !slices.Contains(aggregate.Orders(), p.view.Order) {
				return usageError{fmt.Errorf("sort %q is none of %s", order, orderNames())}
			}
			for _, text := range alarms {
				r, err := alarm.ParseRule(text)
				if err != nil {
					return usageError{err}
				}
				p.meter.Rules = append(p.meter.Rules, r)
			}
			if p.tape != "" {
				if len(args) > 0 || target != (targetFlags{}) || len(alarms) > 0 || p.meter.Listen != "" {
					return usageError{errors.New("--tape is for what was recorded: no command, target, alarm or address goes with it")}
				}
				return p.ofTape(cmd.Context(), c, &filter)
			}
			if p.record.Backends, err = session.ParseBackends("ebpf"); err != nil {
				return err
			}
			p.record.Capture.Overflow = capture.OverflowDrop
			if err := target.plan(&p.record, args); err != nil {
				return usageError{err}
			}
			if err := p.check(&target); err != nil {
				return usageError{err}
			}
			if p.record.Owner, err = session.FindOwner(user); err != nil {
				return usageError{err}
			}
			p.record.Owner.Apply(&p.record.Capture)
			if p.record.Capture.Prefilter, err = exactScreen(c, &filter); err != nil {
				return err
			}
			if term.IsTerminal(c.out) {
				p.view.Width = term.Width(c.out)
			}
			p.live = !plain && !p.json && term.IsTerminal(c.out) && term.IsTerminal(c.in) && os.Getenv("TERM") != "dumb"
			return top(cmd.Context(), c, &p)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are the command's
	target.add(cmd, "count")
	f.StringVarP(&user, "user", "u", "", "as root: run the command as `USER`; under sudo, who called it")
	f.StringVar(&by, "by", "op", "tell calls apart by `WHAT`: op, user, process, extension, latency, with commas")
	filter.add(f)
	f.DurationVar(&p.meter.Interval, "interval", time.Second, "`TIME` between two read-outs, from 100ms to 1m")
	f.StringVar(&order, "sort", "calls", "`ORDER` of the rows: "+orderNames())
	f.IntVar(&p.view.Rows, "rows", 30, "show `N` rows; 0 is all (not on a screen, which has what fits)")
	f.IntVar(&p.count, "count", 0, "with --pid, --cgroup and --all: stop after `N` read-outs")
	f.BoolVar(&p.json, "json", false, "one JSON object for each interval, in a line")
	f.BoolVar(&plain, "plain", false, "tables, one below the other, on a terminal too; the command keeps the terminal")
	f.IntVar(&p.rows, "kernel-rows", 0, "room for `N` rows in an interval, further calls are counted in one; 0 is what fits into 64 MiB, at most 16384")
	f.StringVar(&p.tape, "tape", "", "count the events of a `TAPE` instead")
	f.StringVar(&p.meter.Listen, "listen", "", "offer the sums to Prometheus at http://`HOST:PORT`/metrics; on the loopback device if HOST is empty")
	f.IntVar(&p.meter.Series, "series", meter.DefaultSeries, "with --listen: `N` rows at most, the others are one more")
	f.StringArrayVar(&alarms, "alarm", nil, "raise an alarm when `RULE` holds, such as 'unlink by process > 100/s for 3s'; repeatable")
	f.StringVar(&p.detail.exec, "alarm-exec", "", "run `COMMAND` when an alarm begins and when it ends: words with spaces between them, no shell; the values are in IOTAPE_ALARM…")
	f.StringVar(&p.detail.dir, "detail", "", "when an alarm begins, record its process (or, if its rule has none, what is counted) into `DIR`")
	f.DurationVar(&p.detail.duration, "detail-for", 10*time.Second, "with --detail: record for `TIME`")
	f.StringVar(&p.detail.content, "detail-content", "full", "with --detail: `WHICH` content to keep, as in record --content")
	return cmd
}

func orderNames() string {
	var names []string
	for _, o := range aggregate.Orders() {
		names = append(names, string(o))
	}
	return strings.Join(names, ", ")
}

// check says what is wrong with the plan.
func (p *topPlan) check(target *targetFlags) error {
	switch {
	case p.meter.Interval < count.MinInterval || p.meter.Interval > count.MaxInterval:
		return fmt.Errorf("interval %s is not from %s to %s", p.meter.Interval, count.MinInterval, count.MaxInterval)
	case p.count < 0 || p.view.Rows < 0 || p.rows < 0 || p.meter.Series < 0:
		return errors.New("less than 0 of something cannot be had")
	case p.count > 0 && !p.record.Capture.Running():
		return errors.New("--count is for --pid, --cgroup and --all: a command is counted to its end")
	case len(p.meter.Rules) == 0 && (p.detail.exec != "" || p.detail.dir != ""):
		return errors.New("--alarm-exec and --detail need an --alarm")
	}
	return p.detail.check(target)
}

// exactScreen returns the screen of a filter, nil if none is given. The kernel has to
// decide all of it: of what is counted nothing is left to be asked later.
func exactScreen(c *console, filter *filterFlags) (*predicate.Prefilter, error) {
	x, err := filter.expr()
	if x == nil || err != nil {
		return nil, err
	}
	g, err := recordFilter(c, x)
	if err != nil {
		return nil, err
	}
	s, undecided := g.Exact()
	if len(undecided) == 0 {
		return s, nil
	}
	var names []string
	for _, op := range undecided[:min(len(undecided), 3)] {
		if op == event.OpUnknown {
			names = append(names, "calls that are not in the operation table")
		} else {
			names = append(names, op.String())
		}
	}
	if n := len(undecided) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("%d others", n))
	}
	return nil, hint.With(usageError{fmt.Errorf("the kernel alone cannot decide this filter, of %s", strings.Join(names, ", "))},
		"docs/filters.md says which tests are decided at capture; add one of op to leave out what cannot be")
}

// ofTape counts what a tape has.
func (p *topPlan) ofTape(ctx context.Context, c *console, filter *filterFlags) error {
	t, err := openTape(ctx, p.tape)
	if err != nil {
		return err
	}
	defer t.Close()
	g, err := filter.graph(c, t)
	if err != nil {
		return err
	}
	table := aggregate.NewTable(p.meter.By, p.rows)
	for ev, err := range filtered(c, t, g) {
		if err != nil {
			return err
		}
		table.Count(ev)
	}
	p.view.UserName = view.UserNames()
	return c.print(func(w *bufio.Writer) error {
		if p.json {
			m := t.Manifest()
			return p.view.JSON(w, &aggregate.IntervalSnapshot{Table: table, At: tapeEnd(t), Elapsed: time.Duration(max(m.LastNS-m.FirstNS, 1)), Last: true})
		}
		fmt.Fprintln(w, view.TotalText(table))
		return p.view.Text(w, table, 0)
	})
}

func tapeEnd(t *trace.Tape) time.Time { return time.Unix(0, t.Host(0).Wall(t.Manifest().LastNS)) }

// errEnough ends counting after so many read-outs.
var errEnough = errors.New("enough")

// top counts.
func top(ctx context.Context, c *console, p *topPlan) error {
	p.view.UserName = view.UserNames()
	if !p.record.Capture.Running() {
		ctx = context.WithoutCancel(ctx) // the terminal's signals are for the command
	}
	p.record.Until = ctx
	ctx, cancel := p.record.Context()
	defer cancel()
	out := newTopOutput(c, p, cancel)
	p.meter.Show, p.meter.Alarm, p.meter.Say = out.show, out.alarm, out.say
	p.detail.plan(&p.meter, &p.record)
	m, err := meter.New(&p.meter)
	if err != nil {
		return err
	}
	defer m.Close()
	if a := m.Addr(); a != nil {
		out.say("metrics are at http://" + a.String() + "/metrics")
	}
	if err := out.start(); err != nil {
		return err
	}
	var res capture.Result
	err = m.Run(ctx, count.Counting(&p.record.Capture, p.rows, &res))
	if errors.Is(err, errEnough) {
		err = nil
	}
	endErr := out.end(m.Sum(), err == nil)
	switch {
	case err != nil && len(p.record.Capture.Command) > 0:
		return commandError(session.StartError(p.record.Capture.Command[0], err))
	case err != nil:
		return err
	case endErr != nil:
		return endErr
	}
	return commandStatus(&res)
}
