// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/tree"
)

// version is that of the text; the first line says it.
const version = 1

// Tree is the tree that the events need to find, in the order of a manifest. Content
// returns the bytes of one of its chunks. The zero Tree is empty.
type Tree struct {
	Entries iter.Seq[*tree.Entry]
	Content func(id uint64) ([]byte, error)
}

// Written is what Write made.
type Written struct {
	Entries int    `json:"entries"`       // of the skeleton
	Events  uint64 `json:"events"`        // lines of replay, but for those that introduce threads
	Bytes   int64  `json:"bytes"`         // of the content file
	Missing int64  `json:"missing_bytes"` // bytes of content that the tape does not have
}

// Write writes a tape of one host into a directory, which is made and must not exist.
func Write(ctx context.Context, t *trace.Tape, initial Tree, dir string) (_ *Written, err error) {
	if n := len(t.Manifest().Hosts); n > 1 {
		return nil, fmt.Errorf("the tape has events of %d hosts, a script is of one: iotape slice --host makes a "+
			"tape of one", n)
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: fs.ErrExist}
	}
	wholefile.RemoveLeft(dir)
	work, err := wholefile.CreateDir(dir, 0o777)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	w := &writer{tape: t, files: map[event.OpenID]facts{}, threads: map[uint32]identity{},
		cpu: map[uint32]int64{}, stacks: map[*event.Stack]uint64{}, model: posix.New()}
	if a, ok := event.ParseArch(t.Host(0).Arch); ok {
		w.arch = a
	}
	at := work.Temp
	err = toFile(at, contentName, func(out *bufio.Writer) error {
		w.content = newContentWriter(out)
		if err := w.trees(ctx, at, initial); err != nil {
			return err
		}
		if err := toFile(at, replayName, func(out *bufio.Writer) error { return w.events(ctx, out) }); err != nil {
			return err
		}
		return w.content.w.Flush()
	})
	if err != nil {
		return nil, err
	}
	w.done.Bytes = w.content.at
	return &w.done, work.CommitNew()
}

// toFile fills a new file.
func toFile(dir, name string, fill func(out *bufio.Writer) error) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	if err = fill(out); err == nil {
		err = out.Flush()
	}
	return errors.Join(err, f.Close())
}

// identity is what a line "thread" says.
type identity struct {
	pid, ppid, pgid, sid, uid, gid, nspid, nstid uint32
	comm                                         string
}

type writer struct {
	tape    *trace.Tape
	arch    event.Arch
	content *contentWriter
	files   map[event.OpenID]facts
	threads map[uint32]identity
	cpu     map[uint32]int64 // of a thread's last call, ns
	stacks  map[*event.Stack]uint64
	model   *posix.Model // to know which open files are closed
	first   int64        // time of the first event, ns
	last    int64        // return of the event before
	scratch []byte
	done    Written
}

// trees writes the initial tree and, if the tape has one, the final.
func (w *writer) trees(ctx context.Context, dir string, initial Tree) error {
	err := toFile(dir, skeletonName, func(out *bufio.Writer) error {
		var err error
		w.done.Entries, err = w.tree(ctx, out, "initial", initial)
		return err
	})
	if _, ok := w.tape.Manifest().Files[trace.FinalName]; !ok || err != nil {
		return err
	}
	r, err := w.tape.OpenFile(trace.FinalName)
	if err != nil {
		return err
	}
	defer r.Close()
	final, err := tree.Decode(r)
	if err != nil {
		return fmt.Errorf("%s: %w", trace.FinalName, err)
	}
	return toFile(dir, finalName, func(out *bufio.Writer) error {
		_, err := w.tree(ctx, out, "final", Tree{entries(final), w.tape.Chunk})
		return err
	})
}

func entries(m *tree.Manifest) iter.Seq[*tree.Entry] {
	return func(yield func(*tree.Entry) bool) {
		for i := range m.Entries {
			if !yield(&m.Entries[i]) {
				return
			}
		}
	}
}

