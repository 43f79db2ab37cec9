// SPDX-License-Identifier: Apache-2.0

package eventsource

import "testing"

func TestRenames(t *testing.T) {
	var rs Renames
	for _, s := range []string{"/home/u/=/data", "/tmp=/", "/a=/b/c"} {
		r, err := ParseRename(s)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	for name, want := range map[string]string{
		"/etc/../home/u/x": "/data/x", "//home/u/x": "/data/x", "/home/u/../v": "/home/v",
		"/home/u/d/../x": "/data/d/../x", "/home/u/x/": "/data/x/",
		"/home/u/x": "/data/x", "/home/u": "/data", "/home/user": "/home/user", "/tmp/x/y": "/x/y", "/a/b": "/b/c/b",
		"a/b": "a/b", "": "", "/tmp": "/",
	} {
		if got := rs.Path(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	// A relative name stays if it leads to the right place.
	for _, c := range [][3]string{
		{"/home/u", "x", "x"}, {"/home/u/d", "../x", "../x"}, {"/home/u", "../v", "/home/v"},
		{"/", "home/u/x", "/data/x"}, {"/etc", "x", "x"}, {"/etc", "../tmp/x", "/x"},
		{"", "x", "x"}, {"/a", "", ""}, {"/etc", "/a", "/b/c"},
	} {
		if got := rs.From(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %s becomes %s, want %s", c[1], c[0], got, c[2])
		}
	}
	root, _ := ParseRename("/=/sub")
	for name, want := range map[string]string{"/": "/sub", "/x": "/sub/x", "/../x": "/sub/x", "/x/../../y": "/sub/y",
		"/proc/self/fd/3": "/proc/self/fd/3", "/dev/shm/x": "/sub/dev/shm/x"} {
		if got := (Renames{root}).Path(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	if got := (Renames{root}).Path("/x/y"); got != "/sub/x/y" {
		t.Errorf("/x/y below /sub is %s", got)
	}
	for _, s := range []string{"", "/a", "a=/b", "/a=b"} {
		if _, err := ParseRename(s); err == nil {
			t.Errorf("%q is no rename", s)
		}
	}
}
