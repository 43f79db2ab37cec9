// SPDX-License-Identifier: Apache-2.0

package snoop

import (
	"strings"
)

// column is a column of a table, by its head.
type column struct {
	name       string
	start, end int // bytes of the head
}

// tool is what prints a table.
type tool struct {
	name     string
	requires []string // columns
	row      func(x *importer, r row) error
}

// tools are in the order in which heads are compared: those with more columns first.
var tools = []tool{
	{"ext4slower", []string{"COMM", "PID", "T", "BYTES", "OFF_KB", "LAT(ms)", "FILENAME"}, (*importer).slower},
	{"fileslower", []string{"COMM", "TID", "D", "BYTES", "LAT(ms)", "FILENAME"}, (*importer).slower},
	{"biosnoop", []string{"COMM", "PID", "DISK", "T", "SECTOR", "BYTES", "LAT(ms)"}, (*importer).block},
	{"opensnoop", []string{"PID", "COMM", "FD", "ERR", "PATH"}, (*importer).open},
}

// words are other names of columns.
var words = map[string]string{"TIME": "TIME(s)", "TASK": "COMM", "LATENCY(ms)": "LAT(ms)"}

// head takes the head of a table apart. It returns nil if it is none that is known.
func head(line string) (*tool, []column) {
	var columns []column
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' {
			i++
			continue
		}
		end := i
		for end < len(line) && line[end] != ' ' && line[end] != '\t' {
			end++
		}
		name := line[i:end]
		if other, ok := words[name]; ok {
			name = other
		}
		columns = append(columns, column{name, i, end})
		if i = end; len(columns) > maxColumns {
			return nil, nil
		}
	}
	for i := range tools {
		if has(columns, tools[i].requires) {
			return &tools[i], columns
		}
	}
	return nil, nil
}

const maxColumns = 32

func has(columns []column, names []string) bool {
	for _, n := range names {
		found := false
		for i := range columns {
			found = found || columns[i].name == n
		}
		if !found {
			return false
		}
	}
	return true
}

// row is a row of a table, by the names of its columns.
type row map[string]string

// spaced are columns whose values can have spaces.
var spaced = map[string]bool{"COMM": true, "PATH": true, "FILENAME": true}

// cells takes a row apart. Commands may have spaces: what stands before them and behind them has none, but for
// names of files, which stand last. It reports false if the row has too few words.
func cells(columns []column, line string) (row, bool) {
	r := row{}
	left, right := 0, len(columns)
	rest := strings.TrimRight(line, " \t\r")
	if last := columns[len(columns)-1].name; spaced[last] { // as many words from the left as there are columns before
		words, behind, ok := fields(rest, len(columns)-1, commOf(columns))
		if !ok {
			return nil, false
		}
		for i, w := range words {
			r[columns[i].name] = w
		}
		r[last] = behind
		return r, true
	}
	words := strings.Fields(rest)
	for left < right && columns[left].name != "COMM" {
		if left >= len(words) {
			return nil, false
		}
		r[columns[left].name] = words[left]
		left++
	}
	for n := len(words); right > left+1; right-- {
		if n--; n < left {
			return nil, false
		}
		r[columns[right-1].name] = words[n]
	}
	if n := len(words) - (len(columns) - left - 1); left < len(columns) {
		if n <= left {
			return nil, false
		}
		r[columns[left].name] = strings.Join(words[left:n], " ")
	}
	return r, true
}

// commOf returns the column of the command and how wide it is; -1 if there is none.
func commOf(columns []column) (c command) {
	c.at = -1
	for i := range columns {
		if columns[i].name == "COMM" && i+1 < len(columns) {
			c = command{i, columns[i].start, columns[i+1].start}
		}
	}
	return c
}

// command says where a row has the command.
type command struct{ at, start, end int }

// fields takes n words off a row, of which the command has the width of its column.
func fields(line string, n int, c command) (words []string, behind string, ok bool) {
	at := 0
	for len(words) < n {
		for at < len(line) && line[at] == ' ' {
			at++
		}
		end := at
		switch i := strings.IndexByte(line[at:], ' '); {
		case i < 0:
			return nil, "", false
		case len(words) == c.at && at >= c.start && at < c.end && c.end <= len(line) && line[c.end-1] == ' ':
			end = c.end - 1
		default:
			end = at + i
		}
		words = append(words, strings.TrimRight(line[at:end], " "))
		at = end
	}
	behind = strings.TrimLeft(line[at:], " ")
	return words, behind, behind != ""
}
