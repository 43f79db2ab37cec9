// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/trace"
)

// TestSocketNames maps the names of open sockets, which say what their addresses, paths, inodes and
// processes are, as these are mapped wherever else they stand.
func TestSocketNames(t *testing.T) {
	m, back := mappers(AllFields, &trace.Anonymised{})
	for name, secrets := range map[string][]string{
		"TCP:[10.1.2.3:4242->10.4.5.6:8080]":               {"10.1.2.3", "4242", "10.4.5.6", "8080"},
		"TCPv6:[[2001:db8::7]:4242->[::1]:8080]":           {"2001:db8::7", "4242", "8080"},
		"UDP:[4711]":                                       {"4711"},
		`UNIX-STREAM:[4711->4712,"/run/alice/x",pid=815]`:  nil, // without a user it is no name
		`UNIX-STREAM:[4711,"/run/alice",pid=815,uid=1234]`: {"4711", "alice", "815", "1234"},
		`UNIX-STREAM:[4711,peer=@"alice's"]`:               {"4711", "alice"},
		"NETLINK:[ROUTE:4711]":                             {"4711"},
	} {
		to := m.path(name)
		if again := back.path(to); secrets != nil && again != name {
			t.Errorf("%s becomes %s and comes back as %s", name, to, again)
		}
		for _, s := range secrets {
			if strings.Contains(to, s) {
				t.Errorf("%s becomes %s, which has %s", name, to, s)
			}
		}
		if e, ok := socket.Parse(name); ok {
			if got, ok := socket.Parse(to); !ok || got.Family != e.Family || got.Type != e.Type {
				t.Errorf("%s becomes %s, want a name of the same kind", name, to)
			}
		}
	}
	// The address of a name is that of a structure in memory.
	b := []byte{2, 0, 0x10, 0x92, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0}
	m.sockaddr(b)
	a := socket.Sockaddr(b)
	if to, want := m.path("TCP:[10.1.2.3:4242]"), "TCP:["+a.Endpoint().String()+"]"; to != want {
		t.Errorf("got the name %s, want %s as in memory", to, want)
	}
	list := []string{"10.1.2.3", "2001:db8::7"}
	if to := m.addresses(list); !strings.HasPrefix(a.Endpoint().String(), to[0]+":") || slices.Contains(to, list[1]) ||
		!slices.Equal(back.addresses(to), list) {
		t.Errorf("addresses of a host: %v become %v and come back as %v", list, to, back.addresses(to))
	}
}
