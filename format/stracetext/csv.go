// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// CSVHeader is the first line of the CSV form (RFC 4180, lines end in LF). The
// columns are those of the table events of iotape query, as far as both have
// them. Columns are only ever added, at the end.
const CSVHeader = "seq,host,kind,op,class,pid,tid,uid,gid,comm,enter_ns,exit_ns,ret,errno,fd,open_id," +
	"file,path,abs,path2,abs2,offset,count,bytes,missing,dev,ino,size,child,flags,signal\n"

// AppendCSV writes an event as one line of CSV.
func (p *Printer) AppendCSV(dst []byte, e *event.Event) []byte {
	r := row{dst: dst}
	spec := e.Spec()
	r.uint(e.Seq)
	host := ""
	if int(e.Host) < len(p.o.Hosts) {
		host = p.o.Hosts[e.Host].Host
	}
	r.text(host)
	r.text(kindName(e.Kind))
	if e.Kind == event.Call {
		r.text(spec.Name)
		r.text(spec.Class.String())
	} else {
		r.text("")
		r.text("")
	}
	for _, v := range [...]uint32{e.PID, e.TID, e.UID, e.GID} {
		r.uint(uint64(v))
	}
	r.text(e.Comm)
	r.int(e.Enter)
	r.known(e.Exit, e.Flags&event.Untimed == 0)
	r.known(e.Ret, e.Flags&event.Interrupted == 0)
	r.text(event.ErrnoName(e.Errno))
	r.objects(e, spec)
	r.known(int64(e.Child), e.Child != 0)
	r.text(strings.Join(flagWords(e.Flags), "|"))
	signal := ""
	if sig, ok := e.AboutSignal(); ok {
		signal = event.SignalName(sig)
	}
	r.text(signal)
	r.dst[len(r.dst)-1] = '\n'
	return r.dst
}

// objects writes what the event is about.
func (r *row) objects(e *event.Event, spec *event.Spec) {
	f := e.Subject()
	fd, known := int32(-1), f != nil
	if f != nil {
		fd = f.FD
	} else {
		f = &event.File{}
		for i := range spec.Args {
			if spec.Args[i].Kind == event.KindFD && e.Kind == event.Call && e.ArgKnown(i) && !known {
				fd, known = int32(e.Args[i]), true
			}
		}
	}
	r.known(int64(fd), known)
	r.known(int64(f.Open), f.Open != 0)
	var names [4]string // path, abs, path2, abs2
	for i := range min(len(e.Paths), 2) {
		names[2*i], names[2*i+1] = e.Paths[i].Raw, e.Paths[i].Abs
	}
	r.text(e.Name())
	for _, name := range names {
		r.text(name)
	}
	r.known(e.Offset, e.Offset >= 0)
	r.known(e.Count, e.Count >= 0)
	var missing int64
	for i := range e.Bufs {
		missing += e.Bufs[i].Missing
	}
	r.int(e.Traffic().Bytes())
	r.int(missing)
	r.known(int64(f.Dev), f.Identified())
	r.known(int64(f.Ino), f.Identified())
	r.known(f.Size, f.Identified() && f.Size >= 0)
}

// row builds a line; each value is followed by a comma.
type row struct{ dst []byte }

func (r *row) uint(v uint64) { r.dst = append(strconv.AppendUint(r.dst, v, 10), ',') }
func (r *row) int(v int64)   { r.dst = append(strconv.AppendInt(r.dst, v, 10), ',') }

// known writes a number or, where it is not known, nothing.
func (r *row) known(v int64, ok bool) {
	if ok {
		r.dst = strconv.AppendInt(r.dst, v, 10)
	}
	r.dst = append(r.dst, ',')
}

func (r *row) text(s string) {
	if !strings.ContainsAny(s, ",\"\r\n") {
		r.dst = append(append(r.dst, s...), ',')
		return
	}
	r.dst = append(r.dst, '"')
	r.dst = append(r.dst, strings.ReplaceAll(s, `"`, `""`)...)
	r.dst = append(r.dst, '"', ',')
}
