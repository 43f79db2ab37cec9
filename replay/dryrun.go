// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/trace"
)

// PlannedOp is what would be done with some of the calls of an operation.
type PlannedOp struct {
	Op     string `json:"op"`
	Count  uint64 `json:"count"`
	Made   bool   `json:"made"`          // the call is made; else its effect is modelled
	Reason string `json:"why,omitempty"` // why it is not
}

// Need is something that a tape's calls need of the machine and the target.
type Need struct {
	What  string `json:"what"`
	Count uint64 `json:"count,omitempty"`
	// Lacks says what the target has in its place; "" if it has what is needed, or if
	// that was not looked at.
	Lacks string `json:"lacks,omitempty"`
}

// Plan is what a replay would do.
type Plan struct {
	Events uint64      `json:"events"`
	Ops    []PlannedOp `json:"ops"` // those that are not made first, then by count
	Needs  []Need      `json:"needs"`
}

// DryRun plans a replay without making a call. Of the options, those that say where files
// are count. If Into is not "", it is looked at for what the tape needs; it must exist, and
// nothing of it remains changed.
func DryRun(ctx context.Context, t *trace.Tape, o *Options) (*Plan, error) {
	layout, err := eventsource.NewLayout(t, o.Renames, o.Shared)
	if err != nil {
		return nil, err
	}
	initial, _, err := infer(ctx, t, layout)
	if err != nil {
		return nil, err
	}
	p, err := plan.New(t, &plan.Config{
		Layout: layout, Tainted: initial.Tainted, Elsewhere: initial.Elsewhere, Specials: initial.Specials,
		Order: order.Resource, Found: eventsource.StoredOrder(t, layout.Key()),
	})
	if err != nil {
		return nil, err
	}
	s := requirements{users: map[uint32]uint64{}, ops: map[PlannedOp]uint64{}}
	for e := range initial.Entries() {
		s.bytes += max(e.Size, 0)
		s.name(filepath.Base(e.Path))
	}
	var tk plan.Task
	for n := uint64(0); ; n++ {
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			p.AllDone()
		}
		if err := p.Next(&tk); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		s.observe(&tk, p.OpenFiles())
	}
	pl := &Plan{Events: p.Events(), Ops: s.list(), Needs: s.needs()}
	if o.Into != "" {
		err = pl.check(o.Into)
	}
	return pl, err
}

// requirements are what a tape's calls need.
type requirements struct {
	ops            map[PlannedOp]uint64
	users          map[uint32]uint64 // calls by identity
	direct, xattrs uint64
	devices        uint64
	open           int
	longest        int   // name, in bytes
	bytes          int64 // of files: of the initial tree, and what files grow to
}

func (s *requirements) name(name string) { s.longest = max(s.longest, len(name)) }

// observe adds what a task needs. open is how many files are open.
func (s *requirements) observe(t *plan.Task, open int) {
	if t.Event.Kind != event.Call {
		return
	}
	op := PlannedOp{Op: t.Op.String(), Made: t.Action != plan.Emulate}
	if !op.Made {
		op.Reason = t.Explain()
	}
	s.ops[op]++
	if !op.Made {
		return
	}
	s.users[t.Event.UID]++
	s.open = max(s.open, open)
	if f := t.Event.FileArg(event.ResultArg); f != nil && f.Flags&event.OpenDirect != 0 {
		s.direct++
	}
	for i := range t.Event.Paths {
		if abs := t.Event.Paths[i].Abs; abs != "" && t.Event.OK() {
			s.name(filepath.Base(abs))
		}
	}
	switch t.Op.Effect() {
	case event.EffectSetXattr:
		s.xattrs++
	case event.EffectMknod:
		s.devices++
	}
	if io := t.Event.Traffic(); io.To != nil && io.To.Known && t.Event.Offset >= 0 {
		s.bytes += io.Written // an upper bound: what is written twice counts twice
	}
}

func (s *requirements) list() []PlannedOp {
	list := []PlannedOp{}
	for op, n := range s.ops {
		op.Count = n
		list = append(list, op)
	}
	slices.SortFunc(list, func(a, b PlannedOp) int {
		if a.Made != b.Made {
			if a.Made {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Reason, b.Reason))
	})
	return list
}

// The names of needs.
const (
	needSpace  = "bytes of space, at most"
	needNames  = "bytes in a name"
	needOpen   = "files open at once"
	needDirect = "opens with O_DIRECT"
	needXattrs = "extended attributes set"
	needUsers  = "users whose rights count, which takes root"
	needNodes  = "special files made"
)

func (s *requirements) needs() []Need {
	list := []Need{{What: needSpace, Count: uint64(s.bytes)}, {What: needNames, Count: uint64(s.longest)},
		{What: needOpen, Count: uint64(s.open)}}
	for _, n := range []Need{{What: needDirect, Count: s.direct}, {What: needXattrs, Count: s.xattrs},
		{What: needNodes, Count: s.devices}} {
		if n.Count > 0 {
			list = append(list, n)
		}
	}
	if len(s.users) > 1 {
		list = append(list, Need{What: needUsers, Count: uint64(len(s.users))})
	}
	return list
}

// check compares the needs with what a directory and this process have.
func (p *Plan) check(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	probe, err := os.MkdirTemp(dir, ".iotape-probe-")
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	defer os.RemoveAll(probe)
	name := filepath.Join(probe, "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	for i := range p.Needs {
		n := &p.Needs[i]
		switch n.What {
		case needSpace:
			if free := uint64(st.Bavail) * uint64(st.Bsize); n.Count > free {
				n.Lacks = fmt.Sprintf("%d are free", free)
			}
		case needNames:
			if st.Namelen > 0 && int64(n.Count) > int64(st.Namelen) {
				n.Lacks = fmt.Sprintf("names have at most %d", st.Namelen)
			}
		case needOpen:
			var l unix.Rlimit
			if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil && n.Count+64 > l.Max {
				n.Lacks = fmt.Sprintf("the limit is %d (ulimit -Hn)", l.Max)
			}
		case needDirect:
			fd, err := unix.Open(name, unix.O_RDWR|unix.O_DIRECT|unix.O_CLOEXEC, 0)
			if err != nil {
				n.Lacks = err.Error()
				continue
			}
			unix.Close(fd)
		case needXattrs:
			if err := unix.Setxattr(name, "user.iotape", []byte("x"), 0); err != nil {
				n.Lacks = err.Error()
			}
		case needUsers, needNodes:
			if os.Geteuid() != 0 {
				n.Lacks = "this is an ordinary user"
			}
		}
	}
	return nil
}

// Lacking reports whether the target lacks something.
func (p *Plan) Lacking() bool {
	return slices.ContainsFunc(p.Needs, func(n Need) bool { return n.Lacks != "" })
}
