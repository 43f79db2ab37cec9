// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"strings"
	gotime "time"

	"github.com/iotape/iotape/event"
)

// ToldKind says what a text has in the place of a value.
type ToldKind uint8

// The kinds.
const (
	ToldWord   ToldKind = iota // a number, names, or what looks like a call: makedev(8, 1)
	ToldText                   // a string in quotes
	ToldFields                 // a structure in braces
	ToldItems                  // a list in brackets
)

// Told is a value as a text tells it, such as strace's: without its type. It may share
// memory with the text.
type Told struct {
	Kind    ToldKind
	Name    string // of a field or an argument, "" if it has none
	Text    string // ToldWord: as it stands there
	Data    []byte // ToldText: the bytes
	Parts   []Told // ToldFields, ToldItems; ToldWord: the arguments, if it looks like a call
	Cut     bool   // "..." says that there is more
	Not     bool   // ToldItems: of what is not in the set
	Note    string // what stood behind a descriptor in angle brackets, "" if nothing did
	Comment string // what stood behind it as a comment
	Was     *Told  // what it was before the call
}

// Field returns the name of the field that a value is for: its Name, or what a call of
// inet_pton(3) fills.
func (t *Told) Field() string {
	if t.Name == "" && len(t.Parts) == 3 && strings.HasPrefix(t.Text, "inet_pton(") {
		return strings.TrimPrefix(t.Parts[2].Text, "&")
	}
	return t.Name
}

// Encode is the inverse of Decode for what has one structure: it returns the bytes that
// a text tells. What it does not tell is zero; lost counts that, and what is not
// understood. size is how many bytes there are where that varies. The third result is
// false if the structure is not known, or the text tells something else.
func (m *Memory) Encode(t *Told, size int64) (b []byte, lost int, ok bool) {
	if m.Arch > event.ARM64 || size < 0 || size > maxTold {
		return nil, 0, false
	}
	if int(m.Layout) < len(encoders) && encoders[m.Layout] != nil {
		return encoders[m.Layout](m, t, size)
	}
	return m.encodeForm(t, size)
}

// encoders holds the layouts that are not just a form.
var encoders = [...]func(m *Memory, t *Told, size int64) (b []byte, lost int, ok bool){
	event.LayoutNone:       (*Memory).encodeByCall,
	event.LayoutSockaddr:   func(_ *Memory, t *Told, size int64) ([]byte, int, bool) { return encodeSockaddr(t, size) },
	event.LayoutDirents64:  func(_ *Memory, t *Told, _ int64) ([]byte, int, bool) { return encodeDirents(t) },
	event.LayoutNames:      func(_ *Memory, t *Told, _ int64) ([]byte, int, bool) { return encodeNames(t) },
	event.LayoutFDSet:      func(_ *Memory, t *Told, size int64) ([]byte, int, bool) { return encodeBits(t, size) },
	event.LayoutCPUSet:     func(_ *Memory, t *Told, size int64) ([]byte, int, bool) { return encodeBits(t, size) },
	event.LayoutSigset:     func(_ *Memory, t *Told, _ int64) ([]byte, int, bool) { return encodeSignals(t) },
	event.LayoutFileHandle: func(_ *Memory, t *Told, _ int64) ([]byte, int, bool) { return encodeHandle(t) },
	event.LayoutSiginfo:    func(_ *Memory, t *Told, _ int64) ([]byte, int, bool) { return encodeSiginfo(t) },
	event.LayoutSockopt:    (*Memory).encodeOption,
	event.LayoutIoctl:      (*Memory).encodeByCall,
	event.LayoutOffset:     func(m *Memory, t *Told, _ int64) ([]byte, int, bool) { return m.encodeOffset(t) },
	event.LayoutU32:        (*Memory).encodeByCall,
}

func encodeSignals(t *Told) (b []byte, lost int, ok bool) {
	set, ok := signalSet(t)
	return binary.LittleEndian.AppendUint64(nil, set), 0, ok
}

