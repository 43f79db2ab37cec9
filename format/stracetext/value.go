// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

const (
	briefEntries = 4  // of directories, without Options.Verbose
	briefItems   = 32 // of other lists
)

// Specials of a timespec's nanoseconds (linux/stat.h).
const (
	utimeNow  = 0x3fffffff
	utimeOmit = 0x3ffffffe
)

// appendValue writes a Value as strace does. files are the descriptors in the
// call's memory, in order; nil where they are not known.
func (p *Printer) appendValue(dst []byte, v *layout.Value, w *wording) []byte {
	switch v.Kind {
	case layout.IP:
		dst = append(dst, `inet_addr("`...)
		return append(appendIP(dst, v.Data), `")`...)
	case layout.Text:
		return appendQuoted(dst, v.Data)
	case layout.UnixPath:
		if len(v.Data) > 0 && v.Data[0] == 0 {
			return appendQuoted(append(dst, '@'), v.Data[1:])
		}
		return appendQuoted(dst, v.Data)
	case layout.Bytes:
		return p.appendCut(dst, v.Data[:min(len(v.Data), p.max)], int64(v.Num))
	case layout.Bits:
		return appendBits(dst, v.Data)
	case layout.Struct:
		return p.appendStruct(dst, v, w)
	case layout.List:
		return p.appendList(dst, v, w)
	}
	return p.appendNumber(dst, v, w)
}

// appendNumber writes a Value that is a number, or a time of two.
func (p *Printer) appendNumber(dst []byte, v *layout.Value, w *wording) []byte {
	switch v.Kind {
	case layout.Int, layout.ID:
		dst = strconv.AppendInt(appendBefore(dst, v), int64(v.Num), 10)
		if v.Date {
			dst = p.appendDate(dst, int64(v.Num), -1)
		}
		return dst
	case layout.Uint:
		if v.Set != nil {
			if name, ok := v.Set.NameOf(v.Num); ok {
				return append(dst, name...)
			}
		}
		dst = appendBefore(dst, v)
		return strconv.AppendUint(dst, v.Num, 10)
	case layout.Hex:
		return appendHex(dst, v.Num)
	case layout.Octal:
		return appendOctal(dst, v.Num)
	case layout.Address:
		return appendAddress(dst, v.Num)
	case layout.Mode:
		return appendMode(dst, v.Num)
	case layout.Flags:
		return appendFlags(dst, w.arch, v.Set, v.Num)
	case layout.Enum:
		return appendEnum(dst, v.Set, v.Num)
	case layout.Device:
		return appendDevice(dst, v.Num)
	case layout.Time, layout.TimeMicros:
		return p.appendClock(dst, v)
	case layout.FD:
		dst = strconv.AppendInt(dst, int64(v.Num), 10)
		return appendObject(dst, w.file(int32(v.Num)))
	case layout.Signal:
		return appendSignal(dst, int32(v.Num))
	case layout.Signals:
		return appendSignals(dst, v.Num)
	case layout.Status:
		return appendStatus(dst, uint32(v.Num))
	case layout.Port:
		dst = append(dst, "htons("...)
		return append(strconv.AppendUint(dst, v.Num, 10), ')')
	}
	return dst
}

// AppendValue writes all of a structure, or of another Value, in strace's notation.
func AppendValue(dst []byte, a event.Arch, v *layout.Value) []byte {
	p := Printer{o: Options{Verbose: true, Location: time.UTC}, max: 1 << 30}
	return p.appendValue(dst, v, &wording{arch: a, entries: 1 << 30})
}

// AppendQuoted writes bytes as a C string, as strace does.
func AppendQuoted(dst, b []byte) []byte { return appendQuoted(dst, b) }

// wording is what the text of a Value needs besides it.
type wording struct {
	arch    event.Arch
	entries int             // of lists that are shown
	e       *event.Event    // its descriptors in memory
	seen    int             // of these
	quiet   bool            // do not say that fields are left out
	skip    map[string]bool // fields that stand elsewhere in the line
}

// file returns the next descriptor in the call's memory if it has this number.
func (w *wording) file(fd int32) *event.File {
	if w.e == nil {
		return nil
	}
	n := 0
	for i := range w.e.Files {
		f := &w.e.Files[i]
		if f.Arg != event.MemoryArg {
			continue
		}
		if n == w.seen && f.FD == fd {
			w.seen++
			return f
		}
		n++
	}
	return nil
}

// appendBefore writes what a number was, if the call changed it.
func appendBefore(dst []byte, v *layout.Value) []byte {
	if !v.Changed {
		return dst
	}
	return append(strconv.AppendUint(dst, v.Before, 10), " => "...)
}

func (p *Printer) appendStruct(dst []byte, v *layout.Value, w *wording) []byte {
	dst = append(dst, '{')
	cut, first := false, true
	var f layout.Value // not in the loop, where it would be allocated
	for i := range v.Len() {
		f = v.At(i)
		if w.skip[f.Name] {
			continue
		}
		if !p.o.Verbose && !f.Brief {
			cut = true
			continue
		}
		if !first {
			dst = append(dst, ", "...)
		}
		first = false
		if f.Kind == layout.IP && len(f.Data) == 16 {
			dst = append(dst, `inet_pton(AF_INET6, "`...)
			dst = appendIP(dst, f.Data)
			dst = append(dst, `", &`...)
			dst = append(dst, f.Name...)
			dst = append(dst, ')')
			continue
		}
		dst = append(append(dst, f.Name...), '=')
		if f.Date && f.Kind == layout.Time && strings.HasPrefix(f.Name, "st_") {
			dst = p.appendStatTime(dst, &f)
			continue
		}
		dst = p.appendValue(dst, &f, w)
	}
	if cut && !w.quiet {
		if !first {
			dst = append(dst, ", "...)
		}
		dst = append(dst, "..."...)
	}
	return append(dst, '}')
}

