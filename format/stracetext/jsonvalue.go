// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"strconv"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// jsonValue writes a Value under a name, as an element of an array without one:
// numbers as numbers; what has names, addresses and bits as strings.
func (p *Printer) jsonValue(dst []byte, name string, v *layout.Value) []byte {
	switch v.Kind {
	case layout.Int, layout.ID, layout.FD:
		return jsonBeforeValue(putInt(dst, name, int64(v.Num)), name, v)
	case layout.Uint, layout.Device, layout.Port:
		return jsonBeforeValue(putUint(dst, name, v.Num), name, v)
	case layout.Address:
		if v.Num == 0 {
			return putNull(dst, name)
		}
	case layout.Time:
		return jsonClock(key(dst, name), v, "tv_nsec")
	case layout.TimeMicros:
		return jsonClock(key(dst, name), v, "tv_usec")
	case layout.Signals:
		return append(jsonSignals(append(key(dst, name), '['), v.Num), ']')
	case layout.Status:
		return append(jsonStatus(append(key(dst, name), '{'), uint32(v.Num)), '}')
	case layout.IP:
		dst = append(key(dst, name), '"')
		return append(appendIP(dst, v.Data), '"')
	case layout.Text:
		return putText(dst, name, v.Data)
	case layout.UnixPath:
		return putText(dst, name, socketName(v.Data))
	case layout.Bytes:
		data := v.Data[:min(len(v.Data), p.max)]
		dst = putText(dst, name, data)
		if name != "" && uint64(len(data)) < v.Num {
			dst = putUint(dst, name+"_bytes", v.Num)
		}
		return dst
	case layout.Bits:
		return append(jsonBits(append(key(dst, name), '['), v.Data), ']')
	case layout.Struct:
		return append(p.jsonFields(append(key(dst, name), '{'), v), '}')
	case layout.List:
		dst = append(p.jsonElements(append(key(dst, name), '['), v), ']')
		if v.Len() == 1 { // a number that the argument points to
			f := v.At(0)
			return jsonBeforeValue(dst, name, &f)
		}
		return dst
	}
	dst = append(key(dst, name), '"')
	return append(p.appendValue(dst, v, &wording{arch: p.memory.Arch}), '"')
}

// jsonBeforeValue adds what a number was, if the call changed it and it has a name.
func jsonBeforeValue(dst []byte, name string, v *layout.Value) []byte {
	if !v.Changed || name == "" {
		return dst
	}
	dst = key(dst, name+"_before")
	return strconv.AppendUint(dst, v.Before, 10)
}

func (p *Printer) jsonFields(dst []byte, v *layout.Value) []byte {
	var f layout.Value // not in the loop, where it would be allocated
	for i := range v.Len() {
		f = v.At(i)
		dst = p.jsonValue(dst, f.Name, &f)
	}
	return dst
}

func (p *Printer) jsonElements(dst []byte, v *layout.Value) []byte {
	var f layout.Value // as in jsonFields
	for i := range v.Len() {
		f = v.At(i)
		dst = p.jsonValue(dst, "", &f)
	}
	return dst
}

// socketName returns a Unix socket's address with @ for the NUL of an abstract one.
func socketName(path []byte) []byte {
	if len(path) > 0 && path[0] == 0 {
		return append([]byte{'@'}, path[1:]...)
	}
	return path
}

// jsonSignals writes the names of a set of signals.
func jsonSignals(dst []byte, set uint64) []byte {
	for i := range 64 {
		if set>>i&1 != 0 {
			dst = putWord(dst, "", event.SignalName(i+1))
		}
	}
	return dst
}

// jsonBits writes the numbers of the bits that are set.
func jsonBits(dst, bits []byte) []byte {
	for i, c := range bits {
		for bit := range 8 {
			if c>>bit&1 != 0 {
				dst = putInt(dst, "", int64(8*i+bit))
			}
		}
	}
	return dst
}

func jsonClock(dst []byte, v *layout.Value, fraction string) []byte {
	dst = putInt(append(dst, '{'), "tv_sec", int64(v.Num))
	return append(putInt(dst, fraction, v.Frac), '}')
}

func jsonStatus(dst []byte, s uint32) []byte {
	switch sig := int(s & 0x7f); {
	case s == 0xffff:
		return putTrue(dst, "continued")
	case s&0xff == 0x7f:
		return putWord(dst, "stopped", event.SignalName(int(s>>8&0xff)))
	case sig != 0:
		dst = putWord(dst, "signaled", event.SignalName(sig))
		if s&0x80 != 0 {
			dst = putTrue(dst, "core")
		}
		return dst
	}
	return putUint(dst, "exited", uint64(s>>8&0xff))
}
