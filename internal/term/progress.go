// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Progress shows how far a piece of work is. Nothing is shown of work that is
// done within a second. Its methods may be called from any goroutine.
type Progress struct {
	mu     sync.Mutex
	w      io.Writer
	bar    bool // redraw one line instead of writing lines
	width  int
	unit   func(n int64) string
	prefix string // before plain lines, "iotape: "
	now    func() time.Time

	what, note  string
	start, last time.Time
	shown       bool // a bar stands on the line
}

// How often something is shown.
const (
	firstAfter = time.Second
	barEvery   = 100 * time.Millisecond
	lineEvery  = 5 * time.Second
)

// NewProgress returns the progress of one or more pieces of work, shown on f. unit
// writes an amount, such as bytes; prefix stands before plain lines.
func NewProgress(f *os.File, prefix string, unit func(n int64) string) *Progress {
	p := &Progress{w: f, unit: unit, prefix: prefix, now: time.Now}
	if IsTerminal(f) && os.Getenv("TERM") != "dumb" {
		p.bar, p.width = true, Width(f)
	}
	return p
}

// Update says that done of total are done of what. A total of 0 is unknown. What is
// the name of the work, a verb in -ing; when it changes, counting starts anew.
func (p *Progress) Update(what string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if what != p.what {
		p.clear()
		p.what, p.start, p.last = what, now, time.Time{}
	}
	if now.Sub(p.start) < firstAfter {
		return
	}
	every := lineEvery
	if p.bar {
		every = barEvery
	}
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	if p.bar {
		p.draw(done, total, now.Sub(p.start))
		return
	}
	fmt.Fprintf(p.w, "%s%s: %s%s\n", p.prefix, what, p.amount(done, total), p.behind())
}

// Note sets what is shown behind the amounts from the next Update on, "" for nothing.
func (p *Progress) Note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = text
}

// Done takes the bar away. The Progress may be used again.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.what = ""
}

func (p *Progress) clear() {
	if p.shown {
		io.WriteString(p.w, "\r\x1b[K")
		p.shown = false
	}
}

func (p *Progress) amount(done, total int64) string {
	if total <= 0 {
		return p.unit(done)
	}
	return fmt.Sprintf("%s of %s (%d %%)", p.unit(done), p.unit(total), percent(done, total))
}

func (p *Progress) behind() string {
	if p.note == "" {
		return ""
	}
	return ", " + p.note
}

func percent(done, total int64) int64 {
	return int64(float64(min(max(done, 0), total)) / float64(total) * 100)
}

// draw writes the bar over the one before, at most a terminal line long.
func (p *Progress) draw(done, total int64, elapsed time.Duration) {
	text := fmt.Sprintf(" %s", p.amount(done, total))
	if total > 0 && done > 0 && done < total {
		left := time.Duration(float64(elapsed) / float64(done) * float64(total-done))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	text += p.behind()
	line := p.what + " "
	if room := p.width - len(line) - len(text) - 3; total > 0 && room >= 10 {
		room = min(room, 40)
		full := int(percent(done, total)) * room / 100
		line += "[" + strings.Repeat("#", full) + strings.Repeat("-", room-full) + "]"
	}
	line += text
	if len(line) >= p.width && p.width > 1 {
		line = line[:p.width-1]
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.shown = true
}
