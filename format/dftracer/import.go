// SPDX-License-Identifier: Apache-2.0

package dftracer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

const (
	maxLine = 1 << 20
	// unknownError is the errno of calls that failed, as the trace does not tell it.
	unknownError = 4095
	// madeUp is the first of the descriptors of what the trace has no numbers of.
	madeUp = 1 << 20
	// maxMoved limits what one call can have read or written, in bytes.
	maxMoved = 1 << 40
)

// Import writes the events as calls and notes. Their times are the wall clock's. It
// reads the trace twice: names may stand behind their use.
func Import(ctx context.Context, in io.ReadSeeker, im *format.Import) error {
	x := importer{im: im, names: map[string]string{}, processes: map[processID]*process{}}
	for _, step := range []func([]byte, *line) error{x.learn, x.event} {
		r, err := text(in)
		if err != nil {
			return err
		}
		lines := format.NewLines(ctx, r, maxLine)
		for lines.Next() {
			var l line
			if b := lines.Text(); !x.learnt && !bytes.Contains(b, []byte(`"dftracer"`)) {
				continue // it is no name
			} else if lines.Long() || !parse(b, &l) {
				x.odd(lines)
			} else if err := step(b, &l); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
		x.learnt = true
	}
	return nil
}

type importer struct {
	im        *format.Import
	learnt    bool              // this is the second time
	names     map[string]string // by kind of name, process and hash; and without the process
	command   []string
	processes map[processID]*process
}

type processID struct {
	host string
	pid  uint32
}

// process is one that is traced.
type process struct {
	w     *format.Writer
	pid   uint32
	files format.Files       // with the names that calls used them by
	tids  map[uint32]number  // numbers of threads, and what the trace has for them
	named map[string][]int32 // descriptors that calls opened by a name, the last one last
	made  int32              // descriptors that were made up
}

// odd counts a line that is no event: the brackets around all of them do not count.
func (x *importer) odd(lines *format.Lines) {
	switch b := bytes.TrimSpace(lines.Text()); {
	case !x.learnt:
	case lines.Long():
		x.im.LeftOut(format.LongLines, 1)
	case len(b) > 1 || len(b) == 1 && b[0] != '[' && b[0] != ']':
		x.im.LeftOut(format.BadLines, 1)
	}
}

// learn takes the names that hashes stand for, and the first command.
func (x *importer) learn(_ []byte, l *line) error {
	switch {
	case l.Ph == "M" && (l.Name == "FH" || l.Name == "HH" || l.Name == "SH"):
		hash := strings.Trim(string(l.Args["value"]), `"`)
		name := l.string("name")
		x.names[l.Name+hash] = name
		x.names[fmt.Sprint(l.Name, hash, " ", l.PID)] = name // 16 bits in old versions: not one name's alone
	case l.Name == "start" && l.Cat == "dftracer" && x.command == nil:
		x.command = strings.Fields(x.hashed(l, "SH", "cmd_hash"))
	}
	return nil
}

// hashed returns the name that an argument is the hash of, "" if there is none.
func (x *importer) hashed(l *line, kind, key string) string {
	b, ok := l.Args[key]
	if !ok {
		return ""
	}
	hash := strings.Trim(string(b), `"`)
	if name, ok := x.names[fmt.Sprint(kind, hash, " ", l.PID)]; ok {
		return name
	}
	return x.names[kind+hash]
}

// path returns a path argument, by name or by hash.
func (x *importer) path(l *line, key string) string {
	if s := l.string(key); s != "" {
		return s
	}
	return x.hashed(l, "FH", key+"_hash")
}

// file returns the path of what the event is about.
func (x *importer) file(l *line) string {
	if s := l.string("fname"); s != "" {
		return s
	}
	return x.hashed(l, "FH", "fhash")
}

// event takes an event, the second time.
func (x *importer) event(b []byte, l *line) error {
	if l.Ph != "X" {
		if l.Ph != "M" {
			x.im.LeftOut(fmt.Sprintf("events of kind %.10q", l.Ph), 1)
		}
		return nil
	}
	if !utf8.Valid(b) {
		x.im.LeftOut("names that are not UTF-8, which have U+FFFD instead", 1)
	}
	p, tid, err := x.process(l)
	if err != nil {
		return err
	}
	x.im.Records++
	switch l.Cat {
	case "POSIX", "STDIO":
		c, ok := calls[l.Name]
		if !ok {
			x.im.LeftOut(fmt.Sprintf("calls of %.40s", l.Name), 1)
			return nil
		}
		return x.call(p, tid, l, c)
	case "dftracer":
		return nil // start and end of the trace
	}
	text := fmt.Sprintf("%s (%s) begins", l.Name, l.Cat)
	if l.Dur != nil {
		text += fmt.Sprintf(" and takes %v", time.Duration(*l.Dur)*time.Microsecond)
	}
	return p.w.Record(&trace.Record{Type: trace.RecNote, PID: p.pid, TID: tid, Exit: uint64(l.TS) * 1000,
		Pieces: []trace.Piece{{Len: uint32(len(text)), Data: []byte(text)}}})
}

// process returns an event's process and thread. Some traces have ranks for processes,
// and some no threads.
func (x *importer) process(l *line) (*process, uint32, error) {
	if l.PID == 0 {
		l.PID = max(l.TID, 1)
	}
	if l.TID == 0 {
		l.TID = l.PID
	}
	host := l.string("hostname")
	if host == "" {
		host = x.hashed(l, "HH", "hhash")
	}
	id := processID{host, uint32(l.PID)}
	p := x.processes[id]
	if p == nil {
		w, err := x.im.Host(host)
		if err != nil {
			return nil, 0, err
		}
		if w.Head.Backend == "" {
			w.Head.Backend, w.Head.Content, w.Head.Command, w.Unsorted = "dftracer", "none", x.command, true
		}
		p = &process{w: w, pid: id.pid, files: format.Files{}, tids: map[uint32]number{id.pid: number(id.pid)},
			named: map[string][]int32{}}
		x.processes[id] = p
	}
	if l.Name == "start" && l.Cat == "dftracer" {
		ppid, _ := l.int("ppid")
		comm := filepath.Base(strings.TrimPrefix(firstWord(x.hashed(l, "SH", "cmd_hash")), "-"))
		if err := p.w.Task(&format.Task{PID: id.pid, TID: id.pid, PPID: uint32(ppid), Comm: comm},
			uint64(l.TS)*1000); err != nil {
			return nil, 0, err
		}
	}
	tid, known := p.thread(l.TID)
	if !known {
		p.tids[tid] = l.TID
		if err := p.w.Thread(p.pid, tid, uint64(l.TS)*1000); err != nil {
			return nil, 0, err
		}
	}
	return p, tid, nil
}

// thread returns the number of a thread. Some traces have addresses (pthread_self) in its
// place, which do not fit: they get numbers of their own.
func (p *process) thread(in number) (tid uint32, known bool) {
	for tid = uint32(in) ^ uint32(in>>32); ; tid++ {
		was, taken := p.tids[tid]
		if !taken && tid != 0 || was == in {
			return tid, taken
		}
	}
}

func firstWord(s string) string {
	first, _, _ := strings.Cut(s, " ")
	return first
}

// call writes the call that a function is.
func (x *importer) call(p *process, tid uint32, l *line, spec call) error {
	path := x.file(l)
	c := format.Call{Op: spec.op, PID: p.pid, TID: tid, Enter: uint64(l.TS) * 1000, Untimed: l.Dur == nil}
	if l.Dur != nil {
		c.Exit = uint64(l.TS+*l.Dur) * 1000
	}
	result, known := l.result()
	if c.Interrupted = !known; known {
		c.Ret = result
	}
	for i, arg := range strings.Fields(spec.args) {
		switch name := strings.TrimSuffix(arg, "!"); {
		case arg == "-":
		case arg == "=" || arg[0] == '/':
			if arg != "=" {
				path = x.path(l, arg[1:])
			}
			if path == "" {
				x.im.LeftOut("calls of whose file the trace has no name", 1)
				return nil
			}
			c.Text(i, path, false)
		case arg == "fd":
			fd, err := x.descriptor(p, l, path, c.Enter)
			if err != nil {
				return err
			}
			if fd < 0 {
				x.im.LeftOut("calls of whose file the trace has neither name nor descriptor", 1)
				return nil
			}
			c.Args[i] = uint64(fd)
		case arg == "buf":
			if known && result >= 0 {
				c.Bytes(i, nil, min(result, maxMoved))
			}
		case arg == "O_DIRECTORY":
			c.Args[i] = syscall.O_RDONLY | syscall.O_NONBLOCK | syscall.O_DIRECTORY | syscall.O_CLOEXEC
		case arg == "MODE":
			c.Args[i] = openMode(l.string("mode"))
			c.Args[i+1] = 0o666
		default:
			n, ok := numberArg(l, name, result, known)
			if !ok && arg != name {
				x.im.LeftOut(fmt.Sprintf("calls of %s without %s", l.Name, name), 1)
				return nil
			}
			if c.Args[i] = uint64(n); !ok {
				c.NotKnown(i)
			}
		}
	}
	p.files.Position(&c)
	p.note(&c, path)
	return p.w.Call(&c)
}

// result returns what the call returned, if the line says it.
func (l *line) result() (n int64, known bool) {
	n, known = l.int("ret")
	if l.Cat == "STDIO" {
		n, known = stdioResult(l, n, known)
	}
	if n < 0 {
		n = -unknownError
	}
	return n, known
}

// numberArg returns an argument that is a number. If ok is false, the line does not have it. A count that it
// does not have is taken from the result.
func numberArg(l *line, name string, result int64, known bool) (n int64, ok bool) {
	n, ok = l.int(name)
	switch {
	case !ok && name == "count":
		return max(result, 0), known && result >= 0
	case ok && name == "count" && l.Cat == "STDIO":
		n = items(n, l)
	}
	return n, ok
}

// stdioResult returns the result of the call that a function of STDIO is like.
func stdioResult(l *line, result int64, known bool) (int64, bool) {
	switch l.Name {
	case "fread", "fwrite":
		return items(result, l), known
	case "fclose":
		return 0, true // the descriptor is closed, whatever the function says
	case "fseek":
		return 0, false // it is not where the file is now
	}
	return result, known
}

// items returns the bytes of n items of a function of STDIO.
func items(n int64, l *line) int64 {
	size, ok := l.int("size")
	if !ok || size < 0 || n < 0 || size > 0 && n > maxMoved/size {
		return min(max(n, 0), maxMoved)
	}
	return n * size
}

// descriptor returns the descriptor that a call is about, -1 if there is none to tell. A call
// that has a name only is about the file that was last opened by it. If the trace did not say
// that a file was opened, it was before.
func (x *importer) descriptor(p *process, l *line, path string, at uint64) (int32, error) {
	fd := int32(-1)
	if n, ok := l.int("fd"); ok && n >= 0 && n < madeUp {
		fd = int32(n)
	}
	if fd < 0 {
		if path == "" {
			return -1, nil
		}
		if fds := p.named[path]; len(fds) > 0 {
			return fds[len(fds)-1], nil
		}
		fd = madeUp + p.made
		p.made++
	}
	if f := p.files[fd]; path == "" || f != nil && f.Name == path {
		return fd, nil
	}
	p.opened(fd, &format.OpenFile{Name: path, Pos: -1})
	return fd, p.w.Open(p.pid, trace.Object{FD: fd, Arg: event.ResultArg}, path, at)
}

// opened makes a descriptor stand for a file.
func (p *process) opened(fd int32, f *format.OpenFile) {
	p.closed(fd)
	p.files[fd] = f
	p.named[f.Name] = append(p.named[f.Name], fd)
}

func (p *process) closed(fd int32) {
	f := p.files[fd]
	if f == nil {
		return
	}
	delete(p.files, fd)
	fds := slices.DeleteFunc(p.named[f.Name], func(other int32) bool { return other == fd })
	if p.named[f.Name] = fds; len(fds) == 0 {
		delete(p.named, f.Name)
	}
}

// note remembers which descriptors a call opened or closed.
func (p *process) note(c *format.Call, path string) {
	switch {
	case c.Interrupted || c.Ret < 0 || c.Ret > math.MaxInt32:
	case c.Op == event.OpClose:
		p.closed(int32(c.Args[0]))
	case c.Op == event.OpOpen:
		f := format.Opened(path, c.Args[1])
		f.Regular = c.Args[1]&syscall.O_DIRECTORY == 0
		p.opened(int32(c.Ret), f)
	case c.Op == event.OpCreat:
		p.opened(int32(c.Ret), format.Opened(path, syscall.O_WRONLY))
	}
}
