package stracetext

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"time"
	"unicode/utf8"

	"iotape/event"
)

// Record is the JSON form of an event: one object per line. Fields are only ever
// added. Text that is not UTF-8 is in a field of the same name with 64 appended,
// as base64.
type Record struct {
	Seq     uint64         `json:"seq"`
	Host    string         `json:"host,omitempty"`
	Kind    string         `json:"kind"` // call, exited, loss, note, forked, started, inherited
	Op      string         `json:"op,omitempty"`
	Class   string         `json:"class,omitempty"`
	Name    string         `json:"name,omitempty"` // the kernel's, of a call that is not in the catalogue
	NR      *uint32        `json:"nr,omitempty"`   // system-call number as recorded
	PID     uint32         `json:"pid"`
	TID     uint32         `json:"tid"`
	PPID    uint32         `json:"ppid"`
	PGID    uint32         `json:"pgid"`
	SID     uint32         `json:"sid"`
	UID     uint32         `json:"uid"`
	GID     uint32         `json:"gid"`
	Comm    string         `json:"comm,omitempty"`
	Comm64  []byte         `json:"comm64,omitempty"`
	Time    string         `json:"time,omitempty"` // wall clock of the entry, RFC 3339, UTC
	EnterNS int64          `json:"enter_ns"`
	ExitNS  int64          `json:"exit_ns"`
	CPUNS   int64          `json:"cpu_ns"`
	Ret     int64          `json:"ret"`
	Errno   string         `json:"errno,omitempty"`
	Args    map[string]any `json:"args,omitempty"`
	Files   []JSONFile     `json:"files,omitempty"`
	Paths   []JSONPath     `json:"paths,omitempty"`
	Offset  *int64         `json:"offset,omitempty"`
	Count   *int64         `json:"count,omitempty"`
	Child   uint32         `json:"child,omitempty"`
	Flags   []string       `json:"flags,omitempty"`  // interrupted, incomplete, late
	Status  *int           `json:"status,omitempty"` // exited: exit status
	Signal  string         `json:"signal,omitempty"` // exited: that ended the thread
	Lost    uint64         `json:"lost,omitempty"`   // loss: records
	Reason  string         `json:"reason,omitempty"` // loss
	Text    string         `json:"text,omitempty"`   // note
	Text64  []byte         `json:"text64,omitempty"`
	Thread  bool           `json:"thread,omitempty"` // forked: the child is a thread of the same process
	Umask   string         `json:"umask,omitempty"`  // started
}

// JSONFile is a descriptor in a Record. What follows path is there only if it was
// recorded.
type JSONFile struct {
	Arg    string `json:"arg"` // name of the argument; "result" for the result
	FD     int32  `json:"fd"`
	Open   uint64 `json:"open,omitempty"` // identity of the open file
	Path   string `json:"path,omitempty"`
	Path64 []byte `json:"path64,omitempty"`
	*JSONInode
}

// JSONInode is what the kernel said of a descriptor's object after the call.
type JSONInode struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Mode  string `json:"mode"`
	Flags string `json:"open_flags"`
	Nlink uint32 `json:"nlink"`
	UID   uint32 `json:"owner"`
	GID   uint32 `json:"group"`
	Size  int64  `json:"size"`
	Pos   int64  `json:"pos"`
	Rdev  uint64 `json:"rdev,omitempty"`
}

// JSONPath is a path argument in a Record.
type JSONPath struct {
	Arg   string `json:"arg"`
	Raw   string `json:"raw"`
	Raw64 []byte `json:"raw64,omitempty"`
	Abs   string `json:"abs,omitempty"`
	Abs64 []byte `json:"abs64,omitempty"`
}

// JSONBuf is a buffer argument in a Record.
type JSONBuf struct {
	Len     int64   `json:"len"`
	Data    *string `json:"data,omitempty"` // the first bytes
	Data64  []byte  `json:"data64,omitempty"`
	Cut     bool    `json:"cut,omitempty"`     // there are more bytes than these
	Missing int64   `json:"missing,omitempty"` // bytes that could not be recorded
	Omitted bool    `json:"omitted,omitempty"` // what is not in data was not wanted by the recording's policy
	Parts   []int64 `json:"parts,omitempty"`   // lengths of a vector's elements
	// Hashes of the content, which is omitted: "blake3:" and 64 digits for each 64 KiB.
	Hashes []string `json:"hashes,omitempty"`
}

var kindNames = [...]string{"call", "exited", "loss", "note", "forked", "started", "inherited"}

func kindName(k event.EventKind) string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// text splits a string into its two JSON forms.
func text(s string) (string, []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

// AppendJSON writes an event as one JSON object and a newline.
func (p *Printer) AppendJSON(dst []byte, e *event.Event) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p.Record(e)); err != nil {
		// No value in a Record can fail to encode.
		return append(dst, "{}\n"...)
	}
	return append(dst, buf.Bytes()...)
}

