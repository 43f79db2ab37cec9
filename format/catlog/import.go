// SPDX-License-Identifier: Apache-2.0

package catlog

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// FirstMadeUp is the first number of the descriptors that stand for files and
// connections of which an event does not say the descriptor. There is one for each name
// that a process used.
const FirstMadeUp = 1_000_000

// Note is the text of the notes: what an event has beyond its call, in the file's own
// fields. Type is always there and canonical (SND, never 8). For events without a call
// all fields are there. A note follows its call: it is the thread's next event.
type Note struct {
	CatLog Fields `json:"catlog"`
}

// importer turns events, in the order of their times, into streams.
type importer struct {
	im    *format.Import
	hosts map[string]*host
}

// host is what is known of one host.
type host struct {
	w       *format.Writer
	named   map[string]uint32 // numbers of threads whose names are none
	taken   map[uint32]bool   // numbers that cannot be given
	tables  map[uint32]*table
	comms   map[uint32]string // by thread
	parents map[uint32]uint32 // of processes that an event made
	nextTID uint32
	longest int // content of an event, bytes
}

// table is what the descriptors of a process stand for.
type table struct {
	names  map[int32]string // "" if a call made it and nothing says what it is
	madeUp map[string]int32 // by name
}

func (im *importer) host(name string) (*host, error) {
	h := im.hosts[name]
	if h == nil {
		w, err := im.im.Host(name)
		if err != nil {
			return nil, err
		}
		w.Head.Backend, w.Head.Content = "CatLog", "none"
		h = &host{w: w, named: map[string]uint32{}, taken: map[uint32]bool{}, tables: map[uint32]*table{},
			comms: map[uint32]string{}, parents: map[uint32]uint32{}}
		im.hosts[name] = h
	}
	return h, nil
}

// reserve notes the numbers of threads, so that names are given others, and how much
// of the content there is.
func (im *importer) reserve(e *occurrence) error {
	h, err := im.host(e.host)
	if err != nil {
		return err
	}
	for _, name := range []string{e.thread, e.child} {
		if id, ok := number(name); ok {
			h.taken[id] = true
		}
	}
	h.taken[e.pid] = true
	if len(e.content) > h.longest {
		h.longest = len(e.content)
		h.w.Head.Content = fmt.Sprintf("head:%d", h.longest)
	}
	return nil
}

// number returns the number that a thread's name is.
func number(thread string) (uint32, bool) {
	id, _, _ := strings.Cut(thread, "@")
	v, err := strconv.ParseUint(id, 10, 31)
	return uint32(v), err == nil && v > 0
}

// tid returns a thread's number: its own, or the next free one for a name.
func (h *host) tid(thread string) uint32 {
	if id, ok := number(thread); ok {
		return id
	}
	name, _, _ := strings.Cut(thread, "@")
	id := h.named[name]
	for id == 0 {
		if h.nextTID++; !h.taken[h.nextTID] {
			id = h.nextTID
			h.named[name] = id
		}
	}
	return id
}

// event writes one event.
func (im *importer) event(e *occurrence) error {
	im.im.Records++
	h, err := im.host(e.host)
	if err != nil {
		return err
	}
	c := &format.Call{PID: e.pid}
	c.Enter, c.Exit = e.times()
	c.Untimed = !e.timed()
	// With --group-by-host the thread is the host, and its number the process's.
	switch _, isNumber := number(e.thread); {
	case e.thread == e.host && !isNumber && e.pid != 0:
		c.TID = e.pid
		delete(e.rest, "thread")
	default:
		c.TID = h.tid(e.thread)
		if fmt.Sprintf("%d@%s", c.TID, e.host) == e.thread+"@"+e.host {
			delete(e.rest, "thread")
		} else if e.comm == "" {
			e.comm = e.thread
		}
	}
	if c.PID == 0 {
		c.PID = c.TID
	}
	if e.units() == 1 {
		delete(e.rest, "timestamp")
	}
	if e.comm != "" && h.comms[c.TID] != e.comm {
		h.comms[c.TID] = e.comm
		if err := h.w.Task(&format.Task{PID: c.PID, TID: c.TID, PPID: h.parents[c.PID], Comm: e.comm},
			c.Enter); err != nil {
			return err
		}
	}
	isCall, err := h.call(e, c)
	if err != nil {
		return err
	}
	if isCall {
		if err := h.w.Call(c); err != nil {
			return err
		}
		if c.Op == event.OpExit {
			if err := h.w.Exit(c.PID, c.TID, 0, c.Exit); err != nil {
				return err
			}
		}
	}
	return h.note(e, c, isCall)
}

