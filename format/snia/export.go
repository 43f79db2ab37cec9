// SPDX-License-Identifier: Apache-2.0

package snia

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/dataseries"
	"github.com/iotape/iotape/trace"
)

// ExportOptions are for Export. The zero value writes what the newest tools read.
type ExportOptions struct {
	Codec dataseries.Codec
	// ForReplayer leaves out calls on which the public replayer crashes when it
	// loads them (readv, writev, creat, mknod, symlink, truncate, setxattr …).
	ForReplayer bool
}

// crashing are the calls that the public replayer cannot load.
var crashing = map[string]bool{
	"readv": true, "writev": true, "creat": true, "mknod": true, "symlink": true, "truncate": true,
	"setxattr": true, "lsetxattr": true, "fsetxattr": true,
}

// Export writes the calls of a tape, in its order.
func Export(w io.Writer, tape *trace.Tape, o ExportOptions) (*format.Done, error) {
	dw, err := dataseries.NewWriter(w, theSchema().types, dataseries.Options{Codec: o.Codec})
	if err != nil {
		return nil, err
	}
	ex := &exporter{w: dw, tape: tape, done: &format.Done{}}
	_, byOp := calls()
	for ev, err := range tape.Events() {
		if err != nil {
			return nil, err
		}
		if ev.Kind == event.Started && ex.id == 0 {
			if err := ex.umask(ev); err != nil {
				return nil, err
			}
			continue
		}
		if ev.Kind != event.Call {
			continue
		}
		c := byOp[ev.Op]
		if c == nil || o.ForReplayer && crashing[c.name] {
			ex.done.LeftOut(ev.Spec().Name, 1)
			continue
		}
		if err := ex.event(c, ev); err != nil {
			return nil, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if err := dw.Close(); err != nil {
		return nil, err
	}
	return ex.done, nil
}

type exporter struct {
	w    *dataseries.Writer
	tape *trace.Tape
	id   int64
	buf  []byte
	done *format.Done
}

// row is a record that is being written.
type row struct {
	*dataseries.Row
	typ *dataseries.Type
}

func (r row) num(field string, v int64) {
	if i := r.typ.Index(field); i >= 0 {
		r.SetInt(i, v)
	}
}

func (r row) null(fields ...string) {
	for _, f := range fields {
		if i := r.typ.Index(f); i >= 0 {
			r.SetNull(i)
		}
	}
}

func (r row) str(field string, v []byte) {
	if i := r.typ.Index(field); i >= 0 {
		if isName(field) {
			v = append(v[:len(v):len(v)], 0)
		}
		r.SetBytes(i, v)
	}
}

func (r row) bool(field string, v bool) {
	if i := r.typ.Index(field); i >= 0 {
		r.SetBool(i, v)
	}
}

// begin starts a record with what all calls have.
func (ex *exporter) begin(t *dataseries.Type, ev *event.Event) (row, error) {
	x, err := ex.w.Row(t)
	if err != nil {
		return row{}, err
	}
	r := row{x, t}
	h := ex.tape.Host(ev.Host)
	wall := h.WallNS - h.ClockNS
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"errno_number", int64(ev.Errno)}, {"executing_pgid", int64(ev.PGID)}, {"executing_pid", int64(ev.TID)}, {"executing_ppid", int64(ev.PPID)},
		{"executing_sid", int64(ev.SID)}, {"executing_tid", int64(ev.TID)}, {"executing_uid", int64(ev.UID)}, {"return_value", ev.Ret},
		{"time_called", ev.Enter + wall}, {"time_recorded", ev.Exit + wall}, {"time_returned", ev.Exit + wall}, {"unique_id", ex.id},
	} {
		r.num(f.name, f.v)
	}
	if ev.Flags&event.Untimed != 0 {
		r.null("time_returned")
	}
	r.null("buffer_not_captured", "errno_string")
	if ev.Errno != 0 { // as the tools do, whatever they meant by it
		r.bool("buffer_not_captured", false)
	}
	for i := range t.Fields { // what is not set is null where it can be
		if i >= 14 && t.Fields[i].Nullable {
			r.SetNull(i)
		}
	}
	ex.id++
	ex.done.Records++
	return r, nil
}

