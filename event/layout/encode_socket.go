// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"

	"github.com/iotape/iotape/event"
)

// encodeSockaddr stores a socket address of size bytes; 0 is as many as it takes.
func encodeSockaddr(t *Told, size int64) (b []byte, lost int, ok bool) {
	if t.Kind != ToldFields || len(t.Parts) == 0 || t.Parts[0].Name != "sa_family" {
		return nil, 0, false
	}
	family, ok := event.FamilyNames.ParseValue(t.Parts[0].Text)
	if !ok {
		return nil, 0, false
	}
	b = make([]byte, maxName)
	store(b[:2], family)
	used := 2
	rest := Told{Kind: ToldFields, Parts: t.Parts[1:], Cut: t.Cut}
	r := families[family]
	switch {
	case family == afUnix:
		used = putUnixPath(b, rest.Parts)
	case r != nil && len(rest.Parts) == 1 && rest.Parts[0].Name == "sa_data": // not all of it
		used = 2 + copy(b[2:], rest.Parts[0].Data)
	case r != nil:
		used, lost = r.putAddress(b, rest.Parts, family)
	default:
		for i := range rest.Parts {
			if p := &rest.Parts[i]; p.Name == "sa_data" && p.Kind == ToldText {
				used = 2 + copy(b[2:], p.Data)
			} else {
				lost++
			}
		}
	}
	if size > 0 && size <= maxName {
		used = int(size)
	}
	return b[:used], lost, true
}

// putUnixPath stores the path of a sockaddr_un and returns how long the address is.
func putUnixPath(b []byte, fields []Told) (used int) {
	used = 2
	for i := range fields {
		if p := &fields[i]; (p.Name == "sun_path" || p.Name == "path") && p.Kind == ToldText {
			used = 2 + copy(b[2:], p.Data)
			if len(p.Data) > 0 && p.Data[0] != 0 {
				used = min(used+1, len(b))
			}
		}
	}
	return used
}

// putAddress stores the fields of an address and returns how long it is.
func (r *record) putAddress(b []byte, fields []Told, family uint64) (used, lost int) {
	for i := range fields {
		if p := &fields[i]; p.Name == "sll_addr" && p.Kind == ToldText {
			copy(b[12:], p.Data)
		} else {
			lost += r.encode(b, &Told{Kind: ToldFields, Parts: fields[i : i+1]})
		}
	}
	switch family {
	case afInet:
		return 16, lost // with sin_zero
	case afPacket:
		return 20, lost
	}
	last := r.fields[len(r.fields)-1]
	return int(last.off + last.size), lost
}

// encodeOption stores the value of a socket option.
func (m *Memory) encodeOption(t *Told, size int64) (b []byte, lost int, ok bool) {
	if m.Args == nil {
		return nil, 0, false
	}
	key := [2]uint64{m.Args[1] & 0xffffffff, m.Args[2] & 0xffffffff}
	if t.Kind == ToldText {
		if b = t.Data; textOptions[key] && size > int64(len(b)) && size < maxName {
			b = append(b[:len(b):len(b)], make([]byte, size-int64(len(b)))...)
		}
		return b, count(t.Cut), true
	}
	if f, ok := optionForms[key]; ok {
		return f.encode(t, m.Arch, false, size)
	}
	b = make([]byte, 4)
	lost = number4.put(b, t)
	return b, lost, lost == 0
}

// Message is a struct msghdr as a text tells it, with what it points to.
type Message struct {
	Head    []byte // struct msghdr
	Name    []byte // nil if there is none
	Control []byte // likewise
	Vector  []Told // struct iovec
	FDs     []Told // in Control
	NameWas *Told  // msg_namelen before the call, nil if it did not change
	Lost    int
}