// maxHandle is the greatest length of a handle's bytes (MAX_HANDLE_SZ in linux/exportfs.h).
const maxHandle = 128

// encodeHandle is the inverse of handle. Old versions of strace show the bytes as one number.
func encodeHandle(t *Told) (b []byte, lost int, ok bool) {
	if t.Kind != ToldFields {
		return nil, 0, false
	}
	b = make([]byte, 8, 8+maxHandle)
	found := 0
	for i := range t.Parts {
		p := &t.Parts[i]
		switch v, isNumber := event.ParseNumber(p.Text); {
		case p.Field() == "handle_bytes" && isNumber:
			binary.LittleEndian.PutUint32(b, uint32(v))
		case p.Field() == "handle_type" && isNumber:
			binary.LittleEndian.PutUint32(b[4:], uint32(v))
		case p.Field() == "f_handle" && p.Kind == ToldText && !p.Cut && len(p.Data) <= maxHandle:
			b = append(b, p.Data...)
		case p.Field() == "f_handle" && p.Kind == ToldWord:
			data, err := hex.DecodeString(strings.TrimPrefix(p.Text, "0x"))
			if err != nil || len(data) > maxHandle {
				continue
			}
			b = append(b, data...)
		default:
			continue
		}
		found++
	}
	return b, max(0, 3-found), found > 0 && uint64(binary.LittleEndian.Uint32(b)) == uint64(len(b)-8)
}

// encodeOffset stores a loff_t as it is after the call.
func (m *Memory) encodeOffset(t *Told) (b []byte, lost int, ok bool) {
	if t.Kind != ToldItems || len(t.Parts) != 1 {
		return nil, 0, false
	}
	v, ok := event.ParseNumber(t.Parts[0].Text)
	if t.Was == nil && t.Parts[0].Was == nil && m.Result > 0 { // only what it was before the call
		v += uint64(m.Result)
	}
	return binary.LittleEndian.AppendUint64(nil, v), 0, ok
}

// encodeByCall is the inverse of unnamed, byCall and word.
func (m *Memory) encodeByCall(t *Told, size int64) (b []byte, lost int, ok bool) {
	if m.Op == event.OpMsgsnd || m.Op == event.OpMsgrcv {
		return encodeMsgbuf(t)
	}
	f, ok := callForms[callKey{m.Op, m.Arg}]
	if !ok {
		f, ok = m.commandForm()
	}
	if ok {
		return f.encode(t, m.Arch, false, size)
	}
	return m.encodeForm(t, size)
}

// encodeForm is the inverse of form.
func (m *Memory) encodeForm(t *Told, size int64) (b []byte, lost int, ok bool) {
	if int(m.Layout) >= len(forms) {
		return nil, 0, false
	}
	return forms[m.Layout][m.Arch].encode(t, m.Arch, m.One, size)
}

// maxTold limits what a hostile text can make Encode allocate.
const maxTold = 16 << 20

// encode is the inverse of decode.
func (f *form) encode(t *Told, a event.Arch, one bool, size int64) (b []byte, lost int, ok bool) {
	if f == nil || f.size == 0 {
		return nil, 0, false
	}
	if f.short && size > 0 && size < int64(f.size) {
		b = make([]byte, f.size)
		lost, ok = f.element(b, t)
		return b[:size], lost, ok
	}
	if !f.array || one && t.Kind == ToldFields {
		b = make([]byte, f.size)
		lost, ok = f.element(b, t)
		return b, lost, ok
	}
	if t.Kind != ToldItems || int64(len(t.Parts))*int64(f.size) > maxTold {
		return nil, 0, false
	}
	b = make([]byte, len(t.Parts)*f.size)
	for i := range t.Parts {
		n, ok := f.element(b[i*f.size:][:f.size], &t.Parts[i])
		if !ok {
			return nil, 0, false
		}
		lost += n
	}
	if t.Cut {
		lost++
	}
	return b, lost, true
}

