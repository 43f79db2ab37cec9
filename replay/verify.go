package replay

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/tree"
)

// check compares what a call gave with what it gave in the recording.
func (w *worker) check(t *task, ret int64, errno syscall.Errno, outs *[event.MaxArgs][]byte) {
	if t.Unexplained&linearize.UnexplainedResult != 0 {
		w.doubted()
		return
	}
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
	switch {
	case ev.Op == event.OpLseek && (ev.Args[2] == unix.SEEK_DATA || ev.Args[2] == unix.SEEK_HOLE):
		// Where a file has holes is the file system's choice. What comes next goes on from
		// where it went on.
		if ret != ev.Ret {
			_, _ = unix.Seek(int(w.descriptor(t, 0)), ev.Ret, unix.SEEK_SET)
		}
		return
	case isList(spec):
	case spec.Result == event.KindSize || spec.Result == event.KindOff:
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
			if isList(spec) && !t.noWant {
				w.checkBytes(t, "names", sortedNames(t.want), sortedNames(got))
				continue
			}
			w.checkContent(t, b, got)
		case (a.Layout == event.LayoutStat || a.Layout == event.LayoutStatx) && w.checks&CheckStat != 0:
			w.checkStat(t, outs[i])
		}
	}
}

// doubted counts a result that no order of the recorded calls explains: what came of a
// race that the kernel decided halfway through a call.
func (w *worker) doubted() {
	w.mu.Lock()
	w.report.Unexplained++
	w.mu.Unlock()
}

// isList reports whether an operation lists the names of extended attributes.
func isList(spec *event.Spec) bool {
	return spec.Class == event.Meta && len(spec.Args) > 1 && spec.Args[1].Name == "list"
}

// sortedNames brings a list of NUL-terminated names into one order. XFS lists access
// lists a second time, under names of its own.
func sortedNames(b []byte) []byte {
	names := slices.DeleteFunc(bytes.SplitAfter(b, []byte{0}), func(n []byte) bool { return bytes.HasPrefix(n, []byte("trusted.SGI_ACL_")) })
	slices.SortFunc(names, bytes.Compare)
	return bytes.Join(names, nil)
}

// checkBytes reports the first byte that differs.
func (w *worker) checkBytes(t *task, field string, want, got []byte) {
	if bytes.Equal(want, got) {
		return
	}
	a, b := firstDifference(want, got)
	w.mismatch(t, field, a, b)
}

// checkStat compares what can be reproduced of a file's attributes.
func (w *worker) checkStat(t *task, out []byte) {
	want, ok := effect.DecodeStat(&t.ev, w.arch)
	if !ok {
		return
	}
	var got effect.Stat
	if t.ev.Op == event.OpStatx {
		got, _ = effect.ParseStatx(out)
	} else {
		got, _ = effect.ParseStat(out, w.arch)
	}
	typ := effect.TypeOf(want.Mode)
	if typ == 'c' || typ == 'b' {
		return // device nodes are not made for everyone
	}
	if want.Mode != got.Mode && t.Unexplained&linearize.UnexplainedMode == 0 {
		w.mismatch(t, "st_mode", fmt.Sprintf("%#o", want.Mode), fmt.Sprintf("%#o", got.Mode))
	}
	// Where links lead to has another length if it is renamed.
	if (typ == 'f' || typ == 'l' && !w.renamed) && want.Size != got.Size && t.Unexplained&linearize.UnexplainedSize == 0 {
		w.mismatch(t, "st_size", fmt.Sprint(want.Size), fmt.Sprint(got.Size))
	}
	// More names than the trace mentions cannot be known; fewer would be a fault.
	if typ == 'f' && want.Nlink <= 1 && want.Nlink != got.Nlink && t.Unexplained&linearize.UnexplainedLinks == 0 {
		w.mismatch(t, "st_nlink", fmt.Sprint(want.Nlink), fmt.Sprint(got.Nlink))
	}
	if w.root && (want.UID != got.UID || want.GID != got.GID) {
		w.mismatch(t, "owner", fmt.Sprintf("%d:%d", want.UID, want.GID), fmt.Sprintf("%d:%d", got.UID, got.GID))
	}
}

// listing collects what a directory stream gave, since file systems differ in the
// order of names and in how many fit into one call.
type listing struct {
	mu     sync.Mutex
	begun  bool                 // before the recording: its first names are not in the tape
	want   map[string]tree.Type // as recorded, so far
	unsure map[string]bool      // names that came or went meanwhile
	first  map[string]tree.Type // in the target when the stream was first read
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
		l.want, l.first, l.unsure = map[string]tree.Type{}, now, map[string]bool{}
	}
	for _, n := range t.unsure {
		l.unsure[n] = true
	}
	for _, e := range effect.Dirents(t.want) {
		l.want[e.Name] = e.Type
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
		for _, e := range effect.Dirents(buf[:n]) {
			all[e.Name] = e.Type
		}
	}
}

func (w *worker) compareListing(t *task, l *listing, now map[string]tree.Type) {
	for _, name := range slices.Sorted(maps.Keys(l.want)) {
		typ, ok := now[name]
		if l.unsure[name] {
			continue
		}
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
		if _, before := l.first[name]; !before || l.unsure[name] {
			continue
		}
		if _, ok := l.want[name]; !ok {
			w.mismatch(t, "listing", "no more", fmt.Sprintf("%q", name))
			return
		}
	}
}

// mismatch notes a difference.
func (w *worker) mismatch(t *task, field, want, got string) {
	m := Mismatch{Seq: t.ev.Seq, TID: t.TID, Op: t.op.String(), Path: t.ev.Name(), Field: field, Expected: want, Got: got}
	var names []string
	for i := range t.ev.Paths {
		names = append(names, t.ev.Paths[i].Abs)
	}
	var handles []*handle
	for _, h := range append(slices.Concat(t.fds[:], t.through[:]), t.result) {
		if h != nil {
			handles, names = append(handles, h), append(names, h.path)
		}
	}
	w.note(&m, alters(&t.ev, field), names, handles)
}

// differs is mismatch for a plain step.
func (w *worker) differs(s *step, field, want, got string) {
	m := Mismatch{Seq: s.seq, TID: s.tid, Op: s.op.String(), Field: field, Expected: want, Got: got, Path: s.h.path}
	w.note(&m, s.kind == stepWrite || !s.places && field != "content", []string{s.h.path}, []*handle{s.h})
}

func (w *worker) note(m *Mismatch, alters bool, names []string, handles []*handle) {
	w.runner.mismatch(m, alters, names, handles)
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
