// SPDX-License-Identifier: Apache-2.0

package dio

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// Note is the text of a note: what an event says beyond its call, in DIO's own fields.
// It is the thread's next event.
type Note struct {
	DIO noteFields `json:"dio"`
}

type noteFields struct {
	Args   rawFields  `json:"args,omitempty"`
	Socket *rawFields `json:"socket_data,omitempty"`
	Error  string     `json:"error_message,omitempty"` // if it is none of Linux's
}

// file is what an EventPath says.
type file struct {
	path string
	mode uint32
}

// importer turns records, in the order of their times, into streams.
type importer struct {
	im      *format.Import
	files   map[string]file   // by tag
	process map[thread]uint32 // of threads that made calls
	hosts   map[string]*host
}

type thread struct {
	host string
	tid  uint32
}

// host is what is known of one host.
type host struct {
	w     *format.Writer
	comms map[uint32]string
	open  map[uint32]map[int32]string // tags by descriptor, by process
}

func (im *importer) host(r *record) (*host, error) {
	h := im.hosts[r.Host]
	if h == nil {
		w, err := im.im.Host(r.Host)
		if err != nil {
			return nil, err
		}
		w.Head.Backend, w.Head.Content = "DIO", "none"
		if r.Session != "" {
			w.Head.Target = "DIO's session " + r.Session
		}
		h = &host{w: w, comms: map[uint32]string{}, open: map[uint32]map[int32]string{}}
		im.hosts[r.Host] = h
	}
	return h, nil
}

// first takes note of what later records need of this one.
func (im *importer) first(r *record) error {
	if r.DocType == pathDoc {
		im.files[r.Tag] = file{r.FilePath, types[r.FileType]}
		return format.ErrNoEvent
	}
	h, err := im.host(r)
	if err != nil {
		return err
	}
	if r.Args["captured_buffer"] != nil {
		h.w.Head.Content = fmt.Sprintf("head:%d", maxCaptured)
	}
	im.process[thread{r.Host, r.TID}] = r.PID
	return nil
}

// maxCaptured is how much of a buffer DIO keeps, bytes (MAX_BUF_SIZE).
const maxCaptured = 4096

// event writes one event.
func (im *importer) event(r *record) error {
	im.im.Records++
	h, err := im.host(r)
	if err != nil {
		return err
	}
	if r.CPU != nil {
		im.im.LeftOut("CPU numbers", 1)
	}
	if r.Comm != "" && h.comms[r.TID] != r.Comm {
		h.comms[r.TID] = r.Comm
		if err := h.w.Task(&format.Task{PID: r.PID, TID: r.TID, PPID: r.PPID, Comm: r.Comm}, r.Called); err != nil {
			return err
		}
	}
	c := &format.Call{PID: r.PID, TID: r.TID, Enter: r.Called, Exit: r.Until, Untimed: r.untimed}
	switch r.Name {
	case "process_end":
		delete(h.comms, r.TID)
		return h.w.Exit(r.PID, r.TID, 0, r.Called)
	case "process_fork":
		c.Op, c.Ret = event.OpClone, int64(r.Child)
		if im.process[thread{r.Host, r.Child}] == r.PID {
			c.Share = event.ShareVM | event.ShareFS | event.ShareFiles | event.ShareThread
			c.Args[0] = c.Share
		}
		return h.w.Call(c)
	case "fstatat":
		r.Name = "newfstatat"
	}
	if c.Op = event.ByName(r.Name); c.Op == event.OpUnknown {
		im.im.LeftOut(fmt.Sprintf("%.40s", r.Name), 1)
		return nil
	}
	var n noteFields
	if r.Ret == nil {
		c.Interrupted = true
	} else if c.Ret = *r.Ret; c.Ret < 0 {
		errno, ok := errnos[strings.ToLower(r.Error)]
		if c.Ret = -int64(errno); !ok {
			c.Ret, n.Error = unknownError, r.Error
		}
	}
	if err := im.arguments(h, r, c); err != nil {
		return err
	}
	if err := h.w.Call(c); err != nil {
		return err
	}
	if n.Args, n.Socket = r.Args, r.Socket; len(n.Args) == 0 && n.Socket == nil && n.Error == "" {
		return nil
	}
	b, err := json.Marshal(Note{n})
	if err != nil {
		return err
	}
	return h.w.Note(r.PID, r.TID, b, r.Until)
}

// unknownError stands for an error whose message is none of Linux's: no call has it.
const unknownError = -4095