func (f *form) element(b []byte, t *Told) (lost int, ok bool) {
	if f.record != nil {
		if t.Kind != ToldFields {
			return 0, false
		}
		return f.record.encode(b, t), true
	}
	lost = f.field.put(b, t)
	return lost, lost == 0
}

// encode stores the fields that a text tells.
func (r *record) encode(b []byte, t *Told) (lost int) {
	if t.Cut {
		lost++
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		name := p.Field()
		if f := r.field(name); f != nil {
			lost += f.put(b, p)
			continue
		}
		seconds, _ := strings.CutSuffix(name, "_nsec")
		if f := r.field(seconds); f != nil && f.kind == Time {
			v, ok := event.ParseNumber(p.Text)
			if !ok {
				lost++
			}
			f.putFraction(b, v)
			continue
		}
		if p.Kind == ToldWord && p.Name == "" && strings.HasPrefix(p.Text, "/") { // a comment's rest
			continue
		}
		lost++
	}
	return lost
}

func (r *record) field(name string) *field {
	for i := range r.fields {
		if r.fields[i].name == name && name != "" {
			return &r.fields[i]
		}
	}
	return nil
}

// put is the inverse of value; lost is not 0 if the text tells something else.
func (f *field) put(b []byte, t *Told) (lost int) {
	at := within(b, int(f.off), int(f.size))
	switch f.kind {
	case Time, TimeMicros:
		return f.putTime(b, t)
	case Text, Bytes, Bits:
		return putBytes(at, t)
	case IP:
		ip, ok := address4or6(t)
		if !ok || copy(at, ip) != len(ip) {
			return 1
		}
		return 0
	case Struct:
		if t.Kind != ToldFields {
			return 1
		}
		return f.record.encode(at, t)
	case List:
		return f.putList(at, t)
	}
	return f.putNumber(at, t)
}

// putBytes stores text, or bytes one by one, such as f_fsid or c_cc.
func putBytes(b []byte, t *Told) (lost int) {
	switch t.Kind {
	case ToldText:
		copy(b, t.Data)
		return count(t.Cut)
	case ToldItems:
		for i := range t.Parts {
			v, ok := event.ParseNumber(t.Parts[i].Text)
			if !ok || i >= len(b) {
				return 1
			}
			b[i] = byte(v)
		}
		return 0
	}
	return 1
}

// putNumber stores a number, or its bytes as they lie in memory.
func (f *field) putNumber(at []byte, t *Told) (lost int) {
	if t.Kind == ToldText && len(t.Data) == len(at) { // as it lies in memory: -X raw
		copy(at, t.Data)
		return 0
	}
	v, ok := f.number(t)
	if !ok {
		return 1
	}
	switch {
	case f.big && f.size == 2 && len(at) == 2:
		binary.BigEndian.PutUint16(at, uint16(v))
	case f.big && f.size == 4 && len(at) == 4:
		binary.BigEndian.PutUint32(at, uint32(v))
	case f.width > 0:
		store(at, number(at)|v&(1<<f.width-1)<<f.shift)
	default:
		store(at, v)
	}
	return 0
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func store(b []byte, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b, w[:])
}

func (f *field) number(t *Told) (uint64, bool) {
	switch {
	case f.kind == Signals:
		return signalSet(t)
	case f.kind == Status:
		return status(t.Text)
	case t.Kind != ToldWord:
		return 0, false
	case f.kind == Mode:
		return ParseMode(t.Text)
	case f.kind == Device:
		return ParseDevice(t)
	}
	if len(t.Parts) == 1 && (strings.HasPrefix(t.Text, "htons(") || strings.HasPrefix(t.Text, "htonl(")) {
		t = &t.Parts[0]
	}
	return f.set.ParseValue(t.Text)
}

