// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
)

// Compile makes a tape of a script: its events, the skeleton as trace.SnapshotName and
// the final tree, if there is one, as trace.FinalName. It returns the manifest for
// tw.Close. program is who compiles, with its version. Streams are made in a directory
// below os.TempDir.
func Compile(ctx context.Context, dir string, tw *trace.TapeWriter, program string) (*trace.Manifest, error) {
	c := &compiler{dir: dir, tw: tw, files: map[uint64]facts{}, threads: map[uint32]*lineThread{}}
	if err := c.openContent(); err != nil {
		return nil, err
	}
	if c.content.f != nil {
		defer c.content.f.Close()
	}
	m, err := c.seal(ctx, program)
	if err != nil {
		return nil, err
	}
	for _, t := range []struct {
		file, name string
		initial    bool
	}{{skeletonName, trace.SnapshotName, true}, {finalName, trace.FinalName, false}} {
		tree, err := c.readTree(ctx, t.file, t.initial)
		if errors.Is(err, fs.ErrNotExist) {
			continue // what is to be there before, or after, is not said
		}
		if err == nil {
			err = seal.WriteTree(tw, t.name, tree)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

type compiler struct {
	dir     string
	tw      *trace.TapeWriter
	w       *format.Writer
	content contentReader
	arch    event.Arch
	base    uint64 // time of the zero of the lines, ns
	exit    uint64 // of the line before
	tid     uint32 // likewise
	threads map[uint32]*lineThread
	files   map[uint64]facts
	stacks  map[uint64]*event.Stack
	special uint32 // flags of the line's record
	scratch []byte
}

// lineThread is a thread that the lines have.
type lineThread struct {
	pid uint32
	cpu uint64
}

func (c *compiler) openContent() error {
	f, err := wholefile.Open(c.dir, contentName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return err
	}
	c.content = contentReader{f, st.Size()}
	return nil
}

// seal makes a stream of the lines, and the tape's events of that.
func (c *compiler) seal(ctx context.Context, program string) (*trace.Manifest, error) {
	work, err := wholefile.TempDir("iotape-script")
	if err != nil {
		return nil, err
	}
	defer work.Close()
	im := format.NewImport(work.Temp, program)
	if c.w, err = im.Host(""); err != nil {
		return nil, err
	}
	c.w.Head.Backend = "script"
	c.base = startNS
	c.exit = c.base
	err = eachLine(ctx, c.dir, replayName, "iotape-script", c.lineOf)
	streams, closeErr := im.Close()
	if err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	in, err := os.Open(streams[0])
	if err != nil {
		return nil, err
	}
	defer in.Close()
	stats, err := seal.Seal(ctx, bufio.NewReaderSize(in, 1<<20), c.tw, nil)
	if err != nil {
		return nil, err
	}
	return stats.Manifest(program), nil
}

// startNS is when a script without "host first=" begins.
const startNS = 1e9

// times are when and by whom a line's event was.
type times struct {
	enter, exit, cpu uint64
	pid, tid         uint32
	// ns that the thread waited for a processor, between its calls and in this one
	before, within uint32
	delays         bool // they are known
	used           bool // the CPU time is said
	untimed        bool // how long the call took is not known
}

// time reads the n-th time of a line. The duration may have a mark that it is not known.
func (t *times) time(word string, n int) (ns int64, ok bool) {
	word, unknown := strings.CutSuffix(word, "?")
	ns, ok = seconds(word)
	t.untimed = t.untimed || unknown
	return ns, ok && (!unknown || n == 1)
}

// lineOf takes one line of replay.
func (c *compiler) lineOf(p *scanner) error {
	t, at, err := c.prefix(p)
	if err != nil {
		return err
	}
	if p.end() { // what no stream can say is a comment
		return nil
	}
	start, word := c.first(p)
	if word == "" {
		return p.fail(p.i, fmt.Sprintf("%q: a call was expected", first(p.s[p.i:])),
			"a line is: ENTER DURATION CPU THREAD name(arguments) = result")
	}
	isCall := p.i < len(p.s) && p.s[p.i] == '('
	if word != "host" && word != "command" && word != stackWord {
		if err := c.begin(p, &t, at, word); err != nil {
			return err
		}
	}
	if isCall {
		return c.call(p, word, start, &t)
	}
	return c.mark(p, word, start, &t)
}

// first reads what is special about a line, and its first word behind that.
func (c *compiler) first(p *scanner) (at int, word string) {
	c.special = 0
	for {
		p.space()
		at = p.i
		switch word = p.word(); word {
		case behindWord:
			c.special |= trace.RecordBehind
		case lateWord:
			c.special |= trace.RecordLate
		case standInWord:
			c.special |= trace.CallStandIn
		default:
			return at, word
		}
	}
}

// record writes the record of a line.
func (c *compiler) record(r *trace.Record) error {
	r.Flags |= c.special
	return c.w.Record(r)
}

// prefix reads the times and the thread in front of a line. Without them, an event is
// right behind that of the line before, by the same thread.
func (c *compiler) prefix(p *scanner) (t times, at int, err error) {
	var ns [5]int64
	n := 0
	t.tid = max(c.tid, 1)
	at = p.i
	for {
		start := p.i
		word := p.until(" \t")
		if word == "" || word[0] != '-' && (word[0] < '0' || word[0] > '9') {
			p.i = start
			break
		}
		if strings.Contains(word, ".") {
			v, ok := t.time(word, n)
			if !ok || n == len(ns) {
				return t, at, p.fail(start, first(word)+": no time",
					"times are enter, duration, CPU time, and the delays before and within, in seconds with a "+
						"point: 0.000123")
			}
			ns[n] = v
			n++
			p.space()
			continue
		}
		tid, ok := event.ParseNumber(word)
		if !ok || tid > math.MaxUint32 {
			return t, at, p.fail(start, first(word)+": no thread", "it is a number")
		}
		t.tid = uint32(tid)
		p.space()
		break
	}
	t.enter, t.exit = c.exit, c.exit
	if n == 0 {
		return t, at, nil
	}
	enter := int64(c.base) + ns[0]
	switch {
	case min(enter, ns[1], ns[2]) < 0 && ns[0] < 0, min(ns[1], ns[2]) < 0:
		return t, at, p.fail(at, "the time is before the beginning of all", "")
	case enter < 0 || enter > math.MaxInt64-ns[1]:
		return t, at, p.fail(at, "the time is after the end of all", "times end in 2262")
	}
	t.used = n > 2
	if t.delays = n > 3; t.delays {
		if n < len(ns) || min(ns[3], ns[4]) < 0 || max(ns[3], ns[4]) > math.MaxUint32 {
			return t, at, p.fail(at, "how long its thread waited for a processor is not said so",
				"it is two times of at most 4.294967295 s: before the call, and within it")
		}
		t.before, t.within = uint32(ns[3]), uint32(ns[4])
	}
	t.enter, t.exit, t.cpu = uint64(enter), uint64(enter+ns[1]), uint64(ns[2])
	return t, at, nil
}

// begin finds the thread of a line and checks its time.
func (c *compiler) begin(p *scanner, t *times, at int, word string) error {
	if t.exit < c.exit && c.special&trace.RecordBehind == 0 {
		return p.fail(at, fmt.Sprintf("it returns %s s before the line above does",
			appendSeconds(nil, int64(c.exit-t.exit))),
			"lines are in the order of returns: correct the time, leave out all times of the line, or write "+
				behindWord+" before the call")
	}
	c.exit, c.tid = max(c.exit, t.exit), t.tid
	th := c.threads[t.tid]
	if th == nil && word != "thread" && (t.tid != 0 || word != "lost") {
		if len(c.threads) >= maxThreads {
			return p.fail(at, "too many threads", "")
		}
		th = &lineThread{pid: t.tid} // a process of its own
		c.threads[t.tid] = th
	}
	if th == nil {
		return nil
	}
	t.pid = th.pid
	if !t.used {
		t.cpu = th.cpu
	}
	th.cpu = t.cpu
	return nil
}

const maxThreads = 1 << 22
