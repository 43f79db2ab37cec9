// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// talk is a conversation of two sockets of different hosts: what each of them is told, and sends.
type talk struct {
	b       *Builder
	content map[uint32]string
	n       uint32
}

func newTalk() *talk {
	k := &talk{b: NewBuilder(), content: map[uint32]string{}}
	k.b.KeepStreams()
	k.b.Content(func(i uint32, n int) []byte { return []byte(k.content[i])[:min(n, len(k.content[i]))] })
	return k
}

func (k *talk) add(host uint32, at int64, op event.Op, ret int64, buf []byte, files ...event.File) {
	ev := &event.Event{Op: op, Host: host, PID: 1, TID: 1, Enter: at, Exit: at + 1, Ret: ret, Files: files}
	if buf != nil {
		ev.Bufs = []event.Buf{{Arg: 1, Kind: event.KindStruct, Inline: buf}}
	}
	k.b.Add(ev)
	k.n++
}

// moves adds a call that sends or receives.
func (k *talk) moves(host uint32, at int64, op event.Op, f event.File, text string) {
	k.content[k.n] = text
	k.add(host, at, op, int64(len(text)), nil, f)
}

// paired lists the streams of which both sides are known, by what went through them.
func (k *talk) paired() string {
	g := k.b.Graph()
	var list []string
	for _, s := range g.Streams {
		var w, r []string
		s.Writes(func(m Move) { w = append(w, k.content[m.Event]) })
		s.Reads(func(m Move) { r = append(r, k.content[m.Event]) })
		if len(w) > 0 && len(r) > 0 {
			sent, got := strings.Join(w, "+"), strings.Join(r, "+")
			list = append(list, fmt.Sprintf("%d %s>%d %s", s.From(), sent, s.To(), got))
		}
	}
	slices.Sort(list)
	for _, host := range slices.Sorted(maps.Keys(g.Doubtful)) {
		list = append(list, fmt.Sprintf("%d doubtful of %d", g.Doubtful[host], host))
	}
	return strings.Join(list, ", ")
}

func file(open event.OpenID, name string, arg int8) event.File {
	return event.File{Open: open, Path: name, Arg: arg, Known: true, Mode: event.TypeSocket, Ino: 1000 + uint64(open)}
}

func inet(last, port byte) []byte {
	return []byte{2, 0, 0, port, 10, 0, 0, last, 0, 0, 0, 0, 0, 0, 0, 0}
}

