// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// What is left out, by the names that a user sees.
const (
	notUnderstood = "lines that are not understood"
	tooLong       = "lines longer than 64 MiB"
	stops         = "stops of processes"
	beganBefore   = "calls that began before the trace"
	tooMany       = "calls under way, of which there are too many"
	guessed       = "threads whose process is a guess"
	stacks        = "stack traces"
	setBack       = "calls with an earlier time than the one before (the clock was set back): they are placed behind it"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxThreads = 1 << 20
	maxFDs     = 1 << 16 // of a process
	maxCopied  = 1 << 22 // that processes have from their makers
	maxHeads   = 256 << 20
)

// ErrNotStrace is returned for files without one line of strace.
var ErrNotStrace = fmt.Errorf("no system calls in it: %w", trace.ErrNotATrace)

// Import writes the calls of strace's text to w and counts them in done. pid is the
// process whose lines have no number, 0 if that is not known.
func Import(r io.Reader, pid uint32, w *format.Writer, done *format.Done) error {
	w.Unsorted = true // a child's lines may come before its maker's call returns
	x := &importer{w: w, done: done, main: pid, threads: map[uint32]*thread{},
		handles: map[string]bool{}, values: map[valueKey]uint64{},
		links: map[string]string{}}
	br := bufio.NewReaderSize(r, 1<<20)
	head, _ := br.Peek(br.Size())
	if x.main == 0 {
		x.main = findPID(head)
	}
	x.cwds = findDirectories(beginning(r, head))
	x.makers, x.early = findMakers(beginning(r, head)), map[uint32]uint64{}
	l := lines{r: br}
	for {
		b, err := l.next()
		switch {
		case errors.Is(err, errLong):
			done.LeftOut(tooLong, 1)
			continue
		case err == io.EOF:
			return x.end()
		case err != nil:
			return err
		}
		if err := x.line(string(b)); err != nil {
			return fmt.Errorf("line %d: %w", l.n, err)
		}
	}
}

// maxBeginning is how much of a file is looked at before it is read, in bytes.
const maxBeginning = 64 << 20

// beginning returns the lines at the beginning of a trace: of a file more than its head.
func beginning(r io.Reader, head []byte) iter.Seq[string] {
	file, ok := r.(io.ReaderAt)
	if !ok {
		return strings.Lines(string(head))
	}
	return func(yield func(string) bool) {
		l := lines{r: bufio.NewReaderSize(io.NewSectionReader(file, 0, maxBeginning), 1<<16)}
		for {
			b, err := l.next()
			if errors.Is(err, errLong) {
				continue
			}
			if err != nil || !yield(string(b)) {
				return
			}
		}
	}
}

// findPID looks for the number of the first process in a trace whose first lines do
// not say it.
func findPID(head []byte) uint32 {
	for line := range strings.Lines(string(head)) {
		p := parsePrefix(strings.TrimSuffix(line, "\n"))
		if p.tid != 0 {
			if strings.HasPrefix(p.body, "<... ") && strings.Contains(p.body, "fork resumed>") {
				return p.tid // what was begun before there were numbers
			}
			continue
		}
		for _, name := range [...]string{"set_tid_address(", "getpid(", "gettid("} {
			if _, result, ok := strings.Cut(p.body, "= "); ok && strings.HasPrefix(p.body, name) {
				result, _, _ = strings.Cut(result, " ")
				if v, err := strconv.ParseUint(result, 10, 32); err == nil && v > 0 {
					return uint32(v)
				}
			}
		}
	}
	return 1
}

type importer struct {
	w       *format.Writer
	done    *format.Done
	main    uint32            // thread of the lines that have no number
	cwds    map[uint32]string // see findDirectories
	makers  map[uint32]maker  // see findMakers
	early   map[uint32]uint64 // of threads with makers that have begun: before their first line, ns
	threads map[uint32]*thread
	making  []*thread // in a call that makes threads, oldest first
	held    int       // bytes of calls that are not finished
	copied  int       // see maxCopied
	clock   clock
	carried string // what stood in front of "strace: Process 12 attached"
	// attached are the processes to which strace attached, by their numbers: threads that have no line so far.
	attached map[uint32]int
	output   []byte    // a call whose output stands in the middle of it, so far; nil if there is none
	kept     *returned // nil: there is none
	begins   *thread   // whose call the last line began
	calls    int
	summary  bool              // the lines are those of a summary
	links    map[string]string // symbolic links that opens proved: absolute names and targets
	values   map[valueKey]uint64
	flights  []*format.OpenFile // in messages on their way (SCM_RIGHTS), in the order of sending
	handles  map[string]bool    // those of which name_to_handle_at told the file
	fields   []*field           // scratch
}

