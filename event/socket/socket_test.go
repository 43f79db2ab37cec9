// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"net/netip"
	"strings"
	"testing"
)

func at(s string) Address {
	a := netip.MustParseAddrPort(s)
	return Address{IP: a.Addr(), Port: uint32(a.Port()), Set: true}
}

func TestNames(t *testing.T) {
	for name, e := range map[string]Ends{
		"TCP:[10.0.0.1:4242->10.0.0.2:80]": {Family: Inet, Type: Stream, Protocol: protoTCP, Local: at("10.0.0.1:4242"),
			Peer: at("10.0.0.2:80")},
		"TCP:[0.0.0.0:5000]":                   {Family: Inet, Type: Stream, Protocol: protoTCP, Local: at("0.0.0.0:5000")},
		"TCP:[77->10.0.0.2:80]":                {Family: Inet, Type: Stream, Protocol: protoTCP, Ino: 77, Peer: at("10.0.0.2:80")},
		"TCP:[77]":                             {Family: Inet, Type: Stream, Protocol: protoTCP, Ino: 77},
		"TCPv6:[[::1]:1->[::ffff:10.0.0.2]:2]": {Family: Inet6, Type: Stream, Protocol: protoTCP, Local: at("[::1]:1"), Peer: at("[::ffff:10.0.0.2]:2")},
		"UDP:[127.0.0.1:53]":                   {Family: Inet, Type: Dgram, Protocol: protoUDP, Local: at("127.0.0.1:53")},
		"UNIX-STREAM:[7]":                      {Family: Unix, Type: Stream, Ino: 7},
		"UNIX-DGRAM:[7->8]":                    {Family: Unix, Type: Dgram, Ino: 7, PeerIno: 8},
		`UNIX-STREAM:[7->8,"/run/a, \"b\"",pid=9,uid=4294967295]`: {Family: Unix, Type: Stream, Ino: 7, PeerIno: 8,
			Local: Address{Path: `/run/a, "b"`, Set: true}, PID: 9, UID: 1<<32 - 1},
		`UNIX-SEQPACKET:[7,peer=@"a\x00b",pid=9,uid=0]`: {Family: Unix, Type: Seqpacket, Ino: 7,
			Peer: Address{Path: "@a\x00b", Set: true}, PID: 9},
		"NETLINK:[ROUTE:4711]":        {Family: Netlink, Type: Raw, Local: Address{Port: 4711, Set: true}},
		"NETLINK:[KOBJECT_UEVENT]":    {Family: Netlink, Type: Raw, Protocol: 15},
		"VSOCK-STREAM:[2:1024->3:99]": {Family: Vsock, Type: Stream, Local: Address{CID: 2, Port: 1024, Set: true}, Peer: Address{CID: 3, Port: 99, Set: true}},
	} {
		if got := e.Name(e.Ino); got != name {
			t.Errorf("got the name %s, want %s", got, name)
		}
		if got, ok := Parse(name); !ok || got != e {
			t.Errorf("%s: got %+v, %t, want %+v", name, got, ok, e)
		}
	}
	for name, e := range map[string]Ends{
		"VSOCK-STREAM:[2:1024->3:99]": {Local: Address{CID: 2, Port: 1024, Set: true}}, "TCP:[10.0.0.1:4242]": {Local: at("10.0.0.1:4242")},
		"TCPv6:[[::1]:1]": {Local: at("[::1]:1")}, `UNIX-STREAM:[7,"/run/x"]`: {Local: Address{Path: "/run/x", Set: true}},
		`UNIX-STREAM:[7,@"x"]`: {Local: Address{Path: "@x", Set: true}}, "NETLINK:[ROUTE:7]": {Local: Address{Port: 7, Set: true}},
	} {
		k, _ := Parse(name)
		if got := Sockaddr(e.Local.Sockaddr(k.Family)); got != e.Local {
			t.Errorf("%s: the address becomes %+v in struct sockaddr, want %+v", name, got, e.Local)
		}
	}
	for _, name := range []string{"", "/a:[b]", "socket:[7]", "pipe:[7]", "TCP:[", "TCP:[]", "TCP:[a->b]",
		"TCP:[1->2]", "TCP:[0.0.0.0:0]", "TCP:[10.0.0.1:1->]",
		"UNIX-STREAM:[x]", "UNIX-STREAM:[1->]", `UNIX-STREAM:[1,"a]`, "UNIX-STREAM:[1,pid=99999999999]", "UNIX-STREAM:[1,]",
		"TCP:[" + strings.Repeat("1", maxName) + "]"} {
		if e, ok := Parse(name); ok {
			t.Errorf("%q is taken for the name of a socket: %+v", name, e)
		}
	}
}