// errnos are the error numbers by their messages.
var errnos = func() map[string]syscall.Errno {
	m := map[string]syscall.Errno{}
	for e := syscall.Errno(1); e < 134; e++ {
		m[strings.ToLower(event.ErrnoText(e))] = e
	}
	return m
}()

// arguments gives a call its arguments, by their names in the operation table, and removes
// from the event what they say.
func (im *importer) arguments(h *host, r *record, c *format.Call) error {
	a := r.Args
	spec := event.Lookup(c.Op)
	fd, said := a.descriptor()
	names := 0
	for i := range spec.Args {
		arg := &spec.Args[i]
		switch arg.Kind {
		case event.KindFD:
			if c.Args[i] = uint64(int64(fd)); !said {
				c.NotKnown(i)
			}
			if spec.Result == event.KindFD {
				break // the tag is that of the connection which accept made
			}
			if err := im.descriptor(h, r, c, fd, int8(i)); err != nil {
				return err
			}
		case event.KindDirFD:
			cwd := int64(event.AtFDCWD)
			c.Args[i] = uint64(cwd)
		case event.KindPath:
			im.path(r, c, i, names)
			names++
		case event.KindText:
			a.name(c, i)
		case event.KindBuf, event.KindVec:
			content(a, c, i, arg.Kind)
		case event.KindStruct:
			structure(a, c, i, arg.Layout, fd)
		case event.KindMode:
			a.mode(c, i)
		default:
			ok := said
			if c.Op == event.OpClose {
				c.Args[i] = uint64(int64(fd))
			} else {
				ok = value(a, c, i, arg) || c.Args[i] != 0
			}
			if !ok {
				c.NotKnown(i)
			}
		}
	}
	if c.Interrupted {
		return nil
	}
	if c.Op == event.OpClose && c.Ret == 0 {
		delete(h.table(r.PID), fd)
	}
	if spec.Result == event.KindFD && c.Ret >= 0 {
		im.result(h, r, c)
	}
	return nil
}

// descriptor takes the descriptor that a call is about; said is false, and it is -1, if there is none.
func (a rawFields) descriptor() (fd int32, said bool) {
	fd = -1
	for _, name := range []string{"file_descriptor", "fd"} { // in detailed and in raw mode
		if v, ok := a.number(name); ok {
			fd, said = int32(v), true
		}
	}
	return fd, said
}

// name sets an argument to the name of an extended attribute.
func (a rawFields) name(c *format.Call, i int) {
	if s, ok := a.take("name"); ok {
		c.Text(i, s, false)
	}
}

// mode sets an argument to the permissions of a new file.
func (a rawFields) mode(c *format.Call, i int) {
	if s, ok := a.take("mode"); ok {
		c.Args[i] = mode(s)
	} else if v, ok := a.number("mode"); ok {
		c.Args[i] = v
	} else {
		c.NotKnown(i)
	}
}

// fields are DIO's names for arguments that are numbers or flags, where they differ from
// the operation table's.
var fields = map[string]string{
	"domain": "addr_family", "type": "socket_type", "optname": "optnamem", "len": "bytes_requested", "count": "bytes_requested",
}

// words are values that DIO calls by other names than the operation table, or that have none
// there.
var words = map[string]uint64{"IPPROTO_IP": 0, "IPPROTO_ICMP": 1, "IPPROTO_TCP": 6, "IPPROTO_UDP": 17,
	"IPPROTO_IPV6": 41, "IPPROTO_RAW": 255}

// value sets an argument that is a number, or the names of bits. said is false if the event does not have it.
func value(a rawFields, c *format.Call, i int, arg *event.Arg) (said bool) {
	name := arg.Name
	if f, ok := fields[name]; ok && a[f] != nil {
		name = f
	}
	if v, ok := a.number(name); ok {
		c.Args[i] = v
		return true
	}
	s, ok := a.take(name)
	if !ok {
		return false
	}
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		c.Args[i] = v
		return true
	}
	var v uint64
	for _, word := range strings.Split(s, "|") {
		bit, known := words[word]
		known = known || word == ""
		if !known && arg.Set != nil {
			bit, known = arg.Set.Parse(word)
		}
		if !known {
			a[name], _ = json.Marshal(s)
		}
		v |= bit
	}
	c.Args[i] = v
	return true
}

// mode returns permission bits, with the type that mknod is given.
func mode(s string) uint64 {
	kind, bits, typed := strings.Cut(s, "|")
	if !typed {
		kind, bits = "", s
	}
	v, _ := strconv.ParseUint(bits, 8, 32)
	for name, t := range map[string]uint64{"S_IFSOCK": 0o140000, "S_IFREG": 0o100000, "S_IFBLK": 0o060000,
		"S_IFCHR": 0o020000, "S_IFIFO": 0o010000} {
		if kind == name {
			v |= t
		}
	}
	return v
}