type thread struct {
	tid  uint32
	p    *process
	comm string
	exit uint64 // of its last call, ns

	head  string // the call under way, as far as it stands there; "" if there is none
	enter uint64
	makes bool // it makes threads
	group bool // in the same process
	ended bool // exit_group said so
}

type process struct {
	pid, parent uint32
	by          *process // its maker, as far as that is known; nil when it is sure
	began       uint64   // time of its first line, ns
	first       *process // the first of its ancestors that is in the trace; may be itself
	cwd         bool     // of first: known
	opens       bool     // the trace has calls that open files
	jailed      bool     // its names may be of another root, or of other mounts, than those of -y
	copied      int      // of fds
	fds         format.Files
}

// line takes one line.
func (x *importer) line(s string) error {
	if taken, err := x.dumpLine(s); taken || err != nil {
		return err
	}
	s, ok := x.outside(s)
	if !ok {
		return nil
	}
	x.attachedWith(s)
	s, noticed := notice(s)
	if x.carried != "" {
		if !startsLine(s) && len(x.carried)+len(s) <= maxLine {
			s = x.carried + s
		} else {
			x.done.LeftOut(notUnderstood, 1)
		}
		x.carried = ""
	}
	if noticed {
		x.carried = s
		return nil
	}
	p := parsePrefix(s)
	if opensOutput(p.body) && len(s) < maxOutput {
		x.output = []byte(s)
		return nil
	}
	at := x.clock.at(&p)
	if p.body == "" {
		return nil
	}
	if what, ok := strings.CutPrefix(p.body, "+++ "); ok {
		return x.ended(&p, at, strings.TrimSuffix(what, " +++"))
	}
	switch c := p.body[0]; {
	case c == '-' && strings.HasPrefix(p.body, "--- "):
		return x.mark(&p, at, strings.TrimSuffix(p.body[4:], " ---"))
	case c == '<' && strings.HasPrefix(p.body, "<... "):
		return x.resumed(&p, at)
	case c == '>':
		x.done.LeftOut(stacks, 1)
		return nil
	case strings.HasPrefix(p.body, "strace: ") || strings.HasPrefix(p.body, "Process ") ||
		strings.HasPrefix(p.body, "[ Process PID="):
		return nil
	}
	return x.begun(&p, at)
}

// outside returns a line of strace's, or ok = false for one of the output that a program wrote in the middle of a
// call, and for one of a summary.
func (x *importer) outside(s string) (line string, ok bool) {
	if x.output != nil {
		if !startsLine(s) {
			return x.continuedOutput(s)
		}
		x.output = nil
		x.done.LeftOut(notUnderstood, 1)
	}
	return s, x.carried != "" || !x.inSummary(s)
}

// begun takes a line that begins a call, and may end it.
func (x *importer) begun(p *prefix, at uint64) error {
	begins := x.begins
	x.begins = nil
	name, _, ok := strings.Cut(p.body, "(")
	if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		// With -z, -Z and -e status, the other half of a call follows at once, with nothing in front of it.
		if begins != nil && begins.head != "" && hasResult(p.body) {
			head, enter := x.take(begins)
			return x.whole(begins, head+p.body, enter, max(at, enter))
		}
		x.done.LeftOut(notUnderstood, 1)
		return nil
	}
	t, err := x.thread(p)
	if err != nil {
		return err
	}
	if t.exit > at && t.exit-at > backwards {
		x.done.LeftOut(setBack, 1)
		at = x.clock.setBack(t.exit - at)
	}
	if head, ok := strings.CutSuffix(p.body, "<unfinished ...>"); ok {
		return x.unfinished(t, name, head, at)
	}
	if head, ok := strings.CutSuffix(p.body, "<detached ...>"); ok { // strace ended before the call
		if err := x.unfinished(t, name, head, at); err != nil || t.head == "" {
			return err
		}
		return x.interrupted(t)
	}
	if t.head != "" { // its end is not in the trace
		if err := x.interrupted(t); err != nil {
			return err
		}
	}
	return x.whole(t, p.body, at, 0)
}

