// SPDX-License-Identifier: Apache-2.0

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

// Moves says which way the operation moves the bytes that its result is the number of
// (CountsMessages: that its messages have): to the program, from it, or both, between two
// descriptors. Neither: it moves none.
func (s *Spec) Moves() (reads, writes bool) {
	if s.CountsMessages() {
		return s.Op == OpRecvmmsg, s.Op == OpSendmmsg
	}
	if s.Class != Data && s.Class != Socket || s.Result != KindSize {
		return false, false
	}
	switch s.Op.Like() {
	case OpSendfile, OpTee, OpCopyFileRange, OpSplice:
		return true, true
	case OpSendmsg:
		return false, true
	case OpRecvmsg:
		return true, false
	}
	for i := range s.Args {
		if a := &s.Args[i]; a.Kind == KindBuf || a.Kind == KindVec {
			return a.Dir == Out, a.Dir != Out
		}
	}
	return false, false
}

// CountsMessages reports whether the operation's result is a number of messages; each says
// itself how many bytes it has.
func (s *Spec) CountsMessages() bool { return s.Op == OpSendmmsg || s.Op == OpRecvmmsg }

// messageBytes returns how many bytes the messages of a call have, recorded or not.
func (e *Event) messageBytes() int64 {
	for i := range e.Spec().Args {
		if b := e.BufArg(PartData.Of(i)); b != nil {
			return b.Len
		}
	}
	return 0
}

// Traffic returns what content the event moved: of files, pipes and sockets, by
// calls, requests and mappings.
func (e *Event) Traffic() Traffic {
	t := Traffic{}
	if e.Kind != Call {
		return t
	}
	t.Reads, t.Writes = e.Spec().Moves()
	n := max(e.Ret, 0)
	if e.Spec().CountsMessages() {
		n = e.messageBytes()
	}
	if e.Errno != 0 || e.Flags&Interrupted != 0 {
		n = 0
	}
	if t.Reads {
		t.Read, t.From = n, e.Subject()
	}
	if t.Writes {
		t.Written, t.To = n, e.Subject()
	}
	switch {
	case e.Effect() == EffectCopy:
		from, to := e.CopySides()
		t.From, t.To = e.FileArg(from.FD), e.FileArg(to.FD)
	case e.Op.Like() == OpTee:
		t.From, t.To = e.FileArg(0), e.FileArg(1)
	}
	return t
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
// else that of its first path. It is the one that the kernel knows the file by
// (File.Reached), so that a file has one name. It is "" if there is none.
func (e *Event) Name() string {
	if f := e.Subject(); f != nil && f.Reached() != "" {
		return f.Reached()
	}
	if len(e.Paths) == 0 {
		return ""
	}
	if p := &e.Paths[0]; p.Reached() != "" {
		return p.Reached()
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