// path sets a path argument: what was passed or, of files that were opened, what the
// file is called.
func (im *importer) path(r *record, c *format.Call, i, nth int) {
	switch f, opened := im.files[r.Tag]; {
	case nth == 1:
		s, ok := r.Args.take("newname")
		c.Text(i, s, !ok)
	case r.Path != nil:
		c.Text(i, r.Path.Name, false)
	default:
		c.Text(i, f.path, !opened)
	}
}

// content sets a buffer.
func content(a rawFields, c *format.Call, i int, kind event.Kind) {
	total := max(c.Ret, 0)
	if s, ok := a.take("buf"); ok { // of readlink
		c.Bytes(i, []byte(s)[:min(int64(len(s)), total)], total)
		return
	}
	var data []byte
	// A string of JSON holds any bytes only if they are text.
	if s, ok := a.take("captured_buffer"); ok {
		if data = []byte(s); strings.ContainsRune(s, '\ufffd') || int64(len(s)) > total {
			data = nil
			a["captured_buffer"], _ = json.Marshal(s)
		} else {
			delete(a, "captured_size")
		}
	}
	if kind == event.KindVec {
		requested := total
		if v, ok := a.number("bytes_requested"); ok {
			requested = max(int64(v), total)
		}
		c.Shape(i, []int64{requested})
		c.Args[i+1] = 1
	}
	c.Bytes(i, data, total)
}

// structure sets what a call's memory says, of addresses and pairs of descriptors.
func structure(a rawFields, c *format.Call, i int, l event.Layout, fd int32) {
	switch l {
	case event.LayoutSockaddr:
		c.Sockaddr(i, i+1, a.address())
	case event.LayoutFDPair:
		second, ok := a.number("file_descriptor2")
		if fd >= 0 && ok && c.Ret == 0 {
			b := binary.LittleEndian.AppendUint32(nil, uint32(fd))
			c.Bytes(i, binary.LittleEndian.AppendUint32(b, uint32(second)), 0)
		}
	}
}

// descriptor says what an argument's descriptor stands for, and that it was open if no
// event opened it.
func (im *importer) descriptor(h *host, r *record, c *format.Call, fd int32, arg int8) error {
	t, ok := parseTag(r.Tag)
	if !ok || fd < 0 {
		return nil
	}
	f := im.files[r.Tag]
	if r.Socket != nil && f.mode == 0 {
		f.mode = types["Socket"]
	}
	open := h.table(r.PID)
	if open[fd] != r.Tag {
		open[fd] = r.Tag
		if f.path != "" {
			if err := h.w.Open(r.PID, t.object(fd, 0, f.mode), f.path, r.Called); err != nil {
				return err
			}
		}
	}
	o := t.object(fd, arg, f.mode)
	if at, ok := r.Args.number("offset"); ok {
		if o.Pos = int64(at) + max(c.Ret, 0); c.Op == event.OpLseek || c.Op == event.OpReadahead ||
			c.Op == event.OpPread64 || c.Op == event.OpPwrite64 {
			r.Args["offset"] = strconv.AppendInt(nil, int64(at), 10) // it is an argument
			o.Pos = -1
		}
	}
	if c.Op == event.OpLseek && c.Ret >= 0 {
		o.Pos = c.Ret
	}
	c.Objects = append(c.Objects, o)
	return nil
}

// result says what the descriptor is that a call made.
func (im *importer) result(h *host, r *record, c *format.Call) {
	t, ok := parseTag(r.Tag)
	if !ok || c.Ret >= 1<<31 {
		return
	}
	mode := im.files[r.Tag].mode
	if c.Op == event.OpSocket || c.Op == event.OpAccept || c.Op == event.OpAccept4 {
		mode = types["Socket"]
	}
	h.table(r.PID)[int32(c.Ret)] = r.Tag
	o := t.object(int32(c.Ret), event.ResultArg, mode)
	if c.Op == event.OpOpenat {
		o.Flags = uint32(c.Args[2])
	} else if c.Op == event.OpOpen {
		o.Flags = uint32(c.Args[1])
	}
	c.Objects = append(c.Objects, o)
}

func (h *host) table(pid uint32) map[int32]string {
	t := h.open[pid]
	if t == nil {
		t = map[int32]string{}
		h.open[pid] = t
	}
	return t
}