// startsLine reports whether a line is one of its own, and not the rest of one that strace
// interrupted to say something of a process.
func startsLine(s string) bool {
	p := parsePrefix(s)
	if p.isMark() || strings.HasPrefix(p.body, "<... ") {
		return true
	}
	name, _, ok := strings.Cut(p.body, "(")
	return ok && isCall(name)
}

// notice takes what strace says of a process off a line's end: it may come in the middle
// of a call.
func notice(s string) (head string, ok bool) {
	i := strings.LastIndex(s, "Process ")
	if i < 0 {
		return s, false
	}
	number, what, _ := strings.Cut(s[i+len("Process "):], " ")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return s, false
	}
	switch what {
	case "attached", "detached", "suspended", "resumed":
		return strings.TrimSuffix(s[:i], "strace: "), true
	}
	return s, false
}

// thread returns whose line it is.
func (x *importer) thread(p *prefix) (*thread, error) {
	tid := p.tid
	if tid == 0 {
		tid = x.main
		if len(x.threads) == 1 && x.threads[tid] == nil { // the only one that is left
			for only := range x.threads {
				tid = only
			}
		}
	}
	t := x.threads[tid]
	if t == nil {
		by, group := x.maker(), false
		if by == nil && len(x.attached) == 1 {
			by, group = x.sibling(tid)
		}
		if m, ok := x.makers[tid]; ok && x.threads[m.tid] != nil {
			by, group = x.threads[m.tid], m.group
			x.early[tid] = max(x.clock.now, 1) - 1
			delete(x.makers, tid) // its number can be used again
		}
		var err error
		if t, err = x.newThread(tid, by, group); err != nil {
			return nil, err
		}
	}
	if p.comm != "" && p.comm != t.comm {
		t.comm = p.comm
		return t, x.w.Task(&format.Task{PID: t.p.pid, TID: t.tid, PPID: t.p.parent, Comm: t.comm}, x.clock.now)
	}
	return t, nil
}

// maker returns who made a thread whose first line comes before the call that made it
// returned, nil if there is nobody. Where several may have, it is the one that began
// first, until one of them says it.
func (x *importer) maker() *thread {
	if len(x.making) == 0 {
		return nil
	}
	first := x.making[0]
	for _, t := range x.making[1:] {
		if t.group != first.group || t.group && t.p != first.p { // its process is not known then
			x.done.LeftOut(guessed, 1)
			break
		}
	}
	return first
}

// madeBy corrects who made a process.
func (p *process) madeBy(by, taken *process) {
	p.parent, p.first = by.pid, by.first
	for fd, f := range p.fds {
		if f == taken.fds[fd] {
			delete(p.fds, fd)
		}
	}
	for fd, f := range by.fds {
		if p.fds[fd] == nil {
			p.fds[fd] = f
		}
	}
}

// newThread makes a thread that another one has made, which may be nil. Unless group is
// known to be set, what the maker is doing says whether it is in the same process.
func (x *importer) newThread(tid uint32, by *thread, group bool) (*thread, error) {
	if len(x.threads) >= maxThreads { // those that ended without a line that says so
		for _, t := range x.threads {
			if t.ended && t.head == "" {
				x.forget(t)
			}
		}
	}
	if len(x.threads) >= maxThreads {
		return nil, fmt.Errorf("more than %d threads at a time", maxThreads)
	}
	t := &thread{tid: tid}
	switch {
	case by == nil:
		t.p = &process{pid: tid, began: x.clock.now, fds: format.Files{}}
		t.p.first = t.p
	case group || by.group:
		t.p = by.p
	default:
		t.p = &process{
			pid: tid, parent: by.p.pid, by: by.p, first: by.p.first, opens: by.p.opens, jailed: by.p.jailed,
			fds: format.Files{},
		}
		if n := len(by.p.fds); x.copied+n <= maxCopied {
			maps.Copy(t.p.fds, by.p.fds)
			t.p.copied = n
			x.copied += n
		}
	}
	x.threads[tid] = t
	return t, nil
}

// forget drops a thread.
func (x *importer) forget(t *thread) {
	delete(x.threads, t.tid)
	if t.tid == t.p.pid {
		x.copied -= t.p.copied
		t.p.copied = 0
	}
}

// unfinished keeps a call until its other half comes.
func (x *importer) unfinished(t *thread, name, head string, at uint64) error {
	if t.head != "" {
		if err := x.interrupted(t); err != nil {
			return err
		}
	}
	if x.held+len(head) > maxHeads {
		x.done.LeftOut(tooMany, 1)
		return nil
	}
	x.held += len(head)
	t.head, t.enter = head, max(at, t.exit)
	x.begins = t
	if makesThread(name) {
		t.makes, t.group = true, sharesThread(head)
		x.making = append(x.making, t)
	}
	return nil
}

