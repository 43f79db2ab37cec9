// SPDX-License-Identifier: Apache-2.0

package format

import (
	"net/netip"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

func TestSockaddr(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     []byte
		size  int
		field string
		num   uint64
		text  string
	}{
		{"IPv4", Sockaddr(netip.MustParseAddrPort("10.1.2.3:80")), 16, "sin_port", 80, ""},
		{"IPv6", Sockaddr(netip.MustParseAddrPort("[fe80::1]:443")), 28, "sin6_port", 443, ""},
		{"a local socket", SockaddrUnix("/run/x"), 9, "sun_path", 0, "/run/x"},
		{"an abstract name", SockaddrUnix("\x00x"), 4, "sun_path", 0, "\x00x"},
	} {
		m := layout.Memory{Layout: event.LayoutSockaddr, Bytes: c.b}
		v, ok := m.Decode()
		if len(c.b) != c.size || !ok {
			t.Errorf("%s: %d bytes, decoded: %v", c.name, len(c.b), ok)
			continue
		}
		if f, ok := v.Field(c.field); !ok || f.Num != c.num && c.text == "" ||
			c.text != "" && string(f.Data) != c.text {
			t.Errorf("%s: %s is %d %q", c.name, c.field, f.Num, f.Data)
		}
	}
	if Sockaddr(netip.AddrPort{}) != nil {
		t.Error("the zero address has bytes")
	}
}