// Record returns the JSON form of an event. It shares nothing with the event.
func (p *Printer) Record(e *event.Event) *Record {
	r := &Record{
		Seq: e.Seq, Kind: kindName(e.Kind), PID: e.PID, TID: e.TID, PPID: e.PPID, PGID: e.PGID, SID: e.SID, UID: e.UID, GID: e.GID,
		EnterNS: e.Enter, ExitNS: e.Exit, CPUNS: e.CPU, Ret: e.Ret, Child: e.Child, Flags: flagWords(e.Flags),
	}
	r.Comm, r.Comm64 = text(e.Comm)
	if int(e.Host) < len(p.o.Hosts) {
		r.Host = p.o.Hosts[e.Host].Host
		r.Time = time.Unix(0, p.wall(e, e.Enter)).UTC().Format(time.RFC3339Nano)
	}
	if e.Errno != 0 {
		r.Errno = event.ErrnoName(e.Errno)
	}
	if e.Offset >= 0 {
		r.Offset = new(e.Offset)
	}
	if e.Count >= 0 {
		r.Count = new(e.Count)
	}
	spec := e.Spec()
	p.jsonObjects(r, e, spec)
	if e.Kind != event.Call {
		p.jsonMark(r, e)
		return r
	}
	nr := e.NR
	r.Op, r.Class, r.NR = spec.Name, spec.Class.String(), &nr
	if spec.Op == event.OpUnknown {
		r.Name = CallName(p.archOf(e), e.NR)
	}
	for i := range spec.Args {
		a, show := p.argument(e, spec, i)
		if !show {
			continue
		}
		if r.Args == nil {
			r.Args = map[string]any{}
		}
		p.jsonArg(r.Args, e, &a, i)
	}
	if m := jsonRequest(e, p.archOf(e)); m != nil {
		if r.Args == nil {
			r.Args = map[string]any{}
		}
		r.Args["request"] = m
	}
	return r
}

func (p *Printer) jsonMark(r *Record, e *event.Event) {
	switch e.Kind {
	case event.Exited:
		if sig := e.Ret & 0x7f; sig != 0 {
			r.Signal = event.SignalName(int(sig))
		} else {
			status := int(e.Ret >> 8 & 0xff)
			r.Status = &status
		}
	case event.LossMark:
		r.Lost, r.Reason = uint64(e.Ret), lossReason(uint32(e.Args[0]))
	case event.NoteMark:
		if len(e.Bufs) > 0 {
			r.Text, r.Text64 = text(string(p.content(&e.Bufs[0], int(e.Bufs[0].Len))))
		}
	case event.Forked:
		r.Thread = e.Args[0]&event.ShareThread != 0
	case event.Started:
		r.Umask = string(appendOctal(nil, e.Args[0]))
	}
}

func flagWords(f event.EventFlags) []string {
	var words []string
	for _, w := range [...]struct {
		bit  event.EventFlags
		name string
	}{{event.Interrupted, "interrupted"}, {event.Incomplete, "incomplete"}, {event.Late, "late"}} {
		if f&w.bit != 0 {
			words = append(words, w.name)
		}
	}
	return words
}

// argName returns the name of an argument position.
func argName(spec *event.Spec, arg int) string {
	if arg >= 0 && arg < len(spec.Args) {
		return spec.Args[arg].Name
	}
	if arg == event.MemoryArg {
		return "memory"
	}
	return "result"
}

func (p *Printer) jsonObjects(r *Record, e *event.Event, spec *event.Spec) {
	for i := range e.Files {
		f := &e.Files[i]
		j := JSONFile{Arg: argName(spec, int(f.Arg)), FD: f.FD, Open: uint64(f.Open)}
		if e.Kind != event.Call {
			j.Arg = "fd"
		}
		j.Path, j.Path64 = text(f.Path)
		if f.Known {
			j.JSONInode = &JSONInode{
				Dev: f.Dev, Ino: f.Ino, Mode: string(appendMode(nil, uint64(f.Mode))), Flags: event.FormatOpenFlags(p.archOf(e), uint64(f.Flags)),
				Nlink: f.Nlink, UID: f.UID, GID: f.GID, Size: f.Size, Pos: f.Pos, Rdev: f.Rdev,
			}
		}
		r.Files = append(r.Files, j)
	}
	for i := range e.Paths {
		j := JSONPath{Arg: argName(spec, int(e.Paths[i].Arg))}
		if e.Kind != event.Call {
			j.Arg = "path"
		}
		j.Raw, j.Raw64 = text(e.Paths[i].Raw)
		j.Abs, j.Abs64 = text(e.Paths[i].Abs)
		r.Paths = append(r.Paths, j)
	}
}