func (f *field) putTime(b []byte, t *Told) (lost int) {
	var seconds, fraction uint64
	switch {
	case t.Kind == ToldFields:
		for i := range t.Parts {
			p := &t.Parts[i]
			v, ok := event.ParseNumber(p.Text)
			switch {
			case !ok:
				lost++
			case p.Name == "tv_sec" || p.Name == "" && i == 0: // without names before strace 4.18
				seconds = v
			case p.Name == "tv_nsec" || p.Name == "tv_usec" || p.Name == "" && i == 1:
				fraction = v
			default:
				lost++
			}
		}
	case t.Text == "UTIME_NOW":
		fraction = 1<<30 - 1
	case t.Text == "UTIME_OMIT":
		fraction = 1<<30 - 2
	default:
		v, ok := event.ParseNumber(t.Text)
		if !ok {
			d, err := gotime.ParseInLocation("2006/01/02-15:04:05", t.Text, gotime.Local) // before strace 4.14
			if err != nil {
				return 1
			}
			v, fraction = uint64(d.Unix()), uint64(d.Nanosecond())
		}
		seconds = v
	}
	store(within(b, int(f.off), 8), seconds)
	f.putFraction(b, fraction)
	return lost
}

func (f *field) putFraction(b []byte, v uint64) {
	store(within(b, int(f.off)+8, int(f.size)-8), v)
}

func (f *field) putList(b []byte, t *Told) (lost int) {
	if t.Kind != ToldItems || f.stride == 0 {
		return 1
	}
	for i := range t.Parts {
		at := within(b, i*int(f.stride), int(f.stride))
		if len(at) < int(f.stride) {
			return lost + 1
		}
		if f.record != nil {
			lost += f.record.encode(at, &t.Parts[i])
		} else {
			lost += f.elem.put(at, &t.Parts[i])
		}
	}
	return lost + count(t.Cut)
}

// ParseMode reads the type and permissions of a file: S_IFREG|0644.
func ParseMode(text string) (v uint64, ok bool) {
	for part := range strings.SplitSeq(text, "|") {
		n, ok := modeNames[part]
		if !ok {
			if n, ok = event.ParseNumber(part); !ok {
				return 0, false
			}
		}
		v |= n
	}
	return v, true
}

var modeNames = map[string]uint64{
	"S_IFSOCK": 0o140000, "S_IFLNK": 0o120000, "S_IFREG": 0o100000, "S_IFBLK": 0o060000, "S_IFDIR": 0o040000, "S_IFCHR": 0o020000, "S_IFIFO": 0o010000,
	"S_ISUID": 0o4000, "S_ISGID": 0o2000, "S_ISVTX": 0o1000,
}

// ParseDevice reads a device number: makedev(0x8, 0x1), or the number.
func ParseDevice(t *Told) (uint64, bool) {
	if len(t.Parts) != 2 || !strings.HasPrefix(t.Text, "makedev(") {
		return event.ParseNumber(t.Text)
	}
	major, ok1 := event.ParseNumber(t.Parts[0].Text)
	minor, ok2 := event.ParseNumber(t.Parts[1].Text)
	return minor&0xff | major&0xfff<<8 | minor&^0xff<<12 | major&^0xfff<<32, ok1 && ok2
}

// signalSet reads a set of signals, or of all others.
func signalSet(t *Told) (set uint64, ok bool) {
	if t.Kind != ToldItems {
		return 0, false
	}
	for i := range t.Parts {
		n, ok := event.SignalByName(t.Parts[i].Text)
		if !ok {
			v, isNumber := event.ParseNumber(t.Parts[i].Text)
			if !isNumber || v == 0 || v > 64 {
				return 0, false
			}
			n = int(v)
		}
		set |= 1 << (n - 1)
	}
	if t.Not {
		set = ^set
	}
	return set, true
}

