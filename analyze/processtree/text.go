// SPDX-License-Identifier: Apache-2.0

package processtree

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event/facts"
)

// maxCommand is how much of a command line Text shows, in bytes.
const maxCommand = 120

// Text writes the tree for people, a line for each process; all shows whole command lines, and where the processes
// run.
func (t *Tree) Text(w io.Writer, all bool) error {
	var b strings.Builder
	table := report.Table{Head: []string{"pid", "user", "calls", "errors", "read", "written", "syncs", "in calls",
		"start", "lived", "ended", "command"}, Right: 10}
	if all {
		table.Head = slices.Insert(table.Head, 11, "container or unit", "variables")
	}
	var add func(p *Process, first, rest string)
	add = func(p *Process, first, rest string) {
		count := func(n uint64) string { return orDash(n, report.Count) }
		lived := report.Duration(p.EndNS - p.StartNS)
		if p.Running {
			lived += "+"
		}
		cells := []string{strconv.FormatUint(uint64(p.PID), 10), strconv.FormatUint(uint64(p.UID), 10), count(p.Calls),
			count(p.Errors), orDash(p.ReadBytes, report.Bytes), orDash(p.WrittenBytes, report.Bytes), count(p.Syncs),
			report.Duration(p.TotalNS), report.Duration(p.StartNS), lived, p.end(), first + p.command(all)}
		if all {
			cells = slices.Insert(cells, 11, p.place(), p.variables())
		}
		table.Add(cells...)
		for i, child := range p.Children {
			if i == len(p.Children)-1 {
				add(child, rest+"└─ ", rest+"   ")
			} else {
				add(child, rest+"├─ ", rest+"│  ")
			}
		}
	}
	for _, p := range t.Roots {
		add(p, "", "")
	}
	table.Write(&b)
	if t.Damaged > 0 {
		fmt.Fprintf(&b, "%s could not be read\n", report.Plural(t.Damaged, "part of the tape", "parts of the tape"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orDash(n uint64, f func(uint64) string) string {
	if n == 0 {
		return "–"
	}
	return f(n)
}

// place says where a process runs.
func (p *Process) place() string {
	if p.Facts == nil {
		return "?"
	}
	place := cmp.Or(facts.ShortContainer(p.Facts.Container), p.Facts.Unit, p.Facts.Cgroup)
	return report.Printable(cmp.Or(strings.Trim(place, "/"), "–"))
}

// variables is how many variables the environment of a process has.
func (p *Process) variables() string {
	if p.Facts == nil || p.Facts.Variables == nil {
		return "?"
	}
	return strconv.Itoa(*p.Facts.Variables)
}

// end says how a process ended.
func (p *Process) end() string {
	switch {
	case p.Running:
		return "runs"
	case p.Signal != "":
		return p.Signal
	case p.Exit == nil:
		return "?"
	}
	return strconv.Itoa(*p.Exit)
}

// command is the command line of the last program, or who the process is if it executed none.
func (p *Process) command(all bool) string {
	text := "(" + cmp.Or(p.Comm, "?") + ")"
	if n := len(p.Programs); n > 0 {
		last := &p.Programs[n-1]
		text = strings.Join(last.Args, " ")
		if len(last.Args) == 0 || path.Base(last.Args[0]) != path.Base(last.Path) {
			text = last.Path + ": " + text
		}
		if n > 1 {
			text += fmt.Sprintf(" (program %d)", n)
		}
	}
	if p.Host != "" {
		text = p.Host + ": " + text
	}
	if !all && len(text) > maxCommand {
		cut := maxCommand
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return report.Printable(text)
}