// events writes the file replay.
func (w *writer) events(ctx context.Context, out *bufio.Writer) error {
	w.first = w.tape.Manifest().FirstNS
	w.last = w.first
	out.Write(w.head())
	var line []byte
	r := w.tape.NewEventReader()
	var ev event.Event
	for {
		err := r.Next(&ev)
		if err == io.EOF {
			return nil
		}
		if err == nil && w.done.Events&0xfff == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		closed := w.model.Apply(&ev)
		if line, err = w.appendEvent(line[:0], &ev); err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
		for _, id := range closed {
			delete(w.files, id)
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
		for i := range ev.Bufs {
			w.done.Missing += ev.Bufs[i].Missing
		}
		w.done.Events++
	}
}

// head writes what is known of the recording.
func (w *writer) head() []byte {
	h := w.tape.Host(0)
	dst := strconv.AppendInt([]byte("iotape-script "), version, 10)
	dst = append(dst, "\n# docs/script.md says what stands here. A line is: enter, duration and CPU time used so "+
		"far, in seconds; thread; call\n"...)
	text := func(key, value string) {
		dst = stracetext.AppendQuoted(append(append(append(dst, ' '), key...), '='), []byte(value))
	}
	number := func(key string, value int64) {
		dst = strconv.AppendInt(append(append(append(dst, ' '), key...), '='), value, 10)
	}
	dst = append(dst, "host"...)
	text("name", h.Head.Host)
	text("kernel", h.Kernel)
	text("arch", h.Arch)
	text("backend", h.Backend)
	text("content", h.Content)
	text("dir", h.Dir)
	number("uid", int64(h.UID))
	number("gid", int64(h.GID))
	number("first", w.first)
	number("clock", h.ClockNS)
	number("wall", h.WallNS)
	dst = append(dst, "\ncommand ["...)
	for i, s := range h.Command {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = stracetext.AppendQuoted(dst, []byte(s))
	}
	return append(dst, "]\n"...)
}

// appendEvent writes the line of an event, and before it who the thread is if that has
// changed, and the call's stack if it is a new one.
func (w *writer) appendEvent(dst []byte, ev *event.Event) ([]byte, error) {
	if ev.Kind != event.LossMark || ev.TID != 0 {
		who := identity{ev.PID, ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID, ev.NSPID, ev.NSTID, ev.Comm}
		if was, ok := w.threads[ev.TID]; !ok || was != who {
			dst = appendSeconds(dst, max(ev.Exit, w.last)-w.first)
			dst = strconv.AppendUint(append(dst, ' '), uint64(ev.TID), 10)
			dst = appendThread(append(dst, ' '), &who)
			w.threads[ev.TID] = who
		}
	}
	if ev.Stack != nil && w.stacks[ev.Stack] == 0 {
		w.stacks[ev.Stack] = uint64(len(w.stacks) + 1)
		dst = appendStack(dst, w.stacks[ev.Stack], ev.Stack)
	}
	dst = w.appendTime(dst, ev)
	w.last = max(w.last, ev.Exit)
	if ev.Kind != event.Call {
		return append(w.appendMark(dst, ev), '\n'), nil
	}
	dst, err := w.appendCall(dst, ev)
	return append(dst, '\n'), err
}

// appendTime writes when and by whom, and what is special about it.
func (w *writer) appendTime(dst []byte, ev *event.Event) []byte {
	if ev.Kind != event.Call {
		dst = appendSeconds(dst, ev.Exit-w.first)
	} else {
		enter := min(ev.Enter, ev.Exit) // what was read of a mapping stands before the call that it mattered to
		dst = appendSeconds(dst, enter-w.first)
		dst = appendSeconds(append(dst, ' '), ev.Exit-enter)
		if ev.Flags&event.Untimed != 0 {
			dst = append(dst, '?')
		}
		if ev.CPU != 0 || w.cpu[ev.TID] != 0 || ev.Flags&event.Delays != 0 {
			dst = appendSeconds(append(dst, ' '), ev.CPU)
		}
		if ev.Flags&event.Delays != 0 {
			dst = appendSeconds(append(dst, ' '), int64(ev.DelayBefore))
			dst = appendSeconds(append(dst, ' '), int64(ev.DelayWithin))
		}
		w.cpu[ev.TID] = ev.CPU
	}
	dst = strconv.AppendUint(append(dst, ' '), uint64(ev.TID), 10)
	dst = append(dst, ' ')
	if ev.Exit < w.last {
		dst = append(append(dst, behindWord...), ' ')
	}
	if ev.Flags&event.Late != 0 {
		dst = append(append(dst, lateWord...), ' ')
	}
	if ev.Flags&event.Synthetic != 0 {
		dst = append(append(dst, standInWord...), ' ')
	}
	return dst
}

// What stands before a call or a mark that is special.
const (
	behindWord  = "behind"   // it returned before the line above did
	lateWord    = "late"     // event.Late
	standInWord = "stand-in" // event.Synthetic
)

// appendSeconds writes ns as seconds.
func appendSeconds(dst []byte, ns int64) []byte {
	if ns < 0 {
		dst, ns = append(dst, '-'), -ns
	}
	dst = append(strconv.AppendInt(dst, ns/1e9, 10), '.')
	for unit := int64(1e8); unit > 0; unit /= 10 {
		dst = append(dst, byte('0'+ns/unit%10))
	}
	return dst
}

func appendThread(dst []byte, who *identity) []byte {
	number := func(key string, v uint32) {
		dst = strconv.AppendUint(append(append(append(dst, ' '), key...), '='), uint64(v), 10)
	}
	dst = append(dst, "thread"...)
	number("pid", who.pid)
	number("ppid", who.ppid)
	number("pgid", who.pgid)
	number("sid", who.sid)
	number("uid", who.uid)
	number("gid", who.gid)
	if who.nspid != 0 || who.nstid != 0 {
		number("nspid", who.nspid)
		number("nstid", who.nstid)
	}
	return append(stracetext.AppendQuoted(append(dst, " comm="...), []byte(who.comm)), '\n')
}
