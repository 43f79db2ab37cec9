// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// Request returns what a request's head says beyond the arguments; ok is false where
// there is none.
func Request(e *event.Event) (v Value, ok bool) {
	r, ok := e.Request()
	if !ok {
		return v, false
	}
	add := func(kind Kind, name string, n uint64, set *event.Set) {
		v.values = append(v.values, Value{Name: name, Kind: kind, Num: n, Set: set, Brief: true})
	}
	v.Kind = Struct
	if e.Op.IsAIO() {
		add(Hex, "ctx", uint64(r.Queue), nil)
		add(Hex, "iocb", r.Address, nil)
		add(Hex, "data", r.UserData, nil)
		if e.Op == event.OpAIO {
			add(Uint, "opcode", uint64(r.Opcode), nil)
		}
		if r.Prio != 0 {
			add(Int, "reqprio", uint64(int16(r.Prio)), nil)
		}
		return v, true
	}
	add(Int, "ring", uint64(r.Queue), nil)
	add(Hex, "user_data", r.UserData, nil)
	add(Flags, "flags", uint64(r.Flags), event.SQEFlagNames)
	if e.Op == event.OpUring {
		add(Uint, "opcode", uint64(r.Opcode), nil)
	}
	for _, f := range [...]Value{
		{Name: "ioprio", Kind: Hex, Num: uint64(r.Prio)}, {Name: "buf_index", Kind: Uint, Num: uint64(r.BufIndex)},
		{Name: "personality", Kind: Uint, Num: uint64(r.Personality)}, {Name: "file_index", Kind: Uint, Num: uint64(r.FileIndex)},
		{Name: "cqe_flags", Kind: Flags, Num: uint64(r.CQEFlags & 0xffff), Set: event.CQEFlagNames},
	} {
		if f.Num != 0 {
			add(f.Kind, f.Name, f.Num, f.Set)
		}
	}
	if r.CQEFlags&event.CQEBuffer != 0 {
		add(Uint, "buffer", uint64(r.CQEFlags>>16), nil)
	}
	return v, true
}

// slots is the list of descriptors that an io_uring's table of files is filled with,
// from a slot on.
func slots(b []byte) (Value, bool) {
	const head = 8
	if len(b) < head {
		return Value{}, false
	}
	return Value{Kind: Struct, values: []Value{
		{Name: "first", Kind: Uint, Num: number(b[:4]), Brief: true},
		{Name: "slots", Kind: Uint, Num: number(b[4:8]), Brief: true},
		{Name: "fds", Kind: List, Data: b[head:], elem: one(fd("", 0)), stride: 4, Brief: true},
	}}, true
}
