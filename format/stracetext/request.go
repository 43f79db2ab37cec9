package stracetext

import (
	"strconv"

	"iotape/event"
)

// requestFields are what is told of a request beyond its arguments.
func requestFields(e *event.Event) []field {
	r, ok := e.Request()
	if !ok {
		return nil
	}
	if e.Op.IsAIO() {
		return []field{
			{name: "ctx", form: hexadecimal, v: uint64(r.Queue)}, {name: "iocb", form: hexadecimal, v: r.Address},
			{name: "data", form: hexadecimal, v: r.UserData}, {name: "reqprio", form: unsigned, v: uint64(r.Prio)},
		}
	}
	fields := []field{
		{name: "ring", form: fileDescr, v: uint64(r.Queue)}, {name: "user_data", form: hexadecimal, v: r.UserData},
		{name: "flags", form: bitNames, set: event.SQEFlagNames, v: uint64(r.Flags)},
	}
	for _, f := range []field{
		{name: "ioprio", form: hexadecimal, v: uint64(r.Prio)}, {name: "buf_index", form: unsigned, v: uint64(r.BufIndex)},
		{name: "personality", form: unsigned, v: uint64(r.Personality)}, {name: "file_index", form: unsigned, v: uint64(r.FileIndex)},
		{name: "cqe_flags", form: bitNames, set: event.CQEFlagNames, v: uint64(r.CQEFlags & 0xffff)}, {name: "buffer", form: unsigned, v: uint64(r.CQEFlags >> 16)},
	} {
		if f.v != 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// appendRequest writes a request's head as a last argument.
func (p *Printer) appendRequest(dst []byte, e *event.Event, first bool) []byte {
	fields := requestFields(e)
	if fields == nil {
		return dst
	}
	if !first {
		dst = append(dst, ", "...)
	}
	for i := range fields {
		fields[i].brief = true
	}
	return p.appendStruct(dst, &structure{fields: fields}, p.archOf(e))
}

// jsonRequest is the head as an object; numbers of 64 bits are text in hexadecimal.
func jsonRequest(e *event.Event, a event.Arch) map[string]any {
	fields := requestFields(e)
	if fields == nil {
		return nil
	}
	m := make(map[string]any, len(fields))
	for i := range fields {
		switch f := &fields[i]; f.form {
		case unsigned, fileDescr:
			m[f.name] = int64(f.v)
		case hexadecimal:
			m[f.name] = "0x" + strconv.FormatUint(f.v, 16)
		default:
			m[f.name] = string(appendField(nil, f, a))
		}
	}
	return m
}
