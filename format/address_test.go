package format

import (
	"net/netip"
	"testing"

	"iotape/event"
	"iotape/event/layout"
)

func TestSockaddr(t *testing.T) {
	for _, c := range []struct {
		name string
		b    []byte
		size int
		want string
	}{
		{"IPv4", Sockaddr(netip.MustParseAddrPort("10.1.2.3:80")), 16, "sin_port=80"},
		{"IPv6", Sockaddr(netip.MustParseAddrPort("[fe80::1]:443")), 28, "sin6_port=443"},
		{"a local socket", SockaddrUnix("/run/x"), 9, ""},
		{"an abstract name", SockaddrUnix("\x00x"), 4, ""},
	} {
		m := layout.Memory{Layout: event.LayoutSockaddr, Bytes: c.b}
		v, ok := m.Decode()
		if len(c.b) != c.size || !ok {
			t.Errorf("%s: %d bytes, decoded %v: %v", c.name, len(c.b), ok, v)
		}
	}
	if Sockaddr(netip.AddrPort{}) != nil {
		t.Error("the zero address has bytes")
	}
}