// umask writes the first record, which tools want to be the initial umask.
func (ex *exporter) umask(ev *event.Event) error {
	r, err := ex.begin(theSchema().byCall["umask"], ev)
	if err != nil {
		return err
	}
	r.set("mode_value", int64(ev.Args[0]))
	setBits(r, "umask")
	return nil
}

// set gives a nullable number a value.
func (r row) set(field string, v int64) {
	i := r.typ.Index(field)
	if i < 0 {
		return
	}
	r.ClearNull(i)
	r.SetInt(i, v)
}

func (ex *exporter) event(c *call, ev *event.Event) error {
	if c.name == "execve" {
		return ex.execve(c, ev)
	}
	r, err := ex.begin(c.typ, ev)
	if err != nil {
		return err
	}
	if c.op == event.OpExitGroup {
		r.null("errno_number", "return_value", "time_returned")
	}
	vector := -1
	for i, name := range c.args {
		switch {
		case name == "-":
		case name == "IOV":
			vector = i
			r.set("iov_number", -1)
			r.set("bytes_requested", ev.Ret)
		case structure(name):
			ex.structure(r, name, ev, i)
		default:
			ex.argument(r, name, ev, i)
		}
	}
	for _, name := range []string{"descriptor", "old_descriptor", "new_descriptor"} {
		if i := c.typ.Index(name + "_current_working_directory"); i >= 0 {
			r.ClearNull(i)
			r.SetBool(i, r.Int(c.typ.Index(name)) == event.AtFDCWD)
		}
	}
	if c.op == event.OpOpen && ev.Args[1]&0o100 == 0 || c.op == event.OpOpenat && ev.Args[2]&0o100 == 0 {
		r.null("mode_value") // there is none without O_CREAT
	}
	setBits(r, c.name)
	if vector >= 0 {
		return ex.elements(c, ev, vector)
	}
	return nil
}

// argument writes one argument that is a field.
func (ex *exporter) argument(r row, name string, ev *event.Event, arg int) {
	i := r.typ.Index(name)
	if i < 0 || arg >= len(ev.Args) {
		return
	}
	if r.typ.Fields[i].Kind != dataseries.Variable32 {
		v := int64(ev.Args[arg])
		if r.typ.Fields[i].Kind == dataseries.Int32 {
			v = int64(int32(v))
		}
		r.set(name, v)
		return
	}
	if p := ev.PathArg(arg); p != nil {
		r.ClearNull(i)
		r.str(name, []byte(p.Raw))
		return
	}
	b := ev.BufArg(arg)
	if b == nil || ev.Errno != 0 && b.Dir == event.Out {
		return
	}
	if data, ok := ex.content(b); ok {
		r.ClearNull(i)
		r.str(name, data)
	} else {
		r.bool("buffer_not_captured", true)
		r.ClearNull(r.typ.Index("buffer_not_captured"))
	}
}

// content returns the bytes of a buffer, false if the tape does not have all of them.
func (ex *exporter) content(b *event.Buf) ([]byte, bool) {
	if b.Omitted {
		ex.done.Missing += b.Len
		return nil, false
	}
	data, err := ex.tape.Content(b, ex.buf[:0])
	if err != nil {
		var lacking *trace.MissingError
		if errors.As(err, &lacking) {
			ex.done.Missing += max(b.Len-b.Kept(), 0)
		}
		return nil, false
	}
	ex.buf = data
	return data, true
}

