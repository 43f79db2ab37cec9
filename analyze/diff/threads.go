// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"hash/maphash"
	"io"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// call is one call of a thread, or several on a stream.
type call struct {
	sig uint64
	seq uint64 // of the first event
}

// thread is a thread of a tape, with its calls.
type thread struct {
	parent   *thread // its creator; nil for the first threads
	children []*thread
	host     uint32
	pid, tid uint32
	own      bool   // it is a process, not a further thread of one
	comm     string // as last seen
	exe      string // the program of its last exec, as compared; without an exec that of its creator
	argv     string // likewise
	calls    []call
	stream   bool // the last of calls is on a stream
}

// side is what is known of one tape.
type side struct {
	tape    *trace.Tape
	root    *thread // the ancestor of all others
	threads int
	ops     map[event.Op]*OpSum
	files   map[string]uint64 // names of successful calls, as compared → the first event
	calls   uint64
}

// threadKey identifies a living thread.
type threadKey struct{ host, tid uint32 }

// reader reads a tape into a side.
type reader struct {
	*side
	sign  *signer
	alive map[threadKey]*thread
	want  *[event.NumClasses]bool
}

// read makes the sequence of calls of each thread of a tape.
func read(ctx context.Context, t *trace.Tape, o *Options, seed maphash.Seed,
	progress func(done uint64)) (*side, error) {
	r := reader{
		side:  &side{tape: t, root: &thread{}, files: map[string]uint64{}, ops: map[event.Op]*OpSum{}},
		sign:  newSigner(t, o.Content, seed),
		alive: map[threadKey]*thread{}, want: o.classes(),
	}
	var ev event.Event
	er := t.NewEventReader()
	for n := uint64(0); ; n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			progress(n)
		}
		if err := er.Next(&ev); err == io.EOF {
			return r.side, nil
		} else if err != nil {
			return nil, err
		}
		r.see(&ev)
	}
}

func (r *reader) see(ev *event.Event) {
	switch ev.Kind {
	case event.Call:
		th := r.thread(ev)
		r.sign.note(ev)
		r.exec(th, ev)
		r.count(ev)
		if r.wanted(ev) {
			sig, stream := r.sign.event(ev)
			if n := len(th.calls); stream && th.stream && th.calls[n-1].sig == sig {
				return
			}
			th.calls, th.stream = append(th.calls, call{sig, ev.Seq}), stream
		}
	case event.Forked:
		r.start(r.thread(ev), ev)
	case event.Exited:
		th := r.thread(ev)
		r.sign.h.Reset()
		r.sign.number(uint64(ev.Kind), uint64(ev.ExitStatus()))
		th.calls = append(th.calls, call{r.sign.h.Sum64(), ev.Seq})
		delete(r.alive, threadKey{ev.Host, ev.TID})
	case event.Started, event.Inherited:
		r.thread(ev)
	}
}

// thread returns the thread that made an event.
func (r *reader) thread(ev *event.Event) *thread {
	key := threadKey{ev.Host, ev.TID}
	th := r.alive[key]
	if th == nil {
		th = &thread{host: ev.Host, pid: ev.PID, tid: ev.TID, own: ev.PID == ev.TID}
		r.add(r.root, th)
	}
	if ev.Comm != "" {
		th.comm = ev.Comm
	}
	return th
}

func (r *reader) add(parent, th *thread) {
	th.parent = parent
	parent.children = append(parent.children, th)
	r.alive[threadKey{th.host, th.tid}] = th
	r.threads++
}

func (r *reader) start(parent *thread, ev *event.Event) {
	made := ev.Fork()
	th := &thread{host: ev.Host, pid: made.PID, tid: made.TID, own: made.PID == made.TID, comm: parent.comm,
		exe: parent.exe, argv: parent.argv}
	r.add(parent, th)
}

// exec notes the program of a thread.
func (r *reader) exec(th *thread, ev *event.Event) {
	if ev.Effect() != event.EffectExecute || !ev.OK() || len(ev.Paths) == 0 {
		return
	}
	th.exe = r.sign.name(ev.Host, pathOf(&ev.Paths[0]))
	th.argv = ""
	for i := range ev.Bufs {
		if b := &ev.Bufs[i]; b.Kind == event.KindStrings {
			words := r.sign.strings(b)
			for k, w := range words {
				words[k] = r.sign.name(ev.Host, w)
			}
			th.argv = quoted(words)
			return
		}
	}
}

func (r *reader) wanted(ev *event.Event) bool {
	spec := ev.Spec()
	switch {
	case spec.NoCall:
		return r.want[event.Memory]
	case ev.Effect() == event.EffectWait || ev.Op == event.OpRtSigreturn:
		return r.want[event.Wait] // depends on when children end and signals arrive
	}
	return r.want[spec.Class]
}

// count adds a call to the sums and to the names.
func (r *reader) count(ev *event.Event) {
	r.calls++
	op := ev.Spec().Op // OpUnknown of a number that is in no table
	s := r.ops[op]
	if s == nil {
		s = &OpSum{}
		r.ops[op] = s
	}
	s.Count++
	s.Bytes += uint64(ev.Traffic().Bytes())
	took, _ := ev.Took()
	s.TimeNS += took
	if ev.Errno != 0 {
		s.Errors++
	}
	if !ev.OK() {
		return
	}
	for i := range ev.Paths {
		r.file(ev, ev.Paths[i].Abs)
	}
	for i := range ev.Files {
		r.file(ev, ev.Files[i].Path)
	}
}

// maxFiles limits the names that are compared.
const maxFiles = 1 << 20

func (r *reader) file(ev *event.Event, name string) {
	if !strings.HasPrefix(name, "/") || len(r.files) >= maxFiles {
		return
	}
	name = r.sign.name(ev.Host, name)
	if _, ok := r.files[name]; !ok {
		r.files[name] = ev.Seq
	}
}