// EncodeMessage returns what a text tells of a message. Pointers are 1 where there is
// something behind them.
func EncodeMessage(t *Told) (m Message, ok bool) {
	if t.Kind != ToldFields {
		return m, false
	}
	m.Head = make([]byte, msghdrBytes)
	m.Lost = count(t.Cut)
	var nameLen, controlLen uint64
	var control *Told
	for i := range t.Parts {
		p := &t.Parts[i]
		v, _ := event.ParseNumber(p.Text)
		switch p.Name {
		case "msg_name":
			if p.Kind == ToldFields {
				b, lost, ok := encodeSockaddr(p, 0)
				if m.Lost += lost; !ok {
					m.Lost++
				}
				m.Name, v = b, 1
			}
			store(m.Head[0:8], v)
		case "msg_namelen":
			nameLen, m.NameWas = v, p.Was
			store(m.Head[8:12], v)
		case "msg_iov":
			if p.Kind == ToldItems {
				m.Vector, v = p.Parts, 1
				m.Lost += count(p.Cut)
			}
			store(m.Head[16:24], v)
		case "msg_iovlen":
			store(m.Head[24:32], v)
		case "msg_control":
			if control = p; p.Kind == ToldItems {
				v = 1
			}
			store(m.Head[32:40], v)
		case "msg_controllen":
			controlLen = v
			store(m.Head[40:48], v)
		case "msg_flags":
			v, ok := event.MessageNames.ParseValue(p.Text)
			if !ok {
				m.Lost++
			}
			store(m.Head[48:52], v)
		default:
			m.Lost++
		}
	}
	if m.Name != nil && nameLen > 0 && nameLen <= maxName {
		m.Name = append(m.Name, make([]byte, maxName)...)[:nameLen]
	}
	if control != nil && control.Kind == ToldItems {
		m.controls(control)
		m.resizeControl(controlLen)
	}
	return m, true
}

const maxControl = 1 << 20

// resizeControl makes Control as long as msg_controllen says, if that is possible.
func (m *Message) resizeControl(size uint64) {
	if n := uint64(len(m.Control)); size <= maxControl && n < size {
		m.Control = append(m.Control, make([]byte, size-n)...)
	}
	m.Control = m.Control[:min(uint64(len(m.Control)), size)]
}

// controls stores control messages.
func (m *Message) controls(t *Told) {
	for i := range t.Parts {
		var length, level, kind uint64
		var data *Told
		var ok bool
		for j := range t.Parts[i].Parts {
			switch p := &t.Parts[i].Parts[j]; p.Name {
			case "cmsg_len":
				length, _ = event.ParseNumber(p.Text)
			case "cmsg_level":
				level, _ = event.LevelNames.ParseValue(p.Text)
			case "cmsg_type":
				if kind, ok = controlNames[level].ParseValue(p.Text); !ok {
					m.Lost++
				}
			case "cmsg_data":
				data = p
			}
		}
		var b []byte
		switch {
		case data == nil:
		case data.Kind == ToldText:
			b = data.Data
			m.Lost += count(data.Cut)
		default:
			f, ok := controlForms[[2]uint64{level, kind}]
			lost := 1
			if ok {
				b, lost, _ = f.encode(data, event.AMD64, false, 0)
			}
			m.Lost += lost
			if level == solSocket && kind == 1 { // SCM_RIGHTS
				m.FDs = append(m.FDs, data.Parts...)
			}
		}
		if length > cmsgHead && length < maxControl && uint64(len(b)) < length-cmsgHead {
			b = append(b[:len(b):len(b)], make([]byte, length-cmsgHead-uint64(len(b)))...)
		}
		m.Control = binary.LittleEndian.AppendUint64(m.Control, length)
		m.Control = binary.LittleEndian.AppendUint32(m.Control, uint32(level))
		m.Control = binary.LittleEndian.AppendUint32(m.Control, uint32(kind))
		m.Control = append(m.Control, b...)
		for len(m.Control)%8 != 0 {
			m.Control = append(m.Control, 0)
		}
		if len(m.Control) > maxControl {
			m.Lost++
			return
		}
	}
}