func (ex *exporter) structure(r row, name string, ev *event.Event, arg int) {
	if name == "FCNTL" {
		if name = "FLOCK"; !isLock(ev.Args[1]) {
			r.set("argument_value", int64(int32(ev.Args[arg])))
			return
		}
	}
	buf := ev.BufArg(arg)
	if buf == nil {
		return
	}
	b, ok := ex.content(buf)
	if !ok {
		return
	}
	if name == "UTIMBUF" && len(b) >= 16 {
		r.set("access_time", load(b[:8])<<32)
		r.set("mod_time", load(b[8:16])<<32)
		return
	}
	m := members[name]
	if len(b) < m.bytes || m.bytes == 0 {
		return
	}
	for _, f := range m.fields {
		v := load(b[f.off:][:f.size])
		if f.time {
			sub := uint64(load(b[f.off+8:][:8]))
			if m.micro {
				sub *= 1000
			}
			v = v<<32 | int64((sub<<32+1e9-1)/1e9) // rounded up, so that it comes back as it was
		}
		r.set(f.field, v)
	}
}

// elements writes the records of a vector's elements.
func (ex *exporter) elements(c *call, ev *event.Event, arg int) error {
	b := ev.BufArg(arg)
	if b == nil {
		return nil
	}
	data, ok := ex.content(b)
	data = append([]byte(nil), data...)
	field := "iov_data_read"
	if c.op == event.OpWritev {
		field = "iov_data_written"
	}
	for n, size := range b.Parts {
		id := ex.id - 1 // they share the first record's
		r, err := ex.begin(c.typ, ev)
		if err != nil {
			return err
		}
		ex.id--
		r.num("unique_id", id)
		r.set("iov_number", int64(n))
		r.set("bytes_requested", size)
		part := data[:min(int64(len(data)), max(size, 0))]
		data = data[len(part):]
		if ok && ev.Errno == 0 {
			i := c.typ.Index(field)
			r.ClearNull(i)
			r.SetBytes(i, part)
		}
	}
	return nil
}

// execve writes the records of an execve: the path, each argument, the return.
func (ex *exporter) execve(c *call, ev *event.Event) error {
	entry := func(n int64) (row, error) {
		r, err := ex.begin(c.typ, ev)
		if err == nil {
			r.null("errno_number", "return_value", "time_returned")
			r.set("continuation_number", n)
		}
		return r, err
	}
	r, err := entry(0)
	if err != nil {
		return err
	}
	if p := ev.PathArg(0); p != nil {
		i := c.typ.Index("given_pathname")
		r.ClearNull(i)
		r.str("given_pathname", []byte(p.Raw))
	}
	if b := ev.BufArg(1); b != nil {
		if data, ok := ex.content(b); ok {
			for n, arg := range strings.Split(string(data), "\x00") {
				if r, err = entry(int64(n + 1)); err != nil {
					return err
				}
				r.ClearNull(c.typ.Index("argument"))
				r.str("argument", []byte(arg))
			}
		}
	}
	if ev.Flags&event.Interrupted != 0 {
		return nil
	}
	if r, err = ex.begin(c.typ, ev); err == nil {
		r.set("continuation_number", -1)
	}
	return err
}

// bitsText names the bits of values.
//
//go:embed bits.txt
var bitsText string

type bitName struct {
	value, field string
	mask, want   uint64
}

var bitNames = sync.OnceValue(func() map[string][]bitName {
	m := map[string][]bitName{}
	for line := range strings.Lines(bitsText) {
		w := strings.Fields(line)
		if len(w) < 3 || w[0] == "#" {
			continue
		}
		for _, x := range w[2:] {
			field, spec, _ := strings.Cut(x, "=")
			mask, want, exact := strings.Cut(spec, "/")
			b := bitName{value: w[1], field: field}
			n, _ := strconv.ParseInt(mask, 0, 64)
			b.mask = uint64(n)
			b.want = b.mask
			if exact {
				n, _ = strconv.ParseInt(want, 0, 64)
				b.want = uint64(n)
			}
			for _, c := range strings.Split(w[0], ",") {
				m[c] = append(m[c], b)
			}
		}
	}
	return m
})

// setBits sets the flags that a record's values stand for.
func setBits(r row, call string) {
	for _, b := range bitNames()[call] {
		i := r.typ.Index(b.value)
		if i < 0 || r.Null(i) {
			continue
		}
		r.bool(b.field, uint64(r.Int(i))&b.mask == b.want)
	}
}
