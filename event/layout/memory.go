// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// Memory is what an argument of a call points to, and what that points to.
type Memory struct {
	Arch   event.Arch
	Layout event.Layout
	Bytes  []byte

	// Op, Arg and Args say which call it is of: what some structures are depends on
	// other arguments, such as a socket option's level and name.
	Op   event.Op
	Arg  int
	Args *[event.MaxArgs]uint64
	// One is set where the argument is one element of what other calls have arrays of.
	One bool
	// Failed is set where the call did, so that no content was moved.
	Failed bool

	// Result is what the call returned, if it did not fail.
	Result int64

	// Parts of an argument (event.Part), nil where there are none.
	Before  []byte
	Names   []byte
	Data    []byte  // may be only the first bytes
	Moved   int64   // bytes that there are in all
	Lens    []int64 // of the elements that hold Data
	Control []byte
	Target  []byte
}

// Decode returns what the bytes are. The second result is false if that is not
// known, or if there are not enough of them.
func (m *Memory) Decode() (Value, bool) {
	if m.Arch > event.ARM64 {
		return Value{}, false
	}
	if int(m.Layout) < len(decoders) && decoders[m.Layout] != nil {
		return decoders[m.Layout](m)
	}
	return m.form()
}

// decoders holds the layouts that are not just a form.
var decoders = [...]func(m *Memory) (Value, bool){
	event.LayoutNone:        (*Memory).unnamed,
	event.LayoutSockaddr:    func(m *Memory) (Value, bool) { return sockaddr(m.Bytes) },
	event.LayoutMsghdr:      (*Memory).message,
	event.LayoutMmsghdr:     (*Memory).messages,
	event.LayoutCmsgs:       func(m *Memory) (Value, bool) { return controls(m.Bytes), true },
	event.LayoutSockopt:     (*Memory).option,
	event.LayoutDirents:     func(m *Memory) (Value, bool) { return dirents(m.Bytes, false), true },
	event.LayoutDirents64:   func(m *Memory) (Value, bool) { return dirents(m.Bytes, true), true },
	event.LayoutNames:       func(m *Memory) (Value, bool) { return names(m.Bytes), true },
	event.LayoutFDSet:       (*Memory).bits,
	event.LayoutCPUSet:      (*Memory).bits,
	event.LayoutSigset:      (*Memory).signals,
	event.LayoutSigsetRef:   (*Memory).pointer,
	event.LayoutXattrArgs:   (*Memory).pointer,
	event.LayoutFprog:       (*Memory).pointer,
	event.LayoutFileHandle:  func(m *Memory) (Value, bool) { return handle(m.Bytes) },
	event.LayoutDedupeRange: (*Memory).counted,
	event.LayoutFiemap:      (*Memory).counted,
	event.LayoutIoctl:       (*Memory).byCall,
	event.LayoutOffset:      (*Memory).offset,
	event.LayoutU32:         (*Memory).word,
	event.LayoutCapData:     func(m *Memory) (Value, bool) { return capabilityData(m.Bytes) },
	event.LayoutSiginfo:     func(m *Memory) (Value, bool) { return siginfo(m.Bytes) },
	event.LayoutSlots:       func(m *Memory) (Value, bool) { return slots(m.Bytes) },
}

// unnamed decodes memory without a layout: the call says what it is.
func (m *Memory) unnamed() (Value, bool) {
	if m.Op == event.OpMsgsnd || m.Op == event.OpMsgrcv {
		return msgbuf(m.Bytes, m.Moved)
	}
	return m.byCall()
}

func (m *Memory) bits() (Value, bool) {
	return Value{Kind: Bits, Data: m.Bytes}, true
}

func (m *Memory) signals() (Value, bool) {
	if len(m.Bytes) > 8 {
		return Value{}, false
	}
	return Value{Kind: Signals, Num: number(m.Bytes)}, true
}

func (m *Memory) counted() (Value, bool) {
	return counted(m.Bytes, tails[m.Layout])
}

// word decodes 32 bits: what the call has there, else a number.
func (m *Memory) word() (Value, bool) {
	if v, ok := m.byCall(); ok {
		return v, true
	}
	return m.form()
}

// form decodes a structure of one size, or an array of them.
func (m *Memory) form() (Value, bool) {
	if int(m.Layout) >= len(forms) {
		return Value{}, false
	}
	f := forms[m.Layout][m.Arch]
	if f != nil && f.array && m.One && f.record != nil && len(m.Bytes) == f.size {
		return Value{Kind: Struct, Data: m.Bytes, record: f.record, arch: m.Arch}, true
	}
	return f.decode(m.Bytes, m.Arch, m.Before)
}

// offset decodes a loff_t that the call advanced by what it moved.
func (m *Memory) offset() (Value, bool) {
	if len(m.Bytes) < 8 {
		return Value{}, false
	}
	v := Value{Kind: Int, Num: number(m.Bytes[:8])}
	if m.Result > 0 {
		v.Before, v.Changed = v.Num-uint64(m.Result), true
	}
	return Value{Kind: List, values: []Value{v}}, true
}

