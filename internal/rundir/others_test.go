// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBoundTo(t *testing.T) {
	const list = `Num       RefCount Protocol Flags    Type St Inode Path
000000007e4b6d1c: 00000002 00000000 00010000 0001 01 16384 /run/user/1000/iotape/7-1.notes~
00000000e4b6d1c7: 00000003 00000000 00000000 0001 03 16385 /run/user/1000/iotape/7-1.notes~
0000000054b6d1c7: 00000002 00000000 00010000 0001 01 16386 /run/user/1000/iotape/7.flight~
0000000064b6d1c7: 00000002 00000000 00010000 0001 01 16387 @/tmp/iotape-0/8-1.notes~
0000000074b6d1c7: 00000002 00000000 00010000 0001 01 16388 /tmp/with space/9-1.notes~
0000000084b6d1c7: 00000002 00000000 00010000 0001 01 16389
0000000094b6d1c7: 00000002 00000000 00010000 0001 01 16390 /tmp/x/10-1.notes
`
	want := []string{"/run/user/1000/iotape/7-1.notes", "/tmp/with space/9-1.notes"}
	if got := boundTo([]byte(list), ".notes"); !slices.Equal(got, want) {
		t.Errorf("sockets %q, want %q", got, want)
	}
}

// TestOpenOther checks that root is not led to another file than the socket of the user's own.
func TestOpenOther(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "1-1.notes"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type message struct{ N int }
	go Serve(l, func(q *message) *message { return &message{q.N + 1} })
	uid := uint32(os.Geteuid())
	path, done, err := (&Other{Path: l.Addr().String(), UID: uid}).Open()
	if err != nil {
		t.Fatal(err)
	}
	var a message
	err = Ask(context.Background(), path, message{1}, &a, Patience)
	done()
	if err != nil || a.N != 2 {
		t.Errorf("the answer is %d, %v, want 2", a.N, err)
	}

	link := filepath.Join(dir, "2-1.notes")
	if err := os.Symlink("1-1.notes", link); err != nil {
		t.Fatal(err)
	}
	around := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, around); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]Other{
		"a link to a socket":                  {Path: link, UID: uid},
		"a link to a directory":               {Path: filepath.Join(around, "1-1.notes"), UID: uid},
		"a socket of somebody else":           {Path: l.Addr().String(), UID: uid + 1},
		"a directory that everybody can read": {Path: filepath.Join(open, "1-1.notes"), UID: uid},
	} {
		if _, done, err := o.Open(); err == nil {
			done()
			t.Errorf("%s is taken for the socket of a user", what)
		} else if !strings.Contains(err.Error(), ".notes") && !strings.Contains(err.Error(), "link") {
			t.Errorf("%s: %v does not say where", what, err)
		}
	}
}
