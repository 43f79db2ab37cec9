package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// newComparison begins the report of replays of a tape.
func newComparison(t *trace.Tape) *compare.Comparison {
	m, h := t.Manifest(), t.Host(0)
	c := &compare.Comparison{Title: cmp.Or(strings.Join(h.Command, " "), h.Target, t.Name())}
	c.Lines = append(c.Lines, fmt.Sprintf("%s of %s and %s, recorded on %s (Linux %s, %s) with %s, content %s", report.Plural(m.Counts.Events, "event", "events"),
		report.Plural(m.Counts.Processes, "process", "processes"), report.Plural(m.Counts.Threads, "thread", "threads"), cmp.Or(h.Head.Host, "an unknown host"), h.Kernel, h.Arch, h.Backend, h.Content))
	return c
}

// usage is the CPU time that a process's ended children have used, ns.
type usage struct{ user, system int64 }

func childUsage() usage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r) != nil {
		return usage{}
	}
	return usage{r.Utime.Nano(), r.Stime.Nano()}
}

// runOf turns the report of a replay into a run. before is childUsage from before it.
func runOf(rep *replay.Report, o *replay.Options, before usage) (run compare.Run, recorded compare.Side) {
	now := childUsage()
	run, recorded = reported(rep, o.Checks != replay.CheckNone)
	run.UserNS, run.SystemNS = now.user-before.user, now.system-before.system
	return run, recorded
}

// reported turns the report of a replay into a run; of its CPU time it says nothing.
func reported(rep *replay.Report, checked bool) (run compare.Run, recorded compare.Side) {
	recorded, run.Side = sidesOf(rep)
	run.Calls, run.Modelled, run.Skipped = rep.Replayed, rep.Emulated, rep.Skipped
	run.Different, run.Uncompared, run.Checked, run.Paths, run.Problems = rep.Different, rep.Uncompared, checked || !rep.OK(), rep.TreePaths, rep.Problems
	for _, m := range rep.Mismatches {
		run.Mismatches = append(run.Mismatches, compare.Difference{Event: m.Seq, Thread: m.TID, What: m.Op + ": " + m.Field, Path: m.Path, Want: m.Expected, Got: m.Got})
	}
	for _, d := range rep.Tree {
		run.Tree = append(run.Tree, compare.Difference{What: d.Field, Path: d.Path, Want: d.Want, Got: d.Got})
	}
	if s := rep.Timing; s != nil && s.Pace == replay.PaceRecorded {
		run.Paced, run.LagMeanNS, run.LagMaxNS = true, s.LagMeanNS, s.LagMaxNS
	}
	return run, recorded
}

// sidesOf returns what the calls that a replay made did as recorded, and in the replay.
func sidesOf(rep *replay.Report) (recorded, replayed compare.Side) {
	recorded.Rate, replayed.Rate = rate(&rep.RecordedRate), rate(&rep.ReplayedRate)
	if s := rep.Timing; s != nil {
		recorded.ElapsedNS, replayed.ElapsedNS = s.RecordedNS, s.ReplayedNS
	}
	for i := range rep.Ops {
		o := &rep.Ops[i]
		recorded.Ops = append(recorded.Ops, opOf(o.Op, &o.Recorded))
		replayed.Ops = append(replayed.Ops, opOf(o.Op, &o.Replayed))
	}
	return recorded, replayed
}

func opOf(name string, l *replay.Latency) compare.Op {
	return compare.Op{Op: name, Count: l.Count, Bytes: uint64(max(l.Bytes, 0)), TotalNS: l.TotalNS, P50NS: l.P50NS, P95NS: l.P95NS, P99NS: l.P99NS, MaxNS: l.MaxNS}
}

func rate(r *replay.Rate) *compare.Series {
	return &compare.Series{BinNS: r.BinNS, Bytes: r.Bytes}
}

// writePage writes a page as one file, whole or not at all.
func writePage(p *page.Page, name string) error {
	return writeHTML(name, func(w io.Writer) error { return p.HTML(w, nil) })
}

// writeHTML writes a file, whole or not at all.
func writeHTML(name string, write func(w io.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			os.Remove(name)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}
