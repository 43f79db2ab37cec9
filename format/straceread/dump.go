// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	hexadecimal "encoding/hex"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// strace -e read=3 -e write=all prints all bytes that a call moved, behind the call:
//
//	write(1, "hello"..., 12) = 12
//	 | 00000  68 65 6c 6c 6f 2c 20 77  6f 72 6c 64              hello, world     |
//
// Of a vector or a message, a line in front of each buffer has its number: " * 5 bytes in buffer 0".

// returned is a call that is whole, and of which a dump may follow.
type returned struct {
	t              *thread
	text           string
	enter, resumed uint64
	dumps          [][]byte // of its buffers
	size           int      // of dumps, bytes
}

// whole writes a call, or keeps it until the next line shows that no dump of its content follows.
func (x *importer) whole(t *thread, text string, enter, resumed uint64) error {
	name, _, _ := strings.Cut(text, "(")
	if !moves[name] {
		return x.call(t, text, enter, resumed, nil)
	}
	x.kept = &returned{t: t, text: text, enter: enter, resumed: resumed}
	return nil
}

// dumpLine takes a line of a dump. At any other line, the call that was kept is complete.
func (x *importer) dumpLine(s string) (taken bool, err error) {
	if x.kept != nil && x.kept.dump(s) {
		return true, nil
	}
	return false, x.flush()
}

// flush writes the call that was kept.
func (x *importer) flush() error {
	r := x.kept
	if r == nil {
		return nil
	}
	x.kept = nil
	return x.call(r.t, r.text, r.enter, r.resumed, r.dumps)
}

// moves are the names of calls that can have a dump.
var moves = func() map[string]bool {
	m := map[string]bool{"pread": true, "pwrite": true, "send": true, "recv": true, "sendmsg": true, "recvmsg": true,
		"sendmmsg": true, "recvmmsg": true}
	for i := range event.Specs() {
		s := &event.Specs()[i]
		for a := range s.Args {
			if s.IsContent(a) {
				m[s.Name] = true
			}
		}
	}
	return m
}()

// dump takes a line of a dump. It reports false if the line is none.
func (r *returned) dump(s string) bool {
	switch {
	case strings.HasPrefix(s, " = ") && strings.Contains(s, " buffers in vector "):
		return true
	case strings.HasPrefix(s, " * ") && strings.Contains(s, " bytes in buffer "):
		r.dumps = append(r.dumps, nil)
		return true
	case !strings.HasPrefix(s, " | ") || !strings.HasSuffix(s, " |"):
		return false
	}
	const width = 16*3 + 1 // of the digits; behind them are the bytes as characters
	offset, digits, ok := strings.Cut(s[len(" | "):], "  ")
	if !ok || len(digits) < width {
		return false
	}
	b, err := hexadecimal.DecodeString(strings.ReplaceAll(digits[:width], " ", ""))
	if err != nil {
		return false
	}
	if len(r.dumps) == 0 {
		r.dumps = [][]byte{nil}
	}
	last := &r.dumps[len(r.dumps)-1]
	at, err := strconv.ParseUint(offset, 16, 32)
	if err == nil && at == uint64(len(*last)) && r.size+len(b) <= maxLine {
		*last = append(*last, b...)
		r.size += len(b)
	}
	return true
}

// dumped puts what was dumped in the place of what the call's text has of its buffers.
func dumped(args []field, op event.Op, dumps [][]byte) {
	spec := event.Lookup(op)
	for i := range args {
		if i < len(spec.Args) && spec.Args[i].Kind == event.KindBuf && spec.IsContent(i) {
			dumps = show(&args[i], dumps)
		} else {
			dumps = bases(&args[i], dumps)
		}
	}
}

// bases gives the buffers of a vector or a message their content, and returns the dumps that are left.
func bases(f *field, dumps [][]byte) [][]byte {
	for i := range f.Parts {
		if p := &f.Parts[i]; p.Name == "iov_base" {
			dumps = show(p, dumps)
		} else {
			dumps = bases(p, dumps)
		}
	}
	return dumps
}

// show gives a buffer the first of the dumps, and returns the others.
func show(f *field, dumps [][]byte) [][]byte {
	if len(dumps) == 0 {
		return nil
	}
	f.Kind, f.Data, f.Cut = layout.ToldText, dumps[0], false
	return dumps[1:]
}