// status reads what became of a process: WIFEXITED(s) && WEXITSTATUS(s) == 3.
func status(text string) (uint64, bool) {
	if v, ok := event.ParseNumber(text); ok {
		return v, true
	}
	if strings.HasPrefix(text, "WIFCONTINUED") {
		return 0xffff, true
	}
	_, value, ok := strings.Cut(text, "== ")
	value, more, _ := strings.Cut(value, " ")
	if !ok {
		return 0, false
	}
	v, isNumber := event.ParseNumber(value)
	if !isNumber {
		n, ok := event.SignalByName(value)
		if !ok {
			return 0, false
		}
		v = uint64(n)
	}
	switch {
	case strings.HasPrefix(text, "WIFEXITED"):
		return v & 0xff << 8, true
	case strings.HasPrefix(text, "WIFSIGNALED"):
		if strings.Contains(more, "WCOREDUMP") {
			v |= 0x80
		}
		return v, true
	case strings.HasPrefix(text, "WIFSTOPPED"):
		if strings.Contains(more, "0x80") {
			v |= 0x80
		}
		return v<<8 | 0x7f, true
	}
	return 0, false
}

// encodeBits stores a list of the numbers of bits.
func encodeBits(t *Told, size int64) (b []byte, lost int, ok bool) {
	if t.Kind != ToldItems {
		return nil, 0, false
	}
	b = make([]byte, size)
	for i := range t.Parts {
		n, ok := event.ParseNumber(t.Parts[i].Text)
		if !ok || n/8 >= uint64(size) {
			lost++
			continue
		}
		b[n/8] |= 1 << (n % 8)
	}
	return b, lost + count(t.Cut), true
}

// encodeDirents stores directory entries as struct linux_dirent64.
func encodeDirents(t *Told) (b []byte, lost int, ok bool) {
	if t.Kind != ToldItems {
		return nil, 0, false
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		var reclen uint64
		var name []byte
		for j := range p.Parts {
			switch q := &p.Parts[j]; q.Name {
			case "d_reclen":
				reclen, _ = event.ParseNumber(q.Text)
			case "d_name":
				name = q.Data
			}
		}
		n := (uint64(dirent64.fields[4].off) + uint64(len(name)) + 8) &^ 7
		if n > 1<<16-1 || len(b) > maxTold {
			return nil, 0, false
		}
		if reclen < n || reclen > 1<<16-1 {
			reclen = n
		}
		at := len(b)
		b = append(b, make([]byte, reclen)...)
		lost += dirent64.encode(b[at:], p)
		store(b[at+16:at+18], reclen)
	}
	return b, lost + count(t.Cut), true
}

func encodeNames(t *Told) (b []byte, lost int, ok bool) {
	if t.Kind == ToldText {
		return t.Data, count(t.Cut), true
	}
	if t.Kind != ToldItems {
		return nil, 0, false
	}
	for i := range t.Parts {
		if t.Parts[i].Kind != ToldText {
			return nil, 0, false
		}
		b = append(append(b, t.Parts[i].Data...), 0)
	}
	return b, count(t.Cut), true
}

// encodeMsgbuf stores a System V message.
func encodeMsgbuf(t *Told) (b []byte, lost int, ok bool) {
	if len(t.Parts) != 2 || t.Parts[0].Name != "mtype" || t.Parts[1].Kind != ToldText {
		return nil, 0, false
	}
	v, ok := event.ParseNumber(t.Parts[0].Text)
	return append(binary.LittleEndian.AppendUint64(nil, v), t.Parts[1].Data...), count(t.Parts[1].Cut), ok
}

// address4or6 reads inet_addr("…"), or inet_pton(AF_INET6, "…", &…).
func address4or6(t *Told) ([]byte, bool) {
	if t.Kind == ToldText { // as it lies in memory: -X raw
		return t.Data, true
	}
	for i := range t.Parts {
		if t.Parts[i].Kind == ToldText {
			a, err := netip.ParseAddr(string(t.Parts[i].Data))
			return a.AsSlice(), err == nil && a.Zone() == ""
		}
	}
	if v, ok := event.ParseNumber(t.Text); ok { // htonl(INADDR_ANY) and the like as a number
		return binary.BigEndian.AppendUint32(nil, uint32(v)), true
	}
	switch {
	case strings.Contains(t.Text, "INADDR_LOOPBACK"):
		return []byte{127, 0, 0, 1}, true
	case strings.Contains(t.Text, "INADDR_ANY"):
		return []byte{0, 0, 0, 0}, true
	}
	return nil, false
}
