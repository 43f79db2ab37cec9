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
	waits uint32 // the process whose end the line waits for, 0 if it waits for none
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
// the process before each line, and lines by their times. Lines without exact times (no -ttt) keep
// the order of their file; a process begins behind the call that made it, and a wait for it returns
// when it has ended. What processes did beside each other is not known then.
func Join(ctx context.Context, w io.Writer, paths []string) error {
	f := family{members: map[uint32]*member{}, made: map[uint32]bool{}}
	defer f.close()
	if err := f.open(paths); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(f.queue) == 0 && !f.release(func(*member) bool { return true }) { // what waits for each other goes on
			return out.Flush()
		}
		m := f.queue[0]
		if _, err := fmt.Fprintf(out, "%d %s\n", m.pid, m.line); err != nil {
			return err
		}
		if err := f.written(m); err != nil {
			return err
		}
	}
}

// family are the files of one run.
type family struct {
	members map[uint32]*member // that have not ended
	queue   members            // those of which a line can be written
	held    []*member          // the others
	now     uint64             // of the last line that was written, ns
	made    map[uint32]bool    // whether the line that made a process has been written, of those that have one
}

func (f *family) open(paths []string) error {
	var all []*member
	for _, path := range paths {
		_, pid, ok := FamilyOf(path)
		if !ok {
			return fmt.Errorf("%s: no file of strace -ff, whose names end in the number of a process", path)
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		m := &member{pid: pid, file: file, lines: lines{r: bufio.NewReaderSize(file, 1<<12)}}
		f.members[pid] = m
		all = append(all, m)
	}
	for _, m := range all {
		if err := f.findMade(m.file); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := f.next(m); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) close() {
	for _, m := range f.members {
		m.file.Close()
	}
}

// findMade notes which processes a file says to have made.
func (f *family) findMade(file *os.File) error {
	l := lines{r: bufio.NewReaderSize(file, 1<<16)}
	for {
		b, err := l.next()
		switch {
		case errors.Is(err, errLong):
			continue
		case err == io.EOF:
			_, err = file.Seek(0, io.SeekStart)
			return err
		case err != nil:
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
		if pid := made(string(b)); pid != 0 {
			f.made[pid] = false
		}
	}
}

// made returns which process a line made, 0 if it made none.
func made(line string) uint32 {
	body := parsePrefix(line).body
	if name, _, _ := strings.Cut(body, "("); makesThread(name) {
		return madeThread(body)
	}
	return 0
}

// next reads a member's next line, and queues or holds the member.
func (f *family) next(m *member) error {
	more, err := m.next()
	if err != nil {
		return err
	}
	if !more {
		m.file.Close()
		delete(f.members, m.pid)
		f.release(func(h *member) bool { return h.waits == m.pid })
		return nil
	}
	m.waits = 0
	if m.clock.ms {
		if body := parsePrefix(m.line).body; strings.HasPrefix(body, "wait4(") {
			m.waits = madeThread(body)
		}
	}
	begun, known := f.made[m.pid]
	if m.clock.ms && known && !begun || m.waits != 0 && f.members[m.waits] != nil {
		f.held = append(f.held, m)
		return nil
	}
	heap.Push(&f.queue, m)
	return nil
}

// written goes on behind the first line of the queue, which is m's.
func (f *family) written(m *member) error {
	heap.Pop(&f.queue)
	f.now = max(f.now, m.at)
	if pid := made(m.line); pid != 0 {
		f.made[pid] = true
		f.release(func(h *member) bool { return h.pid == pid && h.waits == 0 })
	}
	return f.next(m)
}

// release queues the members that are held and fit. It reports whether there was one.
func (f *family) release(fits func(*member) bool) (found bool) {
	f.held = slices.DeleteFunc(f.held, func(m *member) bool {
		if !fits(m) {
			return false
		}
		found = true
		m.clock.now = max(m.clock.now, f.now)
		m.at = m.clock.now
		heap.Push(&f.queue, m)
		return true
	})
	return found
}