// TestWrongOrder has two clients of one server, whose clock and accepts are in another order than
// the connects. Only one side of each connection tells an address.
func TestWrongOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		own  map[uint32][]string // addresses of hosts
		want string
	}{
		{"by the addresses of the hosts", map[uint32][]string{0: {"10.0.0.1"}, 1: {"10.0.0.2"}},
			"0 first>2 first, 1 other>2 other"},
		{"by the address of one host", map[uint32][]string{1: {"10.0.0.2"}}, "0 first>2 first, 1 other>2 other"},
		{"by the bytes", nil, "0 first>2 first, 1 other>2 other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newTalk()
			for host, list := range c.own {
				k.b.Addresses(host, list)
			}
			k.add(0, 10, event.OpConnect, 0, inet(9, 80), file(1, "socket:[1]", 0))
			k.moves(0, 12, event.OpSendto, file(1, "socket:[1]", 0), "first")
			k.add(1, 20, event.OpConnect, 0, inet(9, 80), file(1, "socket:[1]", 0))
			k.moves(1, 22, event.OpSendto, file(1, "socket:[1]", 0), "other")
			k.add(2, 1, event.OpBind, 0, []byte{2, 0, 0, 80, 0, 0, 0, 0}, file(1, "socket:[1]", 0))
			k.b.Addresses(2, []string{"10.0.0.9"})
			for i, text := range []string{"other", "first"} { // from .2, then from .1
				f := file(event.OpenID(2+i), "socket:[2]", event.ResultArg)
				at := int64(5000 + 100*i)
				k.add(2, at, event.OpAccept, 3, inet(byte(2-i), 7), file(1, "socket:[1]", 0), f)
				f.Arg = 0
				k.moves(2, at+2, event.OpRecvfrom, f, text)
			}
			if got := k.paired(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDoubtful has an accept that nothing but the order gives to a connect, and whose bytes are
// others.
func TestDoubtful(t *testing.T) {
	for _, c := range []struct{ sent, got, want string }{
		{"a question", "a question", "0 a question>1 a question"},
		{"a question", "an?  other one", "2 doubtful of 1"}, // more than was sent
		{"a question", "something", "2 doubtful of 1"},
	} {
		k := newTalk()
		k.add(0, 10, event.OpConnect, 0, inet(9, 80), file(1, "socket:[1]", 0))
		k.moves(0, 12, event.OpSendto, file(1, "socket:[1]", 0), c.sent)
		k.add(1, 1, event.OpBind, 0, inet(9, 80), file(1, "socket:[1]", 0))
		k.add(1, 2, event.OpAccept, 3, nil, file(1, "socket:[1]", 0), file(2, "socket:[2]", event.ResultArg))
		k.moves(1, 3, event.OpRecvfrom, file(2, "socket:[2]", 0), c.got)
		if got := k.paired(); got != c.want {
			t.Errorf("sent %q, received %q: got %q, want %q", c.sent, c.got, got, c.want)
		}
	}
}

// TestChangedAddresses has a connection through a gateway that changes both addresses: the bytes
// pair it, unless the other end is one that is known to be elsewhere.
func TestChangedAddresses(t *testing.T) {
	const text = "enough bytes to tell it"
	const pair = "0 " + text + ">1 " + text
	for _, c := range []struct {
		name, client, server, want string
	}{
		{"changed", "TCP:[192.168.0.5:4000->10.0.0.1:80]", "TCP:[172.16.0.9:8080->172.16.0.1:5555]", pair},
		{"to another host", "TCP:[192.168.0.5:4000->10.0.0.7:80]", "TCP:[172.16.0.9:80->172.16.0.1:5555]", ""},
		{"as they were", "TCP:[192.168.0.5:4000->172.16.0.9:80]", "TCP:[172.16.0.9:80->192.168.0.5:4000]",
			pair},
	} {
		k := newTalk()
		k.b.Addresses(2, []string{"10.0.0.7"})
		k.add(0, 10, event.OpConnect, 0, nil, file(1, c.client, 0))
		k.moves(0, 12, event.OpSendto, file(1, c.client, 0), text)
		k.add(1, 2, event.OpAccept, 3, nil, file(1, "TCP:[172.16.0.9:80]", 0), file(2, c.server, event.ResultArg))
		k.moves(1, 3, event.OpRecvfrom, file(2, c.server, 0), text)
		if got := k.paired(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestGiven has a connection that one side inherited: what it had read before nobody knows, so no
// byte is said to be another one.
func TestGiven(t *testing.T) {
	k := newTalk()
	client, server := file(1, "TCP:[10.0.0.1:4000->10.0.0.2:80]", 0), file(1, "TCP:[10.0.0.2:80->10.0.0.1:4000]", 0)
	k.add(0, 10, event.OpConnect, 0, nil, client)
	k.moves(0, 12, event.OpSendto, client, "read before")
	k.b.Add(&event.Event{Kind: event.Inherited, Host: 1, PID: 1, TID: 1, Enter: 20, Exit: 20,
		Files: []event.File{server}})
	k.n++
	k.moves(0, 30, event.OpSendto, client, "and after")
	k.moves(1, 40, event.OpRecvfrom, server, "and after")
	g := k.b.Graph()
	if len(g.Streams) != 1 || g.Streams[0].Known() || g.Unsents != 0 {
		t.Errorf("got %d streams and %d faults, want one stream whose positions are not known", len(g.Streams),
			g.Unsents)
	}
	for i := range k.n {
		if from, _ := g.Before(int(i)); len(from) > 0 {
			t.Errorf("event %d comes after %v, want nothing that the bytes prove", i, from)
		}
	}
}

// TestLocalSockets has connections within a machine that was recorded twice, which the inodes of
// sockets pair, in any order of the tapes.
func TestLocalSockets(t *testing.T) {
	pipe := event.File{Open: 9, Path: "pipe:[5]", Ino: 5, Dev: 1, Mode: event.TypeFIFO}
	client := func(k *talk) {
		for i, open := range []event.OpenID{1, 2} {
			f := file(open, fmt.Sprintf(`UNIX-STREAM:[%d,peer="/run/x",pid=9,uid=0]`, 71+i), 0)
			k.add(0, int64(10+10*i), event.OpConnect, 0, nil, f)
			k.moves(0, int64(12+10*i), event.OpSendto, f, "from "+string(rune('1'+i)))
		}
		k.moves(0, 40, event.OpRead, pipe, "through a pipe")
	}
	server := func(k *talk) {
		for i, open := range []event.OpenID{2, 1} { // the second is accepted first
			f := file(10+open, fmt.Sprintf(`UNIX-STREAM:[%d->%d,"/run/x",pid=8,uid=0]`, 81+i, 70+open), event.ResultArg)
			k.add(1, int64(50+10*i), event.OpAccept4, 3, nil, file(5, `UNIX-STREAM:[80,"/run/x"]`, 0), f)
			f.Arg = 0
			k.moves(1, int64(52+10*i), event.OpRecvfrom, f, "from "+string(rune('0'+open)))
		}
		k.moves(1, 5, event.OpWrite, pipe, "through a pipe")
	}
	for name, add := range map[string][2]func(*talk){
		"client first": {client, server}, "server first": {server, client},
	} {
		k := newTalk()
		k.b.Machine(1, 0)
		add[0](k)
		add[1](k)
		got := k.paired()
		// A pipe's writers and readers are both the machine that first used it.
		if i := strings.Index(got, ", "); !strings.Contains(got, "0 from 1>1 from 1, 0 from 2>1 from 2") || i < 0 ||
			!strings.Contains(got, "through a pipe") {
			t.Errorf("%s: got %q, want both connections and the pipe", name, got)
		}
	}
}
