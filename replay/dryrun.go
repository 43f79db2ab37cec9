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
	"github.com/iotape/iotape/trace"
)

// reason says why a call is not made.
type reason uint8

func (r reason) String() string { return reasons[r] }

const (
	whyNone        reason = iota
	whyModelled           // the operation table's: its effect is modelled, or it has none here
	whyOwn                // the replayer does it in its own time
	whyUnknown            // not in the operation table
	whyUnexplained        // no order of the calls that it overlapped with makes it fail
	whyInterrupted        // its return was not seen
	whyEnvironment        // failed for what the recorded machine was like
	whySimulated          // on a pipe, a socket, a terminal or what else is not made
	whyPath               // its name is in /proc, /sys or /dev, or was not recorded
	whySpecial            // opens a FIFO, a device or a socket
	whyCommand            // a command of ioctl or fcntl that files do not have, or that is modelled
	whyRuns               // the page was read to be executed
)

var reasons = [...]string{
	whyModelled: "modelled", whyOwn: "the replayer does this itself, when it is due", whyUnknown: "not in the operation table", whyUnexplained: "no order of the calls that it overlapped with makes it fail", whyInterrupted: "its return was not recorded",
	whyEnvironment: "failed for what the recorded machine was like", whySimulated: "on what is simulated: a pipe, a socket, a terminal",
	whyPath: "in /proc, /sys or /dev, or without a recorded name", whySpecial: "opens a FIFO, a device or a socket",
	whyCommand: "a command that is modelled, or not about files", whyRuns: "a page that was read to be executed",
}

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
	sk, _, err := infer(ctx, t, layout)
	if err != nil {
		return nil, err
	}
	p := newPlanner(t, os.Geteuid() == 0, newMadeUp(t, sk.Made, false), sk.Elsewhere, layout, order.Resource)
	s := survey{users: map[uint32]uint64{}, ops: map[PlannedOp]uint64{}}
	for e := range sk.Entries() {
		s.bytes += max(e.Size, 0)
		s.name(filepath.Base(e.Path))
	}
	var tk task
	for n := uint64(0); ; n++ {
		if n%4096 == 0 {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			p.order.AllDone()
		}
		if err := p.next(&tk); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		s.see(&tk, len(p.handles))
	}
	plan := &Plan{Events: p.n, Ops: s.list(), Needs: s.needs()}
	if o.Into != "" {
		err = plan.look(o.Into, &s)
	}
	return plan, err
}

// survey is what a tape's calls need.
type survey struct {
	ops            map[PlannedOp]uint64
	users          map[uint32]uint64 // calls by identity
	direct, xattrs uint64
	devices        uint64
	open           int
	longest        int   // name, in bytes
	bytes          int64 // of files: of the initial tree, and what files grow to
}

func (s *survey) name(name string) { s.longest = max(s.longest, len(name)) }

const oDirect = 0o40000

func (s *survey) see(t *task, open int) {
	if t.ev.Kind != event.Call {
		return
	}
	op := PlannedOp{Op: t.op.String(), Made: t.action != emulate}
	if !op.Made {
		if op.Reason = reasons[t.why]; t.why == whyModelled {
			op.Reason = cmp.Or(event.Lookup(t.op).Why, op.Reason)
		}
	}
	s.ops[op]++
	if !op.Made {
		return
	}
	s.users[t.ev.UID]++
	s.open = max(s.open, open)
	if f := t.ev.FileArg(event.ResultArg); f != nil && f.Flags&oDirect != 0 {
		s.direct++
	}
	for i := range t.ev.Paths {
		if abs := t.ev.Paths[i].Abs; abs != "" && t.ev.OK() {
			s.name(filepath.Base(abs))
		}
	}
	switch t.op {
	case event.OpSetxattr, event.OpLsetxattr, event.OpFsetxattr:
		s.xattrs++
	case event.OpMknod, event.OpMknodat:
		s.devices++
	}
	if io := t.ev.Traffic(); io.To != nil && io.To.Known && t.ev.Offset >= 0 {
		s.bytes += io.Written // an upper bound: what is written twice counts twice
	}
}

func (s *survey) list() []PlannedOp {
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

func (s *survey) needs() []Need {
	list := []Need{{What: needSpace, Count: uint64(s.bytes)}, {What: needNames, Count: uint64(s.longest)}, {What: needOpen, Count: uint64(s.open)}}
	for _, n := range []Need{{What: needDirect, Count: s.direct}, {What: needXattrs, Count: s.xattrs}, {What: needNodes, Count: s.devices}} {
		if n.Count > 0 {
			list = append(list, n)
		}
	}
	if len(s.users) > 1 {
		list = append(list, Need{What: needUsers, Count: uint64(len(s.users))})
	}
	return list
}

// look compares the needs with what a directory and this process have.
func (p *Plan) look(dir string, s *survey) error {
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