func TestEncoded(t *testing.T) {
	inet := []byte{2, 0, 0x13, 0x88, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}
	peer := []byte{2, 0, 0, 80, 10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0}
	b := Encode(&Ends{Family: Inet, Type: Stream, Protocol: protoTCP}, inet, peer)
	e, ok := Decode(b, 7)
	if got := e.Name(7); !ok || got != "TCP:[10.0.0.1:5000->10.0.0.2:80]" {
		t.Errorf("got %s, %t", got, ok)
	}
	for n := range b {
		if _, ok := Decode(b[:n], 7); ok {
			t.Errorf("the first %d of %d bytes are taken for all", n, len(b))
		}
	}
	// What the kernel does not say is unknown, and not an address of zeros.
	e, _ = Decode(Encode(&Ends{Family: Inet, Type: Stream, Protocol: protoTCP}, nil, nil), 7)
	if e.Local.Set || e.Peer.Set || e.Name(7) != "TCP:[7]" {
		t.Errorf("a socket of which nothing is known: %+v, %s", e, e.Name(7))
	}
}

// A damaged stream says an address of the internet of a socket of AF_VSOCK: it is no address of it.
func TestAddressOfAnotherFamily(t *testing.T) {
	inet := []byte{2, 0, 0x2f, 0x72, 122, 1, 47, 120, 0, 0, 0, 0, 0, 0, 0, 0}
	inet6 := (&Address{IP: netip.MustParseAddr("::1"), Port: 80, Set: true}).Sockaddr(Inet6)
	tests := []struct {
		family, protocol uint16
		address          []byte
		want             string
	}{
		{Vsock, 0, inet, "VSOCK-STREAM:[7]"},
		{Unix, 0, inet, "UNIX-STREAM:[7]"},
		{Netlink, 0, inet, "NETLINK:[ROUTE]"},
		{Inet6, protoTCP, inet, "TCPv6:[122.1.47.120:12146]"},
		{Inet, protoTCP, inet6, "TCP:[[::1]:80]"},
	}
	for _, tt := range tests {
		e, ok := Decode(Encode(&Ends{Family: tt.family, Type: Stream, Protocol: tt.protocol}, tt.address, nil), 7)
		if got := e.Name(7); !ok || got != tt.want {
			t.Errorf("family %d with the address %v: got %s, %t, want %s", tt.family, tt.address, got, ok, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("TCP:[10.0.0.1:4242->10.0.0.2:80]")
	f.Add(`UNIX-STREAM:[7->8,@"a\x00b",peer="/x",pid=9,uid=1]`)
	f.Add("VSOCK-STREAM:[2:1024->3:99]")
	f.Add("NETLINK:[ROUTE:4711]")
	f.Fuzz(func(t *testing.T, name string) {
		e, ok := Parse(name)
		if !ok {
			return
		}
		again, ok := Parse(e.Name(e.Ino))
		if !ok || again != e {
			t.Errorf("%q is %+v, and what is written of that is %+v, %t", name, e, again, ok)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(&Ends{Family: Unix, Type: Stream, PeerIno: 8, PID: 9}, []byte("\x01\x00/run/x"), nil), uint64(7))
	f.Add(make([]byte, HeadBytes), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, ino uint64) {
		e, ok := Decode(b, ino)
		if !ok {
			return
		}
		if name := e.Name(ino); name != "" {
			if _, ok := Parse(name); !ok {
				t.Errorf("%+v has the name %q, which says nothing", e, name)
			}
		}
	})
}
