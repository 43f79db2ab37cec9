// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
)

// A table is a result for people: on a terminal, or in Markdown.
type table struct {
	title, text string
	head        []string
	left        int // columns of words, before those of figures
	rows        [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// tables returns those that have rows.
func (r *Report) tables() []*table {
	all := append([]*table{r.costs(), r.recorded(), r.peers(), r.calls(), r.layerTable()}, r.stages()...)
	all = append(all, r.legend())
	return slices.DeleteFunc(all, func(t *table) bool { return len(t.rows) == 0 })
}

// workloads returns one series of each workload, in order: the untraced one.
func (r *Report) workloads(slow bool) []*Series {
	var list []*Series
	for _, w := range Workloads() {
		if s := r.find(w.Name, untraced.Name, slow); s != nil {
			list = append(list, s)
		}
	}
	return list
}

func (r *Report) costs() *table {
	t := &table{title: "What recording costs",
		text: "Time of the command, as a ratio to the untraced run of the same round: median (least–greatest) of the " +
			"rounds. " +
			"The last columns are the same for the CPU time of command and recorder together, which other programs " +
			"on the machine change less.",
		left: 1, head: []string{"workload", "untraced", "metadata", "goal", "published", "full content", "goal",
			"published", "CPU, metadata", "CPU, full"}}
	medians := map[string][]float64{}
	for _, base := range r.workloads(false) {
		row := []string{base.Workload, base.time()}
		for _, way := range []string{"metadata", "full"} {
			s, target := r.find(base.Workload, way, false), targetOf(base.Class, way)
			row = append(row, s.ratio(), verdict(s, target.goal), text(target.published))
			if s.measured() && base.Class.isProgram() {
				medians[way] = append(medians[way], s.Ratio.Median)
			}
		}
		row = append(row, r.find(base.Workload, "metadata", false).cpu(), r.find(base.Workload, "full", false).cpu())
		if row[2] != none || row[5] != none {
			t.add(row...)
		}
	}
	if len(medians["metadata"]) > 1 || len(medians["full"]) > 1 {
		row := []string{"median of the programs", ""}
		for _, way := range []string{"metadata", "full"} {
			s := &Series{}
			if len(medians[way]) > 0 {
				s.Ratio = summarize(medians[way])
			}
			row = append(row, s.ratio(), verdict(s, medianGoals[way]), "")
		}
		t.add(append(row, "", "")...)
	}
	return t
}

func (r *Report) recorded() *table {
	t := &table{title: "What was recorded, with full content",
		text: "Start is the time from the start of iotape to that of the command, sealing that from the command's " +
			"end to iotape's. The recorder's CPU time is that while the command ran.",
		left: 1, head: []string{"workload", "events", "lost", "stream", "tape", "start", "sealing",
			"stream a second", "recorder's CPU"}}
	for _, base := range r.workloads(false) {
		s := r.find(base.Workload, "full", false)
		if s == nil {
			continue
		}
		t.add(base.Workload, report.Count(uint64(s.Events.Median)), report.Count(s.Lost),
			report.Bytes(uint64(s.Stream.Median)),
			report.Bytes(uint64(s.Tape.Median)), known(s.Start.Median), duration(s.After.Median),
			rate(s.Stream.Median, s.After.Median), duration(s.Recorder.Median))
	}
	return t
}

func (r *Report) peers() *table {
	t := &table{title: "Other tracers, and iotape with ptrace",
		text: "Ratios as above, at a smaller size. None of the others keeps the bytes that calls move (strace shows " +
			"32 of each buffer, perf and bpftrace none).",
		left: 1, head: []string{"workload", "untraced"}}
	var ways []string
	for _, w := range Ways() {
		if w.kind == peer && slices.ContainsFunc(r.Series, func(s *Series) bool { return s.Way == w.Name }) {
			ways = append(ways, w.Name)
		}
	}
	t.head = append(t.head, ways...)
	for _, base := range r.workloads(true) {
		row := []string{base.Workload, base.time()}
		for _, way := range ways {
			s := r.find(base.Workload, way, true)
			cell := s.ratio()
			if s != nil && s.Lost > 0 {
				cell += " lost " + report.Count(s.Lost)
			}
			if p := targetOf(base.Class, way).published; p != "" {
				cell += " [" + p + "]"
			}
			row = append(row, cell)
		}
		t.add(row...)
	}
	if len(t.rows) > 0 && slices.ContainsFunc(t.rows, func(row []string) bool {
		return strings.Contains(strings.Join(row, ""), "[")
	}) {
		t.text += " In brackets what others have published: ratios, or time added to a call."
	}
	return t
}

// calls says what a call of the loops takes, in each way.
func (r *Report) calls() *table {
	t := &table{title: "Time of one call, in the loops", left: 1, head: []string{"way"}}
	var loops []string
	for _, w := range Workloads() {
		if w.Class == Loop && slices.ContainsFunc(r.Series, func(s *Series) bool { return s.Workload == w.Name }) {
			loops = append(loops, w.Name)
			t.head = append(t.head, w.Name, "added")
		}
	}
	for _, way := range Ways() {
		row, any := []string{way.Name}, false
		for _, l := range loops {
			each, added := none, none
			slow := way.kind == peer
			if s := r.find(l, way.Name, slow); s.measured() && s.Samples[0].Calls > 0 {
				calls := float64(s.Samples[0].Calls)
				each, any = nanoseconds(s.Elapsed.Median/calls), true
				if base := r.find(l, untraced.Name, slow); base.measured() && way.kind != baseline {
					added = nanoseconds((s.Elapsed.Median - base.Elapsed.Median) / calls)
				}
			}
			row = append(row, each, added)
		}
		if any {
			t.add(row...)
		}
	}
	return t
}

// stages returns a table for each workload that was measured in parts.
func (r *Report) stages() []*table {
	var list []*table
	for _, w := range Workloads() {
		base := r.find(w.Name, untraced.Name, false)
		if !w.stages || !base.measured() {
			continue
		}
		t := &table{title: "Where the time goes: " + base.Title,
			left: 1, head: []string{"way", "elapsed", "ratio", "added per call", "user",
				"system", "recorder's CPU", "stream"}}
		calls := float64(base.Samples[0].Calls)
		if s := r.find(w.Name, "metadata", false); calls == 0 && s.measured() {
			calls = s.Events.Median
		}
		parts := 0
		for _, way := range Ways() {
			s := r.find(w.Name, way.Name, false)
			if s == nil {
				continue
			}
			if way.kind == stage {
				parts++
			}
			added, stream := none, none
			if s.measured() && calls > 0 && way.kind != baseline {
				added = nanoseconds((s.Elapsed.Median - base.Elapsed.Median) / calls)
			}
			if way.tape && !way.beside {
				stream = report.Bytes(uint64(s.Stream.Median))
			}
			t.add(way.Title, duration(s.Elapsed.Median), s.ratio(), added, duration(s.User.Median),
				duration(s.Sys.Median), duration(s.Recorder.Median), stream)
		}
		if parts > 0 {
			list = append(list, t)
		}
	}
	return list
}

// legend says what the names stand for.
func (r *Report) legend() *table {
	t := &table{title: "Workloads", left: 2, head: []string{"name", "what it is", "size for the slow ways"}}
	for _, w := range Workloads() {
		fast, slow := r.find(w.Name, untraced.Name, false), r.find(w.Name, untraced.Name, true)
		switch {
		case fast != nil && slow != nil:
			t.add(w.Name, fast.Title, report.Count(uint64(slow.Size)))
		case fast != nil:
			t.add(w.Name, fast.Title, none)
		case slow != nil:
			t.add(w.Name, slow.Title, report.Count(uint64(slow.Size)))
		}
	}
	return t
}

// none stands where there is no figure.
const none = "–"

func text(s string) string {
	if s == "" {
		return none
	}
	return s
}

// measured says whether there is a run that counts.
func (s *Series) measured() bool { return s != nil && s.Elapsed.Median > 0 }

func (s *Series) time() string {
	if !s.measured() {
		return "failed"
	}
	e, unit, each := s.Elapsed, "s", 1.0
	if e.Median < 1 {
		unit, each = "ms", 1e-3
	}
	return fmt.Sprintf("%.3g %s (%.3g–%.3g)", e.Median/each, unit, e.Min/each, e.Max/each)
}

func (s *Series) ratio() string {
	switch {
	case s == nil:
		return none
	case s.Failed != "":
		return "failed"
	}
	return s.Ratio.ratio()
}

func (s *Series) cpu() string {
	if s == nil || s.Failed != "" {
		return none
	}
	return s.CPU.ratio()
}

func (s Summary) ratio() string {
	switch {
	case s.Median == 0:
		return none
	case s.Median >= 10:
		return fmt.Sprintf("%.0f (%.0f–%.0f)", s.Median, s.Min, s.Max)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Min, s.Max)
}

// verdict is a goal, and whether it was missed.
func verdict(s *Series, goal float64) string {
	if goal == 0 {
		return none
	}
	cell := fmt.Sprintf("≤ %.2f", goal)
	if s != nil && s.Ratio.Median > goal {
		cell += " missed"
	}
	return cell
}

func duration(seconds float64) string { return report.Duration(int64(seconds * 1e9)) }

// known is a duration, of which 0 says that it was not measured.
func known(seconds float64) string {
	if seconds == 0 {
		return none
	}
	return duration(seconds)
}

// rate is how much was done in a second.
func rate(bytes, seconds float64) string {
	if seconds <= 0 {
		return none
	}
	return report.Bytes(uint64(bytes / seconds))
}

// nanoseconds writes a time of a call, which is a mean over many.
func nanoseconds(seconds float64) string {
	ns := seconds * 1e9
	if ns >= 10_000 {
		return fmt.Sprintf("%.1f µs", ns/1000)
	}
	return fmt.Sprintf("%.0f ns", ns)
}

// notes are the lines below the tables.
func (r *Report) notes() []string {
	var lines []string
	for _, f := range r.Failures() {
		lines = append(lines, "Failed: "+f)
	}
	for _, l := range r.LeftOut {
		lines = append(lines, "Left out: "+l.Name+": "+l.Why)
	}
	return lines
}

// about is where and when.
func (r *Report) about() string {
	m := &r.Machine
	s := fmt.Sprintf("%s, %s; Linux %s, %d CPUs (%s), %s of memory, %s, load before %.1f",
		r.Time.Format("2006-01-02"), r.Iotape, m.Kernel, m.CPUs, m.CPU, report.Bytes(m.MemoryBytes),
		m.FileSystem, m.Load)
	rounds := [2]int{}
	for _, x := range r.Series {
		i := 0
		if x.Slow {
			i = 1
		}
		rounds[i] = max(rounds[i], len(x.Samples))
	}
	for i, of := range []string{"", " of the slow ways"} {
		if rounds[i] > 0 {
			s += fmt.Sprintf("; rounds%s: %d", of, rounds[i])
		}
	}
	if r.Scale != 1 {
		s += fmt.Sprintf("; sizes scaled by %v", r.Scale)
	}
	if m.Load > idleLoad {
		s += ". THE MACHINE WAS NOT IDLE: elapsed times say little"
	}
	return s
}

// idleLoad is the load of a machine that does nothing else, with some allowance.
const idleLoad = 0.5

// Text writes the results for a terminal.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", report.Printable(r.about()))
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n%s\n", t.title)
		if t.text != "" {
			fmt.Fprintf(&b, "%s\n", t.text)
		}
		b.WriteByte('\n')
		out := report.Table{Head: t.head, Left: t.left}
		for _, row := range t.rows {
			out.Add(row...)
		}
		if err := out.Write(&b); err != nil {
			return err
		}
	}
	for i, n := range r.notes() {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", report.Printable(n))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
