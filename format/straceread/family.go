// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"bufio"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// FamilyOf takes the name of a file that strace -ff may have written apart: NAME.PID.
func FamilyOf(path string) (name string, pid uint32, ok bool) {
	ext := filepath.Ext(path)
	if len(ext) < 2 || !digit(ext[1]) || ext[1] == '0' {
		return "", 0, false
	}
	n, err := strconv.ParseUint(ext[1:], 10, 32)
	return strings.TrimSuffix(path, ext), uint32(n), err == nil && n <= maxPID
}

// member is a file of a family.
type member struct {
	pid  uint32
	file *os.File
	lines
	line  string // the next one
	clock clock
	at    uint64 // ns; of the line
}

// next reads the member's next line; false at its end.
func (m *member) next() (bool, error) {
	b, err := m.lines.next()
	switch {
	case errors.Is(err, errLong):
		m.line = "" // which is counted as not understood
		return true, nil
	case err == io.EOF:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", m.file.Name(), err)
	}
	m.line = string(b)
	p := parsePrefix(m.line)
	m.at = m.clock.at(&p)
	return true, nil
}

// members is a heap: the member whose line is the earliest comes first.
type members []*member

func (h members) Len() int { return len(h) }
func (h members) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].at, h[j].at), cmp.Compare(h[i].pid, h[j].pid)) < 0
}
func (h members) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *members) Push(x any)   { *h = append(*h, x.(*member)) }
func (h *members) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// Join writes the files of one run of strace -ff as one, as strace -f writes it: the number of
// the process before each line, and lines by their times. Lines without times (no -t) keep
// the order of their file; what a process did is then only roughly beside what others did.
func Join(ctx context.Context, w io.Writer, paths []string) error {
	var all members
	defer func() {
		for _, m := range all {
			m.file.Close()
		}
	}()
	for _, path := range paths {
		_, pid, ok := FamilyOf(path)
		if !ok {
			return fmt.Errorf("%s: no file of strace -ff, whose names end in the number of a process", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		m := &member{pid: pid, file: f, lines: lines{r: bufio.NewReaderSize(f, 1<<12)}}
		all = append(all, m)
	}
	queue := make(members, 0, len(all))
	for _, m := range slices.Clone(all) {
		more, err := m.next()
		if err != nil {
			return err
		}
		if more {
			queue = append(queue, m)
		}
	}
	heap.Init(&queue)
	out := bufio.NewWriterSize(w, 1<<16)
	for n := 0; len(queue) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		m := queue[0]
		if _, err := fmt.Fprintf(out, "%d %s\n", m.pid, m.line); err != nil {
			return err
		}
		more, err := m.next()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&queue, 0)
		} else {
			heap.Pop(&queue)
		}
	}
	return out.Flush()
}