// note writes what of an event is not in its call.
func (h *host) note(e *occurrence, c *format.Call, isCall bool) error {
	if len(e.data) > 0 {
		b, err := json.Marshal(e.data)
		if err != nil {
			return err
		}
		e.rest["data"] = b
	}
	if isCall && len(e.rest) == 0 {
		return nil
	}
	e.rest["type"] = json.RawMessage(strconv.Quote(e.kind))
	b, err := json.Marshal(Note{e.rest})
	if err != nil {
		return err
	}
	return h.w.Note(c.PID, c.TID, b, c.Exit)
}

// call makes the call that an event stands for; false if it is none. It takes out of
// the event's fields what the call says.
func (h *host) call(e *occurrence, c *format.Call) (bool, error) {
	take := calls[e.kind]
	if take == nil {
		return false, nil
	}
	return take(h, e, c)
}

// calls has how to make the call of an event, by its type.
var calls = map[string]func(h *host, e *occurrence, c *format.Call) (bool, error){
	"SND":      (*host).transfer,
	"RCV":      (*host).transfer,
	"CONNECT":  (*host).connect,
	"ACCEPT":   (*host).accept,
	"CLOSE":    (*host).closing,
	"SHUTDOWN": (*host).shutdown,
	"RD":       (*host).fileTransfer,
	"WR":       (*host).fileTransfer,
	"FSYNC":    (*host).fsync,
	"OPEN":     (*host).opening,
	"CREATE":   (*host).child,
	"JOIN":     (*host).child,
	"END": func(_ *host, _ *occurrence, c *format.Call) (bool, error) {
		c.Op = event.OpExit
		return true, nil
	},
}

// took removes fields that the call says.
func (e *occurrence) took(names ...string) {
	for _, n := range names {
		delete(e.rest, n)
	}
}

// moved gives a call the content that it moved.
func (e *occurrence) moved(c *format.Call) {
	if c.Ret = e.size; e.size < 0 { // it moved what the event has of it
		c.Ret = int64(len(e.content))
		c.Interrupted = !e.hasRet && len(e.content) == 0
	}
	if e.hasRet {
		c.Ret = e.returned
		e.took("returned_value")
	}
	if c.Args[2] = uint64(max(e.size, c.Ret, 0)); e.size < 0 && c.Ret <= 0 {
		c.NotKnown(2)
	}
	if e.size >= 0 {
		e.took("size")
	}
	c.Bytes(1, e.content[:min(int64(len(e.content)), max(c.Ret, 0))], max(c.Ret, 0))
}

func (h *host) transfer(e *occurrence, c *format.Call) (_ bool, err error) {
	e.message(c)
	c.Args[0], err = h.descriptor(e, c)
	e.moved(c)
	return true, err
}

func (h *host) connect(e *occurrence, c *format.Call) (_ bool, err error) {
	c.Op = event.OpConnect
	c.Args[0], err = h.descriptor(e, c)
	c.Sockaddr(1, 2, format.Sockaddr(e.dst))
	return true, err
}

func (h *host) accept(e *occurrence, c *format.Call) (_ bool, err error) {
	c.Op = event.OpAccept
	t := h.table(c.PID)
	c.Args[0], err = h.open(c, -1, e.listener(), sIFSOCK)
	c.Sockaddr(1, 2, format.Sockaddr(e.src))
	fd := e.fd
	if fd < 0 {
		fd = int64(t.number(e.connection(false)))
	}
	t.names[int32(fd)] = ""
	c.Ret = fd
	return true, err
}

func (h *host) closing(e *occurrence, c *format.Call) (_ bool, err error) {
	c.Op = event.OpClose
	c.Args[0], err = h.descriptor(e, c)
	h.table(c.PID).close(int32(c.Args[0]))
	e.took("filename")
	return true, err
}

func (h *host) shutdown(e *occurrence, c *format.Call) (_ bool, err error) {
	c.Op = event.OpShutdown
	c.Args[0], err = h.descriptor(e, c)
	c.Args[1] = shutReadWrite // what the order of events takes
	c.NotKnown(1)
	return true, err
}

func (h *host) fileTransfer(e *occurrence, c *format.Call) (_ bool, err error) {
	c.Op = map[bool]event.Op{true: event.OpRead, false: event.OpWrite}[e.kind == "RD"]
	if e.offset >= 0 {
		c.Op = map[bool]event.Op{true: event.OpPread64, false: event.OpPwrite64}[e.kind == "RD"]
		c.Args[3] = uint64(e.offset)
		e.took("offset")
	}
	c.Args[0], err = h.descriptor(e, c)
	e.moved(c)
	e.took("filename")
	return true, err
}

