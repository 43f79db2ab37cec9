// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestListenAnywhere has a server listen at all addresses of a host, of both families or one, and a client ask
// it by one of them: the connection is paired, and nothing is wrong, in both orders of the tapes.
func TestListenAnywhere(t *testing.T) {
	testenv.Short(t, "it records servers")
	prog := program(t)
	for _, c := range []struct{ listen, ask string }{
		{"[::]", "127.0.0.1"}, {"[::]", "[::1]"}, {"[::]", "[::ffff:127.0.0.1]"}, {"0.0.0.0", "127.0.0.1"},
		{"0.0.0.0", "127.0.0.9"}, {"0.0.0.0", "[::ffff:127.0.0.1]"},
	} {
		t.Run(c.listen+" "+c.ask, func(t *testing.T) {
			s := newScene(t)
			p := port(t)
			server := s.server("server", prog, "replica", c.listen+":"+p, "stored")
			source := s.write("source", 20_000, 4)
			s.end(s.start("client", prog, "send", c.ask+":"+p, source))
			s.end(server)
			for range 2 {
				f := s.load(nil)
				expect(t, f, nil, "wrong == 0 and contradictions == 0 and dangling <= 1")
				got := steps(f, path(t, f, source, filepath.Join(s.dir, "stored")))
				if !strings.HasPrefix(got, "<source >") || !strings.Contains(got, " >stored") {
					t.Errorf("the way is %q, want one from the file that was sent to the one that was stored", got)
				}
				for id := range f.Len() {
					if o := f.Move(id).Object; strings.Contains(o.Name, ":"+p) && o.OneSided && f.Move(id).Write {
						t.Errorf("what was sent to %s has no other side, want it paired", o.Name)
					}
				}
				slices.Reverse(s.tapes)
			}
		})
	}
}
