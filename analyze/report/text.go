// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/internal/jsonout"
	"github.com/iotape/iotape/trace"
)

// JSON writes the Stat as one indented JSON object.
func (s *Stat) JSON(w io.Writer) error {
	return jsonout.Object(w, s)
}

// Text writes the Stat as tables for people.
func (s *Stat) Text(w io.Writer) error {
	var b strings.Builder
	if r := s.Recording; r != nil {
		fmt.Fprintf(&b, "%s\n", Printable(cmp.Or(strings.Join(r.Command, " "), r.Target)))
		b.WriteString(r.where())
		if v := r.Window; v != nil {
			fmt.Fprintf(&b, "a part of a recording: %s\n", Printable(v.Reason))
		}
		if a := r.Assembly; a != nil {
			fmt.Fprintf(&b, "a part of what the agent on %s recorded: it begins with %s, and ends with %s\n",
				Printable(a.Host), boundary(&a.Begins), boundary(&a.Ends))
		}
	}
	if s.Filter != "" {
		fmt.Fprintf(&b, "only what fits: %s\n", Printable(s.Filter))
	}
	fmt.Fprintf(&b, "%s calls (%s failed) in %s by %s and %s; read %s, wrote %s; %s in calls\n",
		Count(s.Calls), Count(s.Errors), Duration(s.ElapsedNS), Plural(s.ProcessesTotal, "process", "processes"),
		Plural(s.Threads, "thread", "threads"),
		Bytes(s.ReadBytes), Bytes(s.WrittenBytes), durationsOf(s.Calls, s.Quality.Untimed)(s.TotalNS))
	if c := s.Content; c != nil && c.UniqueBytes > 0 {
		fmt.Fprintf(&b, "content: %s moved, %s of them different, stored in %s (%.1f : 1)\n",
			Bytes(c.MovedBytes), Bytes(c.UniqueBytes), Bytes(c.StoredBytes),
			float64(c.MovedBytes)/float64(c.StoredBytes))
	}
	fmt.Fprintf(&b, "quality: %s\n\n", s.Quality.Line())

	ops := Table{Head: []string{"operation", "count", "errors", "bytes", "total", "p50", "p99", "max"}, Left: 1}
	for i := range s.Ops {
		o := &s.Ops[i]
		known := durationsOf(o.Count, o.Untimed)
		ops.Add(o.Op, Count(o.Count), dash(o.Errors, Count), dash(o.Bytes, Bytes), known(o.TotalNS),
			known(o.P50NS), known(o.P99NS), known(o.MaxNS))
	}
	ops.Write(&b)
	s.signals(&b)
	if len(s.Files) > 0 {
		fmt.Fprintf(&b, "\nfiles by bytes%s\n", ofTotal(len(s.Files), s.FilesTotal))
		t := Table{Head: []string{"read", "written", "calls", "opens", "time", "file"}, Right: 5}
		for i := range s.Files {
			f := &s.Files[i]
			name := f.Path
			if name == "" {
				name = fmt.Sprintf("dev %d ino %d", f.Dev, f.Ino)
			}
			if f.Given != "" && f.Given != f.Path {
				name += " (as " + f.Given + ")"
			}
			t.Add(dash(f.ReadBytes, Bytes), dash(f.WrittenBytes, Bytes), Count(f.Calls), dash(f.Opens, Count),
				durationsOf(f.Calls, f.Untimed)(f.TotalNS), Printable(name))
		}
		t.Write(&b)
	}
	if len(s.Processes) > 0 {
		fmt.Fprintf(&b, "\nprocesses by time in calls%s\n", ofTotal(len(s.Processes), s.ProcessesTotal))
		t := Table{Head: []string{"pid", "parent", "threads", "calls", "errors", "read", "written", "time", "command"},
			Right: 8}
		for i := range s.Processes {
			p := &s.Processes[i]
			t.Add(fmt.Sprint(p.PID), fmt.Sprint(p.PPID), fmt.Sprint(p.Threads), Count(p.Calls), dash(p.Errors, Count),
				dash(p.ReadBytes, Bytes), dash(p.WrittenBytes, Bytes), durationsOf(p.Calls, p.Untimed)(p.TotalNS),
				Printable(p.Comm))
		}
		t.Write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// durationsOf returns how durations of calls are shown: as "?" if the trace says none of them.
func durationsOf(calls, untimed uint64) func(ns int64) string {
	if calls > 0 && calls == untimed {
		return func(int64) string { return "?" }
	}
	return Duration
}

// signals writes the table of signals, if there were any.
func (s *Stat) signals(b *strings.Builder) {
	if len(s.Signals) == 0 {
		return
	}
	t := Table{Head: []string{"signal", "count", "handled", "ignored", "fatal"}, Left: 1}
	for i := range s.Signals {
		v := &s.Signals[i]
		t.Add(v.Signal, Count(v.Count), dash(v.Handled, Count), dash(v.Ignored, Count), dash(v.Fatal, Count))
	}
	b.WriteString("\n")
	t.Write(b)
}

// where says on what the recording was made, and how. A foreign trace may know little
// of it.
func (r *Recording) where() string { return r.Where() + "\n" }

// Where says in words on which hosts and how something was recorded, as far as the tape says so.
func (r *Recording) Where() string {
	var parts []string
	switch system := r.system(); {
	case len(r.Hosts) > 1:
		var names []string
		for _, h := range r.Hosts[:min(len(r.Hosts), maxHostsNamed)] {
			names = append(names, Printable(h))
		}
		if more := len(r.Hosts) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		parts = append(parts, fmt.Sprintf("on %d hosts: %s", len(r.Hosts), strings.Join(names, ", ")))
	case r.Host != "" || system != "":
		parts = append(parts, "on "+Printable(r.Host)+system)
	}
	if r.Backend != "" {
		parts = append(parts, "recorded with "+Printable(r.Backend))
	}
	if r.Content != "" {
		parts = append(parts, "content "+Printable(r.Content))
	}
	return strings.Join(parts, ", ")
}

// maxHostsNamed is how many hosts are named in a line.
const maxHostsNamed = 8

// system names kernel and architecture, in parentheses; "" if the kernel is not known.
func (r *Recording) system() string {
	if r.Kernel == "" {
		return ""
	}
	return fmt.Sprintf(" (Linux %s, %s)", Printable(r.Kernel), Printable(r.Arch))
}

// boundary says why a part of a recording begins or ends where it does.
func boundary(b *trace.Boundary) string {
	s := cmp.Or(Printable(b.Reason), "no reason")
	if b.Detail != "" {
		s += " (" + Printable(b.Detail) + ")"
	}
	if b.GapNS > 0 {
		s += ", after " + Duration(b.GapNS) + " without a recording"
	}
	return s
}

// Line says in one line what the trace lacks.
func (q *Quality) Line() string {
	var parts []string
	add := func(n uint64, one, many string) {
		if n > 0 {
			parts = append(parts, Plural(n, one, many))
		}
	}
	if q.LostRecords == 0 {
		parts = append(parts, "nothing lost")
	}
	add(q.LostRecords, "record lost", "records lost")
	if n := q.MissingBytes; n > 0 {
		parts = append(parts, Bytes(n)+" of content not recorded")
	}
	if n := q.UnwantedBytes; n > 0 {
		parts = append(parts, Bytes(n)+" of content left out as asked")
	}
	add(q.Interrupted, "call without a return", "calls without a return")
	add(q.Untimed, "call whose duration is not known", "calls whose durations are not known")
	add(q.Late, "event out of order", "events out of order")
	add(q.UnknownCalls, "call that is not in the operation table", "calls that are not in the operation table")
	if q.Unfinished != "" && (q.LostRecords == 0 || !strings.HasSuffix(q.Unfinished, "records were lost")) {
		parts = append(parts, Printable(q.Unfinished))
	}
	if n := q.DamagedBlocks; n > 0 {
		parts = append(parts, Plural(n, "damaged part", "damaged parts")+" of the tape left out ("+
			Printable(q.FirstDamage)+")")
	}
	return strings.Join(parts, ", ")
}

// Lacks says in one line what a tape lacks by its manifest, with the reasons: "" if that is nothing.
func Lacks(m *trace.Manifest) string {
	var parts []string
	for _, l := range m.Losses {
		if l.Records > 0 {
			parts = append(parts, Plural(l.Records, "record lost", "records lost")+" ("+Printable(l.Reason)+")")
		}
	}
	if m.Incomplete && len(parts) == 0 {
		parts = append(parts, cmp.Or(Printable(m.Reason), "the recording did not end in order"))
	}
	return strings.Join(parts, ", ")
}

// Table is text in columns.
type Table struct {
	Head []string
	// The first Left columns are set flush left, the others flush right; or, when
	// Right is set, the first Right flush right and the others flush left.
	Left, Right int
	rows        [][]string
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.rows) }

// Write writes the head and the rows.
func (t *Table) Write(w io.Writer) error {
	width := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.rows...) {
		for i, cell := range row {
			width[i] = max(width[i], runes(cell))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{t.Head}, t.rows...) {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			pad := strings.Repeat(" ", width[i]-runes(cell))
			flushLeft := i < t.Left
			if t.Right > 0 {
				flushLeft = i >= t.Right
			}
			if flushLeft {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " "))
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func runes(s string) int { return len([]rune(s)) }

// Printable makes text from a trace safe for a terminal: control characters and
// what is not UTF-8 are escaped as in Go.
func Printable(s string) string {
	q := strconv.QuoteToGraphic(s)
	q = q[1 : len(q)-1]
	return strings.ReplaceAll(q, `\"`, `"`)
}

// OneLine puts text that may have several lines on one, and makes it Printable.
func OneLine(s string) string {
	return Printable(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}

// Count writes a number with thousands apart.
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Bytes writes a number of bytes with three digits and a binary unit.
func Bytes(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, unit := float64(n)/1024, 0
	for v >= 999.5 && unit < 5 {
		v /= 1024
		unit++
	}
	return digits3(v) + " " + "KMGTPE"[unit:unit+1] + "iB"
}

// Duration writes ns with three digits and a unit.
func Duration(ns int64) string {
	if ns < 0 {
		return "-" + Duration(-max(ns, -math.MaxInt64)) // the smallest number has no opposite
	}
	if ns < 1000 {
		return strconv.FormatInt(ns, 10) + " ns"
	}
	v := float64(ns) / 1000
	for _, unit := range []string{"µs", "ms"} {
		if v < 999.5 {
			return digits3(v) + " " + unit
		}
		v /= 1000
	}
	if v < 999.5 {
		return digits3(v) + " s"
	}
	return Count(uint64(v+0.5)) + " s"
}

func digits3(v float64) string {
	switch {
	case v < 9.995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 99.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

func dash(n uint64, f func(uint64) string) string {
	if n == 0 {
		return "–"
	}
	return f(n)
}

// Plural writes a count with its noun.
func Plural[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(uint64(n)) + " " + many
}

func ofTotal(n, total int) string {
	if n < total {
		return fmt.Sprintf(" (%d of %s)", n, Count(uint64(total)))
	}
	return ""
}