func (h *host) fsync(e *occurrence, c *format.Call) (_ bool, err error) {
	c.Op = event.OpFsync
	c.Args[0], err = h.descriptor(e, c)
	e.took("filename")
	return true, err
}

func (h *host) opening(e *occurrence, c *format.Call) (bool, error) {
	c.Op = event.OpOpenat
	cwd := int64(event.AtFDCWD)
	c.Args[0] = uint64(cwd)
	c.Text(1, e.file, false)
	c.Args[2] = openReadWrite // what a replay takes
	c.NotKnown(2)
	t := h.table(c.PID)
	if c.Ret = e.fd; e.fd < 0 {
		c.Ret = int64(t.number(e.file))
	}
	if e.hasRet && e.returned < 0 {
		c.Ret = e.returned
	} else {
		t.names[int32(c.Ret)] = e.file
	}
	e.took("filename")
	if e.hasRet && e.returned == c.Ret {
		e.took("returned_value")
	}
	return true, nil
}

// child makes the clone or the wait4 of an event about another thread of this host.
func (h *host) child(e *occurrence, c *format.Call) (bool, error) {
	_, where, at := strings.Cut(e.child, "@")
	if e.child == "" || at && where != e.host {
		return false, nil // of another host: it is no clone
	}
	child := h.tid(e.child)
	c.Ret = int64(child)
	if e.kind == "CREATE" {
		c.Op = event.OpClone
		h.parents[child] = c.PID
	} else {
		c.Op = event.OpWait4
		c.Args[0] = uint64(child)
	}
	if fmt.Sprintf("%d@%s", child, e.host) == e.child {
		e.took("child")
	}
	return true, nil
}

// message says which call sent or received.
func (e *occurrence) message(c *format.Call) {
	send := e.kind == "SND"
	name, _ := e.data.text("syscall")
	switch {
	case send && name == "write":
		c.Op = event.OpWrite
	case !send && name == "read":
		c.Op = event.OpRead
	case send:
		c.Op = event.OpSendto
		c.Sockaddr(4, 5, format.Sockaddr(e.dst))
	default:
		c.Op = event.OpRecvfrom
		c.Sockaddr(4, 5, format.Sockaddr(e.src))
	}
}

func (e *occurrence) protocol() string {
	if e.proto == "" {
		return "socket"
	}
	return e.proto
}

// connection names a connection from one of its ends, as strace -yy does.
func (e *occurrence) connection(source bool) string {
	local, peer := e.src, e.dst
	if !source {
		local, peer = peer, local
	}
	proto := e.protocol()
	if !local.IsValid() || !peer.IsValid() {
		return proto + ":[" + e.sock + "]"
	}
	return proto + ":[" + local.String() + "->" + peer.String() + "]"
}

// listener names the socket that a connection was accepted on.
func (e *occurrence) listener() string { return e.protocol() + ":[" + e.dst.String() + "]" }

// descriptor returns the descriptor that an event uses.
func (h *host) descriptor(e *occurrence, c *format.Call) (uint64, error) {
	if e.file != "" {
		return h.open(c, e.fd, e.file, 0)
	}
	name := e.connection(e.kind != "RCV") // its source is the sender
	if e.kind == "CLOSE" || e.kind == "SHUTDOWN" {
		// Either end does that, whatever the source is.
		t, other := h.table(c.PID), e.connection(false)
		if _, ok := t.madeUp[other]; ok || t.names[int32(e.fd)] == other {
			name = other
		}
	}
	return h.open(c, e.fd, name, sIFSOCK)
}

// open returns the descriptor of a name: fd, or the made-up one if that is negative. It
// says that it was open if no event did.
func (h *host) open(c *format.Call, number int64, name string, mode uint32) (uint64, error) {
	t, fd := h.table(c.PID), int32(number)
	if fd < 0 {
		fd = t.number(name)
	}
	if known, ok := t.names[fd]; ok && known == name {
		return uint64(fd), nil
	}
	t.names[fd] = name
	return uint64(fd), h.w.Open(c.PID, trace.Object{FD: fd, Mode: mode}, name, c.Enter)
}

const (
	sIFSOCK       = 0o140000
	openReadWrite = 2
	shutReadWrite = 2
)

func (h *host) table(pid uint32) *table {
	t := h.tables[pid]
	if t == nil {
		t = &table{names: map[int32]string{}, madeUp: map[string]int32{}}
		h.tables[pid] = t
	}
	return t
}

// number returns the made-up descriptor of a name.
func (t *table) number(name string) int32 {
	fd, ok := t.madeUp[name]
	if !ok {
		fd = int32(FirstMadeUp + len(t.madeUp))
		t.madeUp[name] = fd
	}
	return fd
}

func (t *table) close(fd int32) { delete(t.names, fd) }
