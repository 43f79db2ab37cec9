// SPDX-License-Identifier: Apache-2.0

package replayed

import (
	"fmt"
	"io"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/replay"
)

// maxShown is how many differences the table lists; the JSON has all that were kept.
const maxShown = 20

// WriteText writes the verdict and the first differences of a replay with options o.
func WriteText(w io.Writer, r *replay.Report, o *replay.Options, style term.Style) error {
	fmt.Fprintf(w, "replayed %s events in %s: %s calls made, %s modelled, %s skipped\n",
		report.Count(r.Events), report.Duration(r.ElapsedNS), report.Count(r.Replayed), report.Count(r.Emulated),
		report.Count(r.Skipped))
	for _, p := range r.Problems {
		fmt.Fprintf(w, "the target did not allow: %s\n", report.Printable(p))
	}
	for _, m := range r.Confinement.Missing {
		fmt.Fprintf(w, "confined without: %s\n", report.Printable(m))
	}
	if text := LeftOff(r.LeftOff); text != "" {
		fmt.Fprintln(w, text)
	}
	if t := r.Timing; t != nil && t.Pace == replay.PaceRecorded {
		fmt.Fprintf(w, "%s as recorded, %s here (%+.2f %% of the schedule); calls were %s late on average, %s at "+
			"most\n", report.Duration(t.RecordedNS), report.Duration(t.ReplayedNS),
			100*(float64(t.ReplayedNS)*t.Speed/float64(max(t.RecordedNS, 1))-1), report.Duration(t.LagMeanNS),
			report.Duration(t.LagMaxNS))
	} else if t != nil {
		fmt.Fprintf(w, "calls went on for %s as recorded, and for %s here\n", report.Duration(t.RecordedNS),
			report.Duration(t.ReplayedNS))
	}
	for _, m := range r.Members {
		fmt.Fprintf(w, "host %s made %s calls\n", report.Printable(m.Name), report.Count(m.Replayed))
	}
	if r.Aborted {
		fmt.Fprintln(w, style.Bad("stopped at the first difference"))
	}
	if o.Checks == replay.CheckNone && r.OK() {
		return nil
	}
	if r.OK() {
		fmt.Fprintln(w, style.Good(agreement(r)))
		return writeUncompared(w, r)
	}
	if err := writeUncompared(w, r); err != nil {
		return err
	}
	writeOmitted(w, r, style)
	fmt.Fprintln(w, style.Bad(disagreement(r)))
	if m := r.First; m != nil {
		fmt.Fprintf(w, "the first: event %d, %s of thread %d on %s: %s: expected %s, got %s\n", m.Seq, m.Op, m.TID,
			report.Printable(m.Path), m.Field, report.Printable(m.Expected), report.Printable(m.Got))
	}
	if r.Machines > 1 && len(o.Shared) == 0 {
		fmt.Fprintf(w, "each of %d machines has files of its own here; if they share some, --shared says where\n",
			r.Machines)
	}
	if r.Following > 0 {
		fmt.Fprintf(w, "%s of them follow from others: on what these left otherwise than it was\n",
			report.Count(r.Following))
	}
	writeMismatches(w, r)
	if len(r.Tree) > 0 {
		t := report.Table{Head: []string{"path", "what", "expected", "got"}, Left: 4}
		for _, d := range r.Tree[:min(len(r.Tree), maxShown)] {
			t.Add(report.Printable(d.Path), report.Printable(d.Field), report.Printable(d.Want),
				report.Printable(d.Got))
		}
		t.Write(w)
		more(w, len(r.Tree)-min(len(r.Tree), maxShown))
	}
	return nil
}

// disagreement says how much differs.
func disagreement(r *replay.Report) string {
	if r.Different == 0 && len(r.Tree) == 0 {
		return "the results of the other calls agree"
	}
	return fmt.Sprintf("%s results and %s paths differ", report.Count(r.Different), report.Count(uint64(len(r.Tree))))
}

// LeftOff returns the line about what was left off because it gives rights, "" if nothing was.
func LeftOff(l replay.LeftOff) string {
	var parts []string
	for _, p := range []struct {
		n         uint64
		one, many string
	}{{l.SetID, "set-id mode", "set-id modes"}, {l.Capabilities, "set of capabilities", "sets of capabilities"},
		{l.Devices, "device number", "device numbers"}} {
		if p.n > 0 {
			parts = append(parts, report.Plural(int(p.n), p.one, p.many))
		}
	}
	var lines []string
	const text = "left off, and not compared: "
	if len(parts) > 0 {
		lines = append(lines, text+strings.Join(parts, ", ")+" (--privileged-files makes them)")
	}
	parts = parts[:0]
	if l.Owners > 0 {
		parts = append(parts, report.Plural(int(l.Owners), "change of owner", "changes of owners"))
	}
	if l.Attributes > 0 {
		parts = append(parts, report.Plural(int(l.Attributes), "call on attributes", "calls on attributes"))
	}
	if l.AccessLists > 0 {
		parts = append(parts, report.Plural(int(l.AccessLists), "access list without its entries for others",
			"access lists without their entries for others"))
	}
	if len(parts) > 0 {
		lines = append(lines, text+strings.Join(parts, ", ")+" (only root can make them)")
	}
	return strings.Join(lines, "\n")
}

func follow(n uint64) string {
	if n == 0 {
		return ""
	}
	return report.Count(n)
}

