// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "strace",
	ID:       "strace",
	Suffixes: []string{".strace"},
	About:    "text of strace(1); best with -f -ttt -T -y -yy -s 1000000 -xx -v",
	Match:    match,
	Read:     readFile,
	Write:    writeFile,
}

// match looks for calls among the first lines.
func match(head []byte) bool {
	const look = 20
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	seen, calls, rest := 0, 0, false
	for line := range bytes.Lines(head) {
		text := strings.TrimRight(string(line), "\r\n")
		if _, noticed := notice(text); noticed { // perhaps in the middle of a call
			rest = true
			continue
		}
		if rest && !startsLine(text) {
			rest = false
			continue
		}
		rest = false
		p := parsePrefix(text)
		// There may be many marks before the first call, and with -k a stack behind each.
		if p.isMark() || strings.HasPrefix(p.body, "> ") {
			continue
		}
		if seen++; seen > look {
			break
		}
		switch name, _, ok := strings.Cut(p.body, "("); {
		case strings.HasPrefix(p.body, "<... ") && strings.Contains(p.body, " resumed>"):
			calls++
		case ok:
			whole := bytes.HasSuffix(line, []byte("\n"))
			if isCall(name) &&
				(!whole || hasResult(p.body) || strings.HasSuffix(p.body, "<unfinished ...>")) {
				calls++
			}
		}
	}
	return calls > 0 && calls*2 >= seen-calls
}

// isMark reports whether a line is about a process or a signal, and not a call.
func (p *prefix) isMark() bool {
	return strings.HasPrefix(p.body, "+++ ") && strings.HasSuffix(p.body, " +++") ||
		strings.HasPrefix(p.body, "--- ") && strings.HasSuffix(p.body, " ---")
}

// hasResult reports whether a closing parenthesis, blanks and " = " are in a line.
func hasResult(body string) bool {
	for {
		i := strings.LastIndex(body, "= ")
		if i < 0 {
			return false
		}
		if body = strings.TrimRight(body[:i], " "); strings.HasSuffix(body, ")") {
			return true
		}
	}
}

func readFile(_ context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend = "strace"
	// strace -ff writes NAME.PID.
	pid := uint64(0)
	if n, err := strconv.ParseUint(strings.TrimPrefix(filepath.Ext(in.Name()), "."), 10, 22); err == nil {
		pid = n
	}
	return Import(in, uint32(pid), w, &im.Done)
}

// writeFile writes a tape's events as strace -f -ttt -T -yy -v does, with times in ns.
func writeFile(_ context.Context, out io.Writer, t *trace.Tape, o *format.Options) (*format.Done, error) {
	done := &format.Done{}
	if n := len(t.Manifest().Hosts); n > 1 {
		return nil, fmt.Errorf("the tape has events of %d hosts, strace's text is of one: iotape slice makes a "+
			"tape of each", n)
	}
	limit := -1
	if o.ContentBytes > 0 {
		limit = int(min(o.ContentBytes, 1<<30))
	}
	var scratch []byte
	p := stracetext.New(&stracetext.Options{
		MaxBytes: limit, Verbose: true, Clock: stracetext.Unix, Nanoseconds: true, Hosts: t.Manifest().Hosts,
		Content: func(b *event.Buf, n int) []byte {
			var err error
			if scratch, _, err = t.ContentZero(trace.Present(b), scratch[:0]); err != nil {
				done.LeftOut("buffers whose content is damaged", 1)
				return nil
			}
			return scratch[:min(n, len(scratch))]
		},
	})
	var line []byte
	for ev, err := range t.Events() {
		if err != nil {
			return nil, err
		}
		switch ev.Kind {
		case event.Woken:
			done.LeftOut("wake-ups", 1)
			continue
		case event.Described: // every tape has them, and strace has no line for them
			continue
		case event.Call:
			held := ev.Spec().NeedsStop
			for i := range ev.Bufs {
				b := &ev.Bufs[i]
				done.Missing += b.Missing
				if held && (b.Kind == event.KindBuf || b.Kind == event.KindVec) && b.Kept() > 0 {
					done.LeftOut("bytes moved within the kernel, which strace does not show", uint64(b.Kept()))
				}
			}
		}
		done.Records++
		line = p.Append(line[:0], ev)
		if _, err := out.Write(line); err != nil {
			return nil, err
		}
	}
	return done, nil
}
