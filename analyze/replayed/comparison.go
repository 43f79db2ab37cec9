// SPDX-License-Identifier: Apache-2.0

package replayed

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// NewComparison begins the report of replays of a tape.
func NewComparison(t *trace.Tape) *compare.Comparison {
	m, h := t.Manifest(), t.Host(0)
	c := &compare.Comparison{Title: cmp.Or(strings.Join(h.Command, " "), h.Target, t.Name())}
	c.Lines = append(c.Lines, fmt.Sprintf("%s of %s and %s, recorded on %s (Linux %s, %s) with %s, content %s",
		report.Plural(m.Counts.Events, "event", "events"),
		report.Plural(m.Counts.Processes, "process", "processes"), report.Plural(m.Counts.Threads, "thread", "threads"),
		cmp.Or(h.Head.Host, "an unknown host"), h.Kernel, h.Arch, h.Backend, h.Content))
	return c
}

// Usage is the CPU time that a process's ended children have used, ns.
type Usage struct{ user, system int64 }

// ChildUsage returns that of this process.
func ChildUsage() Usage {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r) != nil {
		return Usage{}
	}
	return Usage{r.Utime.Nano(), r.Stime.Nano()}
}

// RunOf turns the report of a replay into a run. before is ChildUsage from before it.
func RunOf(rep *replay.Report, o *replay.Options, before Usage) (run compare.Run, recorded compare.Side) {
	now := ChildUsage()
	run, recorded = reported(rep, o.Checks != replay.CheckNone)
	run.UserNS, run.SystemNS = now.user-before.user, now.system-before.system
	return run, recorded
}

// reported turns the report of a replay into a run; of its CPU time it says nothing.
func reported(rep *replay.Report, checked bool) (run compare.Run, recorded compare.Side) {
	recorded, run.Side = sidesOf(rep)
	run.Calls, run.Modelled, run.Skipped = rep.Replayed, rep.Emulated, rep.Skipped
	run.Different, run.Uncompared, run.Checked, run.Paths, run.Problems = rep.Different, rep.Uncompared, checked ||
		!rep.OK(), rep.TreePaths, rep.Problems
	for _, m := range rep.Mismatches {
		run.Mismatches = append(run.Mismatches, compare.Difference{Event: m.Seq, Thread: m.TID,
			What: m.Op + ": " + m.Field, Path: m.Path, Want: m.Expected, Got: m.Got})
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
	return compare.Op{Op: name, Count: l.Count, Bytes: uint64(max(l.Bytes, 0)), TotalNS: l.TotalNS, P50NS: l.P50NS,
		P95NS: l.P95NS, P99NS: l.P99NS, MaxNS: l.MaxNS}
}

func rate(r *replay.Rate) *compare.Series {
	return &compare.Series{BinNS: r.BinNS, Bytes: r.Bytes}
}