func (p *Printer) appendList(dst []byte, v *layout.Value, w *wording) []byte {
	dst = append(dst, '[')
	var f layout.Value
	for i := range v.Len() {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if !p.o.Verbose && i == w.entries {
			dst = append(dst, "..."...)
			break
		}
		f = v.At(i)
		dst = p.appendValue(dst, &f, w)
	}
	return append(dst, ']')
}

// appendStatTime writes a time of a struct stat, which has two fields for it.
func (p *Printer) appendStatTime(dst []byte, v *layout.Value) []byte {
	dst = strconv.AppendInt(dst, int64(v.Num), 10)
	dst = p.appendDate(dst, int64(v.Num), v.Frac)
	dst = append(append(append(dst, ", "...), v.Name...), "_nsec="...)
	return strconv.AppendInt(dst, v.Frac, 10)
}

// appendDate says as a comment which time a number of seconds since 1970 is; ns is
// -1 where it has no fraction.
func (p *Printer) appendDate(dst []byte, seconds, ns int64) []byte {
	const second = int64(time.Second)
	if seconds <= 0 || seconds >= 1<<40 || ns >= second {
		return dst
	}
	form := " /* 2006-01-02T15:04:05-0700 */"
	if ns > 0 {
		form = " /* 2006-01-02T15:04:05.000000000-0700 */"
	}
	return time.Unix(seconds, max(ns, 0)).In(p.o.Location).AppendFormat(dst, form)
}

func (p *Printer) appendClock(dst []byte, v *layout.Value) []byte {
	fraction := "tv_usec"
	if v.Kind == layout.Time {
		fraction = "tv_nsec"
		switch v.Frac {
		case utimeNow:
			return append(dst, "UTIME_NOW"...)
		case utimeOmit:
			return append(dst, "UTIME_OMIT"...)
		}
	}
	dst = append(dst, "{tv_sec="...)
	dst = strconv.AppendInt(dst, int64(v.Num), 10)
	dst = append(append(append(dst, ", "...), fraction...), '=')
	dst = append(strconv.AppendInt(dst, v.Frac, 10), '}')
	if !v.Date {
		return dst
	}
	if v.Kind == layout.TimeMicros {
		return p.appendDate(dst, int64(v.Num), v.Frac*1000)
	}
	return p.appendDate(dst, int64(v.Num), v.Frac)
}

func appendIP(dst, b []byte) []byte {
	if a, ok := netip.AddrFromSlice(b); ok {
		return a.AppendTo(dst)
	}
	return dst
}

// signalName returns a signal's name without SIG.
func signalName(n int) string { return event.SignalName(n)[len("SIG"):] }

// appendSignals writes a set of signals; one of most signals as those that it has
// not.
func appendSignals(dst []byte, set uint64) []byte {
	const signals, most = 64, 64 * 2 / 3
	n := 0
	for i := range signals {
		n += int(set >> i & 1)
	}
	if n >= most {
		dst, set = append(dst, '~'), ^set
	}
	dst = append(dst, '[')
	first := true
	for i := range signals {
		if set>>i&1 == 0 {
			continue
		}
		if !first {
			dst = append(dst, ' ')
		}
		first = false
		dst = append(dst, signalName(i+1)...)
	}
	return append(dst, ']')
}

// appendStatus writes how a process ended, stopped or went on (wait(2)).
func appendStatus(dst []byte, s uint32) []byte {
	sig := int(s & 0x7f)
	switch {
	case s == 0xffff:
		return append(dst, "{WIFCONTINUED(s)}"...)
	case s&0xff == 0x7f:
		dst = append(dst, "{WIFSTOPPED(s) && WSTOPSIG(s) == "...)
		dst = append(dst, event.SignalName(int(s>>8&0x7f))...)
		if s&0x8000 != 0 {
			dst = append(dst, " | 0x80"...)
		}
		dst = append(dst, '}')
		if other := s >> 16; other != 0 {
			dst = strconv.AppendUint(append(dst, " | 0x"...), uint64(other)<<16, 16)
		}
		return dst
	case sig != 0:
		dst = append(dst, "{WIFSIGNALED(s) && WTERMSIG(s) == "...)
		dst = append(dst, event.SignalName(sig)...)
		if s&0x80 != 0 {
			dst = append(dst, " && WCOREDUMP(s)"...)
		}
		return append(dst, '}')
	}
	dst = append(dst, "{WIFEXITED(s) && WEXITSTATUS(s) == "...)
	return append(strconv.AppendUint(dst, uint64(s>>8&0xff), 10), '}')
}

// appendBits writes the numbers of the bits that are set.
func appendBits(dst, b []byte) []byte {
	dst = append(dst, '[')
	first := true
	for i, c := range b {
		for bit := range 8 {
			if c>>bit&1 == 0 {
				continue
			}
			if !first {
				dst = append(dst, ' ')
			}
			first = false
			dst = strconv.AppendInt(dst, int64(8*i+bit), 10)
		}
	}
	return append(dst, ']')
}