// form is what a layout of one size is.
type form struct {
	size   int     // bytes; of one element
	record *record // or
	field  *field
	array  bool // the bytes are elements, one after the other
	short  bool // fewer bytes are an older version of the structure
}

// decode reads the bytes of a form. before is what a number was.
func (f *form) decode(b []byte, a event.Arch, before []byte) (Value, bool) {
	switch {
	case f == nil || f.size == 0 || len(b) < f.size && !f.short && !f.array:
		return Value{}, false
	case f.array:
		return Value{Kind: List, Data: b, record: f.record, elem: f.field, stride: f.size, arch: a}, true
	case f.record != nil:
		return Value{Kind: Struct, Data: b, record: f.record, arch: a}, true
	}
	v := f.field.value(b, a)
	if v.Kind == List && v.Len() == 1 && len(before) >= f.size {
		one, was := v.At(0), f.field.elem.value(before, a)
		one.Before, one.Changed = was.Num, was.Num != one.Num
		return Value{Kind: List, values: []Value{one}}, true
	}
	return v, true
}

// forms holds the layouts whose structures have one size, on each architecture. The
// sizes are the operation table's.
var forms = func() (t [event.LayoutMountAttr + 1][2]*form) {
	for l, f := range map[event.Layout]form{
		event.LayoutStat:        {record: stat(event.AMD64)},
		event.LayoutStatx:       {record: statx},
		event.LayoutStatfs:      {record: statfs},
		event.LayoutTimespec:    {field: one(time("", 0))},
		event.LayoutTimespec2:   {field: one(array("", 0, 2, date(time("", 0))))},
		event.LayoutTimeval2:    {field: one(array("", 0, 2, date(micros("", 0))))},
		event.LayoutUtimbuf:     {record: utimbuf},
		event.LayoutFlock:       {record: flock},
		event.LayoutOpenHow:     {record: openHow, short: true},
		event.LayoutFDPair:      {field: one(array("", 0, 2, fd("", 0)))},
		event.LayoutCloneArgs:   {record: cloneArgs, short: true},
		event.LayoutRlimit:      {record: rlimit},
		event.LayoutTimeval:     {field: one(micros("", 0))},
		event.LayoutItimerspec:  {record: itimerspec},
		event.LayoutItimerval:   {record: itimerval},
		event.LayoutPollfd:      {record: pollfd, array: true},
		event.LayoutEpollEvent:  {record: epollEvent(4), array: true},
		event.LayoutRusage:      {record: rusage},
		event.LayoutUtsname:     {record: utsname},
		event.LayoutSysinfo:     {record: sysinfo},
		event.LayoutIocb:        {record: iocb},
		event.LayoutIoEvent:     {record: ioEvent, array: true},
		event.LayoutUringParams: {record: uringParams},
		event.LayoutCloneRange:  {record: cloneRange},
		event.LayoutFsxattr:     {record: fsxattr},
		event.LayoutFstrim:      {record: fstrim},
		event.LayoutWinsize:     {record: winsize},
		event.LayoutTermios:     {record: termios},
		event.LayoutTms:         {record: tms},
		event.LayoutSchedParam:  {field: one(array("", 0, 1, i32("", 0)))},
		event.LayoutCapHeader:   {record: capHeader},
		event.LayoutIDs:         {field: one(id("", 0)), array: true},
		event.LayoutU32:         {field: one(array("", 0, 1, i32("", 0)))},
		event.LayoutU64:         {field: one(array("", 0, 1, u64("", 0)))},
		event.LayoutWaitStatus:  {field: one(array("", 0, 1, num(Status, 4, "", 0)))},
		event.LayoutIovec:       {record: iovec, array: true},
		event.LayoutSigaction:   {record: sigaction},
		event.LayoutStack:       {record: stack},
		event.LayoutSigevent:    {record: sigevent},
		event.LayoutTimex:       {record: timex},
		event.LayoutTimezone:    {record: timezone},
		event.LayoutSchedAttr:   {record: schedAttr, short: true},
		event.LayoutMqAttr:      {record: mqAttr},
		event.LayoutFutexWaitv:  {record: futexWaitv, array: true},
		event.LayoutSembuf:      {record: sembuf, array: true},
		event.LayoutOwner:       {record: owner},
		event.LayoutFileAttr:    {record: fileAttr, short: true},
		event.LayoutMountAttr:   {record: mountAttr, short: true},
	} {
		for _, a := range [...]event.Arch{event.AMD64, event.ARM64} {
			f.size = l.Bytes(a)
			t[l][a] = new(f)
		}
	}
	t[event.LayoutStat][event.ARM64].record = stat(event.ARM64)
	t[event.LayoutEpollEvent][event.ARM64].record = epollEvent(8)
	return t
}()

func one(f field) *field { return &f }
