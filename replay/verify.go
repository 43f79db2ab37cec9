package replay

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"iotape/event"
	"iotape/tree"
)

// check compares what a call gave with what it gave in the recording.
func (w *worker) check(t *task, ret int64, errno syscall.Errno, outs *[event.MaxArgs][]byte) {
	if w.checks&CheckReturns == 0 {
		if (errno != 0) != (t.ev.Errno != 0) {
			w.mismatch(t, "errno", errName(t.ev.Errno), errName(errno))
		}
		if errno != 0 || w.checks == CheckNone {
			return
		}
	}
	ev, spec := &t.ev, t.ev.Spec()
	if w.checks&CheckReturns != 0 && errno != ev.Errno {
		w.mismatch(t, "errno", errName(ev.Errno), errName(errno))
		return
	}
	if errno != 0 {
		return
	}
	switch spec.Result {
	case event.KindSize, event.KindOff:
		if ret != ev.Ret && w.checks&CheckReturns != 0 {
			w.mismatch(t, "result", fmt.Sprint(ev.Ret), fmt.Sprint(ret))
			return
		}
	}
	for i := range spec.Args {
		a := &spec.Args[i]
		if a.Dir != event.Out || outs[i] == nil {
			continue
		}
		switch {
		case a.Kind == event.KindBuf || a.Kind == event.KindVec:
			b := ev.BufArg(i)
			if b == nil || w.checks&CheckData == 0 {
				continue
			}
			got := outs[i][:min(int64(len(outs[i])), max(ret, 0))]
			if spec.Class == event.Meta && a.Name == "list" && !t.noWant {
				w.checkBytes(t, "names", sortedNames(t.want), sortedNames(got))
				continue
			}
			w.checkContent(t, b, got)
		case (a.Layout == event.LayoutStat || a.Layout == event.LayoutStatx) && w.checks&CheckStat != 0:
			w.checkStat(t, outs[i])
		}
	}
}

// sortedNames brings a list of NUL-terminated names into one order.
func sortedNames(b []byte) []byte {
	names := bytes.SplitAfter(b, []byte{0})
	slices.SortFunc(names, bytes.Compare)
	return bytes.Join(names, nil)
}

// checkBytes reports the first byte that differs.
func (w *worker) checkBytes(t *task, field string, want, got []byte) {
	if bytes.Equal(want, got) {
		return
	}
	if len(want) != len(got) {
		w.mismatch(t, field, fmt.Sprintf("%d bytes", len(want)), fmt.Sprintf("%d bytes", len(got)))
		return
	}
	i := 0
	for want[i] == got[i] {
		i++
	}
	show := func(b []byte) string { return fmt.Sprintf("%q at byte %d", b[i:min(len(b), i+16)], i) }
	w.mismatch(t, field, show(want), show(got))
}

// checkStat compares what can be reproduced of a file's attributes.
func (w *worker) checkStat(t *task, out []byte) {
	want, ok := decodeStat(&t.ev, w.arch)
	if !ok {
		return
	}
	var got stat
	if t.ev.Op == event.OpStatx {
		got, _ = parseStatx(out)
	} else {
		got, _ = parseStat(out, w.arch)
	}
	typ := typeOf(want.mode)
	if typ == 'c' || typ == 'b' {
		return // device nodes are not made for everyone
	}
	if want.mode != got.mode {
		w.mismatch(t, "st_mode", fmt.Sprintf("%#o", want.mode), fmt.Sprintf("%#o", got.mode))
	}
	if (typ == 'f' || typ == 'l') && want.size != got.size {
		w.mismatch(t, "st_size", fmt.Sprint(want.size), fmt.Sprint(got.size))
	}
	// More names than the trace mentions cannot be known; fewer would be a fault.
	if typ == 'f' && want.nlink <= 1 && want.nlink != got.nlink {
		w.mismatch(t, "st_nlink", fmt.Sprint(want.nlink), fmt.Sprint(got.nlink))
	}
	if w.root && (want.uid != got.uid || want.gid != got.gid) {
		w.mismatch(t, "owner", fmt.Sprintf("%d:%d", want.uid, want.gid), fmt.Sprintf("%d:%d", got.uid, got.gid))
	}
}

// listing collects what a directory stream gave, since file systems differ in the
// order of names and in how many fit into one call.
type listing struct {
	mu    sync.Mutex
	begun bool                 // before the recording: its first names are not in the tape
	want  map[string]tree.Type // as recorded, so far
	first map[string]tree.Type // in the target when the stream was first read
}

// list follows the recording's listing of a directory. A name that comes or goes
// while a directory is being listed may or may not be reported (readdir(3)): only
// names that are there throughout must be.
func (w *worker) list(t *task) {
	h := t.fds[0]
	if h == nil || h.fd < 0 || !t.ev.OK() || t.noWant {
		return
	}
	l := &h.dir
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := w.names(h.fd)
	if err != nil {
		w.mismatch(t, "errno", "0", errName(err))
		return
	}
	if l.begun {
		l.begun = t.ev.Ret > 0
		return
	}
	if l.want == nil {
		l.want, l.first = map[string]tree.Type{}, now
	}
	for _, e := range dirents(t.want) {
		l.want[e.name] = e.typ
	}
	if t.ev.Ret > 0 {
		return
	}
	if w.checks&CheckDirs != 0 {
		w.compareListing(t, l, now)
	}
	l.want = nil
}

// names lists a directory from its start.
func (w *worker) names(fd int) (map[string]tree.Type, error) {
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	all := map[string]tree.Type{}
	buf := w.buffer(64 << 10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err != nil || n <= 0 {
			return all, err
		}
		for _, e := range dirents(buf[:n]) {
			all[e.name] = e.typ
		}
	}
}

func (w *worker) compareListing(t *task, l *listing, now map[string]tree.Type) {
	for _, name := range slices.Sorted(maps.Keys(l.want)) {
		typ, ok := now[name]
		if !ok {
			typ, ok = l.first[name]
		}
		switch want := l.want[name]; {
		case !ok:
			w.mismatch(t, "listing", fmt.Sprintf("%q", name), "missing")
			return
		case typ != want && typ != 0 && want != 0:
			w.mismatch(t, "listing", fmt.Sprintf("%q of type %c", name, want), fmt.Sprintf("type %c", typ))
			return
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, before := l.first[name]; !before {
			continue
		}
		if _, ok := l.want[name]; !ok {
			w.mismatch(t, "listing", "no more", fmt.Sprintf("%q", name))
			return
		}
	}
}

// mismatch notes a difference. What follows from a file that could not be opened
// is counted, not listed again.
func (w *worker) mismatch(t *task, field, want, got string) {
	follows := false
	for _, h := range t.fds {
		follows = follows || h != nil && h.broken
	}
	w.mu.Lock()
	w.report.mismatch(t, field, want, got, follows)
	w.mu.Unlock()
	if w.abort {
		w.stop(errAborted)
	}
}

// errName is an error's symbolic name, "0" for none.
func errName(err error) string {
	e, ok := err.(syscall.Errno)
	switch {
	case err == nil || ok && e == 0:
		return "0"
	case !ok:
		return err.Error()
	}
	if s := unix.ErrnoName(e); s != "" {
		return s
	}
	return fmt.Sprintf("errno %d", int(e))
}
