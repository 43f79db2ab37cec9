package event

import "encoding/binary"

// Traffic is what a call moved, by direction: to the program and from it. A call
// that moves bytes between two descriptors moves them both ways.
type Traffic struct {
	Read, Written int64 // bytes; 0 if it failed
	Reads, Writes bool  // it is such a call, whatever it moved
	From, To      *File // where the bytes came from and went to; nil: the program's memory, or unknown
}

// Bytes returns how many bytes were moved, once.
func (t Traffic) Bytes() int64 { return max(t.Read, t.Written) }

// Traffic returns what content the event moved: of files, pipes and sockets, by
// calls, requests and mappings.
func (e *Event) Traffic() Traffic {
	s := e.Spec()
	if e.Kind != Call || s.Class != Data && s.Class != Socket || s.Result != KindSize {
		return Traffic{}
	}
	n := max(e.Ret, 0)
	if e.Errno != 0 || e.Flags&Interrupted != 0 {
		n = 0
	}
	reads := Traffic{Read: n, Reads: true, From: e.Subject()}
	writes := Traffic{Written: n, Writes: true, To: e.Subject()}
	switch e.Op.Like() {
	case OpSendfile:
		return Traffic{n, n, true, true, e.FileArg(1), e.FileArg(0)}
	case OpTee:
		return Traffic{n, n, true, true, e.FileArg(0), e.FileArg(1)}
	case OpCopyFileRange, OpSplice:
		return Traffic{n, n, true, true, e.FileArg(0), e.FileArg(2)}
	case OpSendmsg:
		return writes
	case OpRecvmsg:
		return reads
	}
	for i := range s.Args {
		switch a := &s.Args[i]; {
		case a.Kind != KindBuf && a.Kind != KindVec:
		case a.Dir == Out:
			return reads
		default:
			return writes
		}
	}
	return Traffic{}
}

// Subject returns the file that the event is about: what a call made a descriptor
// of, or else its first descriptor. It is nil if there is none.
func (e *Event) Subject() *File {
	if s := e.Spec(); s.Result == KindFD && s.Class == Descriptor && len(e.Paths) > 0 {
		if f := e.FileArg(ResultArg); f != nil {
			return f
		}
	}
	if len(e.Files) > 0 {
		return &e.Files[0]
	}
	return nil
}

// Name returns the best known name of what the event is about: its subject's, or
// else that of its first path. It is "" if there is none.
func (e *Event) Name() string {
	if f := e.Subject(); f != nil && f.Path != "" {
		return f.Path
	}
	if len(e.Paths) == 0 {
		return ""
	}
	if p := &e.Paths[0]; p.Abs != "" {
		return p.Abs
	}
	return e.Paths[0].Raw
}

// OpenFlags returns the flags that a call asked to open a file with, 0 for calls that
// open none. What the kernel says of the open file afterwards (File.Flags) does not have
// O_CREAT, O_EXCL and O_TRUNC any more (open(2)).
func (e *Event) OpenFlags() uint64 {
	const createWriteTruncate = 0o1101 // creat(2)
	switch e.Op.Like() {
	case OpOpen:
		return e.Args[1]
	case OpOpenat:
		return e.Args[2]
	case OpCreat:
		return createWriteTruncate
	case OpOpenat2: // struct open_how begins with them
		if how := e.BufArg(2); how != nil && len(how.Inline) >= 8 {
			return binary.LittleEndian.Uint64(how.Inline)
		}
	}
	return 0
}
