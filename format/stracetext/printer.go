// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"strconv"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/trace"
)

// Clock says which time stands in front of a line.
type Clock string

// The clocks.
const (
	Elapsed Clock = "elapsed" // seconds since Options.StartNS
	Wall    Clock = "wall"    // time of day in Options.Location
	Unix    Clock = "unix"    // seconds since 1970
	NoClock Clock = "none"
)

// Known reports whether it is one of these.
func (c Clock) Known() bool { return c == Elapsed || c == Wall || c == Unix || c == NoClock }

// Options say how events are written. Nil and zero mean the documented default.
type Options struct {
	// MaxBytes limits what is shown of each buffer. 0 is 32; negative is all.
	MaxBytes int
	// Verbose shows all fields of structures and all entries of directories, not
	// the most telling ones.
	Verbose bool
	// Stacks writes the stack of a call below its line, a frame a line.
	Stacks bool
	Clock  Clock // "" is Elapsed
	// Location is the time zone of Wall. Nil is local time.
	Location *time.Location
	// Nanoseconds writes times with nine decimals, not six.
	Nanoseconds bool
	// StartNS is the monotonic time, in ns, that Elapsed counts from.
	StartNS int64
	// Hosts are the tape's. Without them all events are taken for amd64's.
	Hosts []trace.Host
	// Style marks names, failures, signals and ends in lines; the zero Style marks nothing.
	Style term.Style
	// Content returns the first max bytes of a buffer, with zeros for what is
	// missing. Nil shows only what stands in the event itself. The result may be
	// reused by the next call.
	Content func(b *event.Buf, max int) []byte
}

const defaultMaxBytes = 32

// Printer writes events. It is not safe for concurrent use.
type Printer struct {
	o    Options
	max  int // bytes shown of a buffer
	arch []event.Arch

	memory layout.Memory // being decoded
	second int64         // that stamp stands for
	stamp  []byte
}

// New returns a Printer.
func New(o *Options) *Printer {
	p := &Printer{}
	if o != nil {
		p.o = *o
	}
	switch {
	case p.o.MaxBytes == 0:
		p.max = defaultMaxBytes
	case p.o.MaxBytes < 0:
		p.max = 1 << 30
	default:
		p.max = p.o.MaxBytes
	}
	if p.o.Clock == "" {
		p.o.Clock = Elapsed
	}
	if p.o.Location == nil {
		p.o.Location = time.Local
	}
	for i := range p.o.Hosts {
		a, _ := event.ParseArch(p.o.Hosts[i].Arch)
		p.arch = append(p.arch, a)
	}
	return p
}

func (p *Printer) archOf(e *event.Event) event.Arch {
	if int(e.Host) < len(p.arch) {
		return p.arch[e.Host]
	}
	return event.AMD64
}

// wall returns the wall-clock time of a monotonic time on the event's host, in ns.
func (p *Printer) wall(e *event.Event, ns int64) int64 {
	if int(e.Host) < len(p.o.Hosts) {
		return p.o.Hosts[e.Host].Wall(ns)
	}
	return ns
}

// content returns up to n bytes of a buffer.
func (p *Printer) content(b *event.Buf, n int) []byte {
	n = int(min(int64(n), b.Len))
	if b.Inline != nil || p.o.Content == nil {
		return b.Inline[:min(n, len(b.Inline))]
	}
	if n == 0 {
		return nil
	}
	return p.o.Content(b, n)
}

// appendTime writes the line's time.
func (p *Printer) appendTime(dst []byte, e *event.Event) []byte {
	switch p.o.Clock {
	case NoClock:
		return dst
	case Wall:
		dst = time.Unix(0, p.wall(e, e.Enter)).In(p.o.Location).AppendFormat(dst, "15:04:05.000000")
	case Unix:
		dst = p.appendSeconds(dst, p.wall(e, e.Enter))
	default:
		dst = p.appendSeconds(dst, e.Enter-p.o.StartNS)
	}
	return append(dst, ' ')
}

// appendSeconds writes ns as seconds.
func (p *Printer) appendSeconds(dst []byte, ns int64) []byte {
	if ns < 0 {
		dst, ns = append(dst, '-'), -ns
	}
	const second = 1e9
	frac, unit := uint64(ns)%second, uint64(second/10)
	dst = strconv.AppendUint(dst, uint64(ns)/second, 10)
	dst = append(dst, '.')
	last := uint64(1000)
	if p.o.Nanoseconds {
		last = 1
	}
	for ; unit >= last; unit /= 10 {
		dst = append(dst, byte('0'+frac/unit%10))
	}
	return dst
}
