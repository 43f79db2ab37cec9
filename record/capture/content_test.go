// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

func TestParseContent(t *testing.T) {
	for text, want := range map[string]string{
		"full":                      "full",
		"none":                      "none",
		"hash":                      "hash",
		"head:1":                    "head:1",
		"head:64K":                  "head:65536",
		"read=hash":                 "read=hash,write=full",
		"write=none":                "read=full,write=none",
		"write=full,read=hash":      "read=hash,write=full",
		"read=hash,write=hash":      "hash",
		"read=head:4,write=head:4":  "head:4",
		"write=head:1M,read=none":   "read=none,write=head:1048576",
		"":                          "",
		"half":                      "",
		"head":                      "",
		"head:":                     "",
		"head:0":                    "",
		"head:-1":                   "",
		"head:4G":                   "",
		"head:4x":                   "",
		"both=full":                 "",
		"read=full,read=none":       "",
		"full,none":                 "",
		"read=full,none":            "",
		"full,":                     "",
		"read=":                     "",
		"head:18446744073709551615": "",
	} {
		c, err := ParseContent(text)
		if (err != nil) != (want == "") || err == nil && c.String() != want {
			t.Errorf("%q: %v, %v, want %q", text, c, err, want)
		}
		if err != nil {
			continue
		}
		if again, err := ParseContent(c.String()); err != nil || again != c {
			t.Errorf("%q: read again as %v, %v", text, again, err)
		}
	}
}

// What is content, and which way it goes.
func TestContentOf(t *testing.T) {
	c := Content{Read: Policy{Rule: KeepHash}, Write: Policy{Rule: KeepNone}}
	for _, k := range []struct {
		op   event.Op
		arg  int
		want Rule
	}{
		{event.OpRead, 1, KeepHash},
		{event.OpPreadv2, 1, KeepHash},
		{event.OpRecvfrom, 1, KeepHash},
		{event.OpWrite, 1, KeepNone},
		{event.OpWritev, 1, KeepNone},
		{event.OpSendto, 1, KeepNone},
		{event.OpCopyFileRange, 0, KeepHash},
		{event.OpSendfile, 1, KeepHash},
		{event.OpSendfile, 2, KeepFull},
		{event.OpSendto, 4, KeepFull}, // an address
		{event.OpConnect, 1, KeepFull},
		{event.OpMsgsnd, 1, KeepNone},
		{event.OpSendmsg, event.PartData.Of(1), KeepNone},
		{event.OpRecvmsg, event.PartData.Of(1), KeepHash},
		{event.OpRecvmsg, event.PartName.Of(1), KeepFull},
		{event.OpRecvmsg, event.PartControl.Of(1), KeepFull},
		{event.OpSendmsg, 1, KeepFull},
		{event.OpBind, 1, KeepFull},
		{event.OpSetsockopt, 3, KeepFull},
		{event.OpPipe2, 0, KeepFull},
		{event.OpReadlink, 1, KeepFull},
		{event.OpGetdents64, 1, KeepFull},
		{event.OpSetxattr, 2, KeepFull},
		{event.OpExecve, 1, KeepFull},
		{event.OpStat, 1, KeepFull},
		{event.OpRead, 17, KeepFull},
	} {
		if got := c.Of(event.Lookup(k.op), k.arg); got.Rule != k.want {
			t.Errorf("%s, argument %d: %v", k.op, k.arg, got)
		}
	}
}

// What covers what, and the least that covers both.
func TestCovers(t *testing.T) {
	all := []string{"full", "head:10", "head:20", "hash", "none", "read=none,write=full", "read=head:10,write=hash",
		"read=full,write=none"}
	for _, a := range all {
		for _, b := range all {
			x, y := parsed(t, a), parsed(t, b)
			u := x.Union(y)
			if !u.Covers(x) || !u.Covers(y) {
				t.Errorf("%s and %s: %s does not cover both", a, b, u)
			}
			if x.Covers(y) && u != x {
				t.Errorf("%s covers %s, and together they are %s", a, b, u)
			}
			if u != y.Union(x) {
				t.Errorf("%s and %s: %s, the other way round %s", a, b, u, y.Union(x))
			}
		}
	}
	for _, k := range []struct{ has, wants string }{{"head:10", "head:20"}, {"hash", "head:1"}, {"head:10", "hash"},
		{"none", "hash"}, {"read=full,write=none", "full"}} {
		if parsed(t, k.has).Covers(parsed(t, k.wants)) {
			t.Errorf("%s is made of %s", k.wants, k.has)
		}
	}
}

func parsed(t *testing.T, text string) Content {
	t.Helper()
	c, err := ParseContent(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Trim cuts at the position in the argument, wherever the pieces end.
func TestTrim(t *testing.T) {
	write := event.Lookup(event.OpWrite)
	data := []byte("0123456789")
	piece := func(from, to int) trace.Piece {
		return trace.Piece{Arg: 1, Off: uint64(from), Len: uint32(to - from), Data: data[from:to]}
	}
	for _, k := range []struct {
		policy string
		pieces []trace.Piece
		want   string
	}{
		{"full", []trace.Piece{piece(0, 10)}, "0123456789"},
		{"head:4", []trace.Piece{piece(0, 10)}, "0123 -6@4"},
		{"head:4", []trace.Piece{piece(0, 3), piece(3, 6), piece(6, 10)}, "012 3 -2@4 -4@6"},
		{"head:99", []trace.Piece{piece(0, 10)}, "0123456789"},
		{"none", []trace.Piece{piece(0, 4), piece(4, 10)}, "-4@0 -6@4"},
		{"hash", []trace.Piece{piece(0, 10)}, "0123456789"},
		{"read=none,write=full", []trace.Piece{piece(0, 10)}, "0123456789"},
		{"none", []trace.Piece{{Arg: 1, Len: 10, Flags: trace.PieceHash, Data: make([]byte, 32)}}, "-10@0"},
		{"none", []trace.Piece{{Arg: 1, Len: 10, Flags: trace.PieceMissing}}, "?10@0"},
	} {
		var got []string
		for _, p := range parsed(t, k.policy).Trim(nil, write, k.pieces) {
			switch {
			case p.Flags == trace.PieceOmitted && p.Data == nil:
				got = append(got, fmt.Sprintf("-%d@%d", p.Len, p.Off))
			case p.Flags == trace.PieceMissing:
				got = append(got, fmt.Sprintf("?%d@%d", p.Len, p.Off))
			default:
				got = append(got, string(p.Data))
			}
		}
		if text := strings.Join(got, " "); text != k.want {
			t.Errorf("%s: %s, want %s", k.policy, text, k.want)
		}
	}
}
