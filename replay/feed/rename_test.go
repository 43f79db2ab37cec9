package feed

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
		"/home/u/x": "/data/x", "/home/u": "/data", "/home/user": "/home/user", "/tmp/x/y": "/x/y", "/a/b": "/b/c/b", "a/b": "a/b", "": "", "/tmp": "/",
	} {
		if got := rs.Path(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	root, _ := ParseRename("/=/sub")
	if got := (Renames{root}).Path("/x/y"); got != "/sub/x/y" {
		t.Errorf("/x/y below /sub is %s", got)
	}
	for _, s := range []string{"", "/a", "a=/b", "/a=b"} {
		if _, err := ParseRename(s); err == nil {
			t.Errorf("%q is no rename", s)
		}
	}
}