// jsonArg adds argument i under its name.
func (p *Printer) jsonArg(args map[string]any, e *event.Event, a *event.Arg, i int) {
	v := e.Args[i]
	switch a.Kind {
	case event.KindInt:
		args[a.Name] = intOf(v)
	case event.KindFD, event.KindDirFD, event.KindPID, event.KindID:
		args[a.Name] = int32(v)
	case event.KindSize:
		args[a.Name] = v
	case event.KindOff:
		args[a.Name] = int64(v)
	case event.KindPath:
		if path := e.PathArg(i); path != nil {
			putText(args, a.Name, path.Raw)
			return
		}
		args[a.Name] = nil
	case event.KindText, event.KindBuf, event.KindVec, event.KindStruct, event.KindStrings:
		if b := e.BufArg(i); b != nil {
			p.jsonBuf(args, e, a, b)
			return
		}
		if v == 0 {
			args[a.Name] = nil
			return
		}
		args[a.Name] = string(appendHex(nil, v))
	default:
		args[a.Name] = string(p.appendArg(nil, e, a, i))
	}
}

func putText(m map[string]any, name, s string) {
	if utf8.ValidString(s) {
		m[name] = s
		return
	}
	m[name+"64"] = base64.StdEncoding.EncodeToString([]byte(s))
}

func (p *Printer) jsonBuf(args map[string]any, e *event.Event, a *event.Arg, b *event.Buf) {
	if !b.Omitted && b.Missing == 0 {
		arch := p.archOf(e)
		switch {
		case a.Kind == event.KindStruct && a.Layout.Bytes(arch) > 0:
			if s, ok := decode(a.Layout, arch, p.content(b, a.Layout.Bytes(arch))); ok {
				args[a.Name] = jsonStruct(&s, arch)
				return
			}
		case a.Kind == event.KindText:
			putText(args, a.Name, string(bytes.TrimRight(p.content(b, event.MaxPath), "\x00")))
			return
		case a.Kind == event.KindStrings:
			args[a.Name] = jsonStrings(p.content(b, int(b.Len)))
			return
		case isSockaddr(a):
			args[a.Name] = string(appendSockaddr(nil, p.content(b, maxSockaddr)))
			return
		case isDirents(e, a):
			args[a.Name] = jsonDirents(dirents(p.content(b, maxDirents), e.Op))
			return
		}
	}
	j := JSONBuf{Len: b.Len, Missing: b.Missing, Omitted: b.Omitted, Parts: append([]int64(nil), b.Parts...), Hashes: jsonDigests(b)}
	if !b.Omitted || b.Kept() > 0 {
		data := p.content(b, p.max)
		j.Cut = int64(len(data)) < b.Len
		if s := string(data); utf8.ValidString(s) {
			j.Data = &s
		} else {
			j.Data64 = bytes.Clone(data)
		}
	}
	args[a.Name] = j
}

// jsonStrings returns an argument vector; bytes that are not UTF-8 become U+FFFD.
func jsonStrings(b []byte) []string {
	list := []string{}
	if len(b) == 0 {
		return list
	}
	for _, s := range bytes.Split(bytes.TrimSuffix(b, []byte{0}), []byte{0}) {
		list = append(list, string(bytes.ToValidUTF8(s, []byte("\ufffd"))))
	}
	return list
}

func jsonDirents(list []dirent) []map[string]any {
	out := make([]map[string]any, 0, len(list))
	for i := range list {
		d := &list[i]
		m := map[string]any{"ino": d.ino, "off": d.off, "type": direntTypes.FormatEnum(uint64(d.kind))}
		putText(m, "name", string(d.name))
		out = append(out, m)
	}
	return out
}

// jsonStruct returns a structure as an object, or as an array where it is one.
func jsonStruct(s *structure, a event.Arch) any {
	if s.single {
		return jsonField(&s.fields[0], a)
	}
	if s.list {
		list := make([]any, len(s.fields))
		for i := range s.fields {
			list[i] = jsonField(&s.fields[i], a)
		}
		return list
	}
	m := make(map[string]any, len(s.fields))
	for i := range s.fields {
		m[s.fields[i].name] = jsonField(&s.fields[i], a)
	}
	return m
}

func jsonField(f *field, a event.Arch) any {
	switch f.form {
	case unsigned, device:
		return f.v
	case signed, fileDescr:
		return int64(f.v)
	case timespec:
		return map[string]int64{"tv_sec": int64(f.v), "tv_nsec": f.w}
	case timeval:
		return map[string]int64{"tv_sec": int64(f.v), "tv_usec": f.w}
	}
	return string(appendField(nil, f, a))
}