// writeMismatches lists the results that differ one by one if they are few, else their
// kinds.
func writeMismatches(w io.Writer, r *replay.Report) {
	kinds := r.Kinds
	if len(r.Mismatches) <= maxShown {
		kinds = nil
		for _, m := range r.Mismatches {
			kinds = append(kinds, replay.Kind{Mismatch: m, Count: 1})
		}
	}
	if len(kinds) == 0 {
		return
	}
	t := report.Table{Head: []string{"count", "first event", "thread", "call", "what", "expected",
		"got", "path", "follow"}, Right: 3}
	for _, k := range kinds[:min(len(kinds), maxShown)] {
		t.Add(report.Count(k.Count), fmt.Sprint(k.Seq), fmt.Sprint(k.TID), k.Op, report.Printable(k.Field),
			report.Printable(k.Expected), report.Printable(k.Got), report.Printable(k.Path), follow(k.Followers))
	}
	t.Write(w)
	more(w, len(kinds)-min(len(kinds), maxShown))
}

// writeOmitted lists calls that are not made although they changed the recording's tree.
func writeOmitted(w io.Writer, r *replay.Report, style term.Style) {
	if len(r.Omitted) == 0 {
		return
	}
	n := uint64(0)
	t := report.Table{Head: []string{"count", "first event", "call", "why not", "path"}, Right: 2}
	for _, o := range r.Omitted {
		n += o.Count
		t.Add(report.Count(o.Count), fmt.Sprint(o.Seq), o.Op, report.Printable(o.Reason), report.Printable(o.Path))
	}
	fmt.Fprintln(w, style.Bad(report.Count(n)+
		" calls are not made that changed files, or of which the trace says too little"))
	t.Write(w)
}

// agreement is the verdict on a replay without differences.
func agreement(r *replay.Report) string {
	verdict := "all results agree"
	if r.Dependent > 0 {
		verdict = "all results agree that the trace determines"
	}
	if r.TreePaths > 0 {
		verdict += fmt.Sprintf(", and so do all %s paths", report.Count(uint64(r.TreePaths)))
	}
	return verdict
}

// writeUncompared says what could not be compared, because the recording did not
// keep it.
func writeUncompared(w io.Writer, r *replay.Report) error {
	var err error
	if r.Uncompared > 0 {
		_, err = fmt.Fprintf(w,
			"not compared: the bytes of %s reads, which the tape does not have or which depend on such\n",
			report.Count(r.Uncompared))
	}
	if r.Dependent > 0 && err == nil {
		_, err = fmt.Fprintf(w, "not compared: %s results that depend on calls which the trace has none of and may "+
			"have left out: %s\n", report.Count(r.Dependent), strings.Join(r.LeftOut, ", "))
	}
	if r.Unexplained > 0 && err == nil {
		_, err = fmt.Fprintf(w,
			"not compared: %s results of calls that overlapped and that no order of them explains\n",
			report.Count(r.Unexplained))
	}
	if len(r.OutsideNames) > 0 && err == nil {
		_, err = fmt.Fprintf(w, "not compared: %s results about files that others changed meanwhile: %s\n",
			report.Count(r.Outside), report.Printable(strings.Join(r.OutsideNames, ", ")))
	}
	if len(r.OverlayDirs) > 0 && err == nil {
		_, err = fmt.Fprintf(w, "not compared: what the kernel made in directories of overlays, and %s results about "+
			"it: %s\n", report.Count(r.Overlay), report.Printable(strings.Join(r.OverlayDirs, ", ")))
	}
	if r.TreeMadeUp > 0 && err == nil {
		_, err = fmt.Fprintf(w, "not compared: the content of %s files in the end, for the same reason\n",
			report.Count(uint64(r.TreeMadeUp)))
	}
	return err
}

func more(w io.Writer, n int) {
	if n > 0 {
		fmt.Fprintf(w, "and %s more\n", report.Count(uint64(n)))
	}
}

// WriteJSON writes the report as one JSON object; version is that of its fields, which are
// only ever added to.
func WriteJSON(w io.Writer, r *replay.Report) error {
	type difference struct {
		Path     string `json:"path"`
		Field    string `json:"field"`
		Expected string `json:"expected"`
		Got      string `json:"got"`
	}
	v := struct {
		Version int  `json:"version"`
		OK      bool `json:"ok"`
		*replay.Report
		Tree []difference `json:"tree"`
	}{Version: 1, OK: r.OK(), Report: r, Tree: []difference{}}
	for _, d := range r.Tree {
		v.Tree = append(v.Tree, difference{d.Path, d.Field, d.Want, d.Got})
	}
	return jsonout.Object(w, v)
}

// WritePlanJSON writes what a replay would do as one JSON object.
func WritePlanJSON(w io.Writer, p *replay.Plan) error {
	return jsonout.Object(w, p)
}

// WritePlan writes what a replay would do.
func WritePlan(w io.Writer, p *replay.Plan) error {
	t := report.Table{Head: []string{"calls", "operation", "", "why not"}, Right: 1}
	var made uint64
	for _, op := range p.Ops {
		if op.Made {
			made += op.Count
			t.Add(report.Count(op.Count), op.Op, "made", "")
		} else {
			t.Add(report.Count(op.Count), op.Op, "not made", report.Printable(op.Reason))
		}
	}
	fmt.Fprintf(w, "%s events; %s calls would be made\n\n", report.Count(p.Events), report.Count(made))
	t.Write(w)
	fmt.Fprintln(w)
	n := report.Table{Head: []string{"needed", "", "the target"}, Right: 1}
	for _, need := range p.Needs {
		n.Add(report.Count(need.Count), need.What, report.Printable(need.Lacks))
	}
	return n.Write(w)
}