// sharesThread reports whether the arguments of clone say CLONE_THREAD.
func sharesThread(args string) bool {
	if strings.Contains(args, "CLONE_THREAD") {
		return true
	}
	_, flags, ok := strings.Cut(args, "flags=0x") // -X raw
	n := 0
	for n < len(flags) && hex(flags[n]) >= 0 {
		n++
	}
	v, err := strconv.ParseUint(flags[:n], 16, 64)
	return ok && err == nil && v&trace.ShareThread != 0
}

// take ends the wait for a call's other half.
func (x *importer) take(t *thread) (head string, enter uint64) {
	head, enter = t.head, t.enter
	x.held -= len(head)
	t.head = ""
	if t.makes {
		x.making = slices.DeleteFunc(x.making, func(m *thread) bool { return m == t })
		t.makes, t.group = false, false
	}
	return head, enter
}

func (x *importer) resumed(p *prefix, at uint64) error {
	x.begins = nil
	_, rest, ok := strings.Cut(p.body, " resumed>")
	if !ok {
		x.done.LeftOut(notUnderstood, 1)
		return nil
	}
	t, err := x.thread(p)
	if err != nil {
		return err
	}
	if t.head == "" {
		x.done.LeftOut(beganBefore, 1)
		return nil
	}
	if begin, ok := strings.CutSuffix(rest, "<unfinished ...>"); ok { // a second time
		x.held += len(begin)
		t.head += begin
		return nil
	}
	head, enter := x.take(t)
	return x.whole(t, head+rest, enter, max(at, enter))
}

// interrupted writes a call that did not return, as far as it is known.
func (x *importer) interrupted(t *thread) error {
	head, enter := x.take(t)
	return x.call(t, head+") = ?", enter, max(x.clock.now, enter), nil)
}

// ended takes a line about a thread's end.
func (x *importer) ended(p *prefix, at uint64, what string) error {
	t, err := x.thread(p)
	if err != nil {
		return err
	}
	status := int64(0)
	if by, ok := strings.CutPrefix(what, "superseded by execve in pid "); ok {
		// The thread that called is the first one from now on.
		tid, err := strconv.ParseUint(by, 10, 32)
		other := x.threads[uint32(tid)]
		if err != nil || other == nil || other == t {
			return nil
		}
		if t.head != "" {
			if err := x.interrupted(t); err != nil {
				return err
			}
		}
		t.head, t.enter, t.exit = other.head, other.enter, max(t.exit, other.exit)
		other.head = ""
		x.forget(other)
		return nil
	} else if code, ok := strings.CutPrefix(what, "exited with "); ok {
		n, err := strconv.ParseUint(code, 10, 8)
		if err != nil {
			x.done.LeftOut(notUnderstood, 1)
			return nil
		}
		status = int64(n) << 8
	} else if sig, ok := strings.CutPrefix(what, "killed by "); ok {
		sig, core := strings.CutSuffix(sig, " (core dumped)")
		n, ok := event.SignalByName(sig)
		if !ok {
			x.done.LeftOut(notUnderstood, 1)
			return nil
		}
		if status = int64(n); core {
			status |= 0x80
		}
	} else {
		x.done.LeftOut(notUnderstood, 1)
		return nil
	}
	if t.head != "" {
		if err := x.interrupted(t); err != nil {
			return err
		}
	}
	x.done.Records++
	x.forget(t)
	if t.ended { // said already, when it called exit_group
		return nil
	}
	return x.w.Record(&trace.Record{Type: trace.RecExit, PID: t.p.pid, TID: t.tid, Exit: max(at, t.exit), Ret: status})
}

// end writes what did not end in the trace.
func (x *importer) end() error {
	if err := x.flush(); err != nil {
		return err
	}
	var rest []*thread
	for _, t := range x.threads {
		if t.head != "" {
			rest = append(rest, t)
		}
	}
	if x.output != nil {
		x.done.LeftOut(notUnderstood, 1)
	}
	slices.SortFunc(rest, func(a, b *thread) int { return cmp.Compare(a.tid, b.tid) })
	for _, t := range rest {
		if err := x.interrupted(t); err != nil {
			return err
		}
	}
	if x.calls == 0 {
		return ErrNotStrace
	}
	return nil
}
