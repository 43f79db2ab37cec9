// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// moreKinds are further rows of TestReplayKinds.
var moreKinds = []row{
	{name: "a bind mount by open_tree", run: python(`
os.mkdir('src'); os.mkdir('dst'); put('src/a', 'a')
tree = libc.syscall(428, -100, b'src', 1)
assert tree >= 0
os.close(os.open('through', os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=tree))
assert libc.syscall(429, tree, b'', -100, b'dst', 4) == 0
os.close(tree); put('dst/b', 'b'); os.rename('dst/a', 'dst/c')
assert libc.mount(b'none', b'dst', None, 32 | 1 | 4096, None) == 0
fails(lambda: put('dst/no', 'no'))
subprocess.check_call(['umount', 'dst'])
put('dst/left', 'l')
`)},
	{name: "outside the root directory", run: python(`
os.mkdir('root'); put('root/f', 'f')
top, here = os.open('.', os.O_RDONLY), os.getcwd()
os.chroot('root')
os.fchdir(top)
room = ctypes.create_string_buffer(4096)
assert libc.syscall(79, room, 4096) > 0 and room.value == b'(unreachable)' + here.encode()
put('outside', 'o'); os.mkdir('d'); put('../' + os.path.basename(here) + '/d/x', 'x'); os.link('root/f', 'd/link')
up = os.open('../' * 20, os.O_RDONLY)
put('/in', 'i'); os.stat(here[1:] + '/outside', dir_fd=up)
os.mkdir(here[1:] + '/d/e', dir_fd=up); os.listdir(os.open(here[1:], os.O_RDONLY, dir_fd=up))
`)},
	{name: "a directory that was renamed while open", run: python(`
os.makedirs('a/b')
d = os.open('a/b', os.O_RDONLY)
os.chdir('a')
os.rename('../a', '../z'); put('here', '1')
os.close(os.open('in', os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=d))
os.rename('b', '../top'); put('/proc/self/fd/%d/x' % d, 'x')
os.getcwd(); os.listdir(d); os.listdir('../top')
`)},
}

// TestReplayListsOnBtrfs replays a listing that does not have what was made after the directory was
// opened: btrfs has only the names of that time.
func TestReplayListsOnBtrfs(t *testing.T) {
	testenv.Short(t, "records and replays programs on a file system")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := &env{iotape: testenv.Iotape(t), dir: testenv.MountImage(t, "btrfs", 512)}
	for _, r := range moreKinds {
		r.snapshot = true
		t.Run(r.name, func(t *testing.T) { r.onceInto(t, e) })
	}
}

// TestReplayOmitsOverlay holds a replay to say that it does not make the upper directory of an overlay.
func TestReplayOmitsOverlay(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	for _, c := range []struct {
		name, options, prep string
		want                map[string]uint64
	}{
		{"upper directory", "upperdir=up,workdir=work,", "put('m/a', 'new'); os.unlink('m/b')",
			map[string]uint64{"openat": 1, "unlink": 1}},
		{"read-only", "", "", map[string]uint64{}},
	} {
		r := row{name: c.name, snapshot: true, run: python(`
for d in 'low', 'low2', 'up', 'work', 'm': os.mkdir(d)
put('low/a', 'a'); put('low/b', 'b')
o = b'` + c.options + `lowerdir=low:low2'
assert libc.mount(b'o', b'm', b'overlay', 0, o) == 0
os.listdir('m'); open('m/a').read()
` + c.prep + `
libc.umount2(b'm', 2)
`)}
		tape := filepath.Join(t.TempDir(), "x.tape")
		r.record(t, e, tape)
		v, stderr := e.replay(t, tape, "--into", filepath.Join(t.TempDir(), "again"))
		if v == nil {
			t.Fatal(stderr)
		}
		got := map[string]uint64{}
		for _, o := range v.Omitted {
			got[o.Op] = o.Count
		}
		if v.OK != (len(c.want) == 0) || !maps.Equal(got, c.want) {
			t.Errorf("%s: ok %v, omitted %v, want %v", c.name, v.OK, got, c.want)
		}
	}
}
