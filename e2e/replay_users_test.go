// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// ofSeveralUsers changes owners, as root, and makes files as others.
var ofSeveralUsers = row{snapshot: true, run: python(`
os.mkdir('d'); os.chown('d', 0, 1000); os.chmod('d', 0o2775)
put('d/f', 'x'); os.chown('d/f', 1234, 1001)
try: os.setxattr('d/f', 'trusted.t', b'q')
except OSError: pass
os.listxattr('d/f'); os.stat('d/f')
if os.fork() == 0:
    os.setgid(1000); os.setuid(1000)
    put('d/mine', 'm'); os.stat('d/mine')
    fails(lambda: put('e', ''), lambda: os.unlink('d/none'))
    os._exit(0)
os.wait()
os.chown('d/mine', 7, 7)
`)}

// TestReplayMapsUsers replays what several users did as others.
func TestReplayMapsUsers(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	tape := filepath.Join(e.dir, "x.tape")
	ofSeveralUsers.record(t, e, tape)
	again := filepath.Join(e.dir, "again")
	v, stderr := e.replay(t, tape, "--into", again, "--verify", "--uid-map", "0:5000,1000:6000:500", "--gid-map",
		"1000:77")
	if v == nil {
		t.Fatal(stderr)
	}
	v.report(t)
	for name, want := range map[string][2]uint32{"d": {5000, 77}, "d/f": {6234, 1001}, "d/mine": {7, 7}} {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(again, e.dir, "work", name), &st); err != nil {
			t.Fatal(err)
		}
		if st.Uid != want[0] || st.Gid != want[1] {
			t.Errorf("%s is of %d:%d, want %d:%d", name, st.Uid, st.Gid, want[0], want[1])
		}
	}
	_, stderr = e.replay(t, tape, "--into", again+"2", "--uid-map", "0-5")
	if !strings.Contains(stderr, "--uid-map") {
		t.Errorf("a map that is none: %s", stderr)
	}
}

// accessLists sets access lists that name others.
var accessLists = row{snapshot: true, prep: python(`
put('before', '')
os.setxattr('before', 'system.posix_acl_access', struct.pack('<I' + 'HHI' * 5,
    2, 1, 6, 2**32-1, 2, 7, 1234, 4, 4, 2**32-1, 16, 7, 2**32-1, 32, 4, 2**32-1))
`), run: python(`
put('f', 'x'); os.mkdir('d')
def entries(*named):
    every = (1, 7, 2**32-1), *named, (4, 4, 2**32-1), (8, 6, 77), (16, 7, 2**32-1), (32, 4, 2**32-1)
    return struct.pack('I', 2) + b''.join(struct.pack('HHI', *e) for e in every)
access, default = 'system.posix_acl_access', 'system.posix_acl_default'
os.setxattr('f', access, entries((2, 7, 1234), (2, 5, 4321)))
os.setxattr('d', default, entries((2, 6, 99))); os.setxattr('d', access, entries())
put('d/in', 'i'); os.mkdir('d/sub'); put('d/sub/x', 'x')
for name in 'before', 'f', 'd', 'd/in', 'd/sub':
    os.stat(name)
    for a in os.listxattr(name):
        if a in (access, default):
            os.getxattr(name, a); libc.getxattr(name.encode(), a.encode(), None, 0)
os.removexattr('d/sub', default); os.chmod('f', 0o750); os.stat('f'); os.getxattr('f', access)
f = os.open('f', os.O_RDONLY); os.setxattr(f, access, entries((2, 1, 5)))
`)}

// TestReplayByOrdinaryUser replays what root did as another user: what only root can do is said once.
func TestReplayByOrdinaryUser(t *testing.T) {
	testenv.Short(t, "records programs")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	for _, c := range []struct {
		name string
		row  *row
		said string
	}{
		{"owners", &ofSeveralUsers, `^left off, .* 3 changes of owners`},
		{"access lists", &accessLists, `^left off, .* 4 access lists without their entries for others`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := &env{iotape: testenv.Iotape(t), dir: testenv.MountImage(t, "ext4", 64)}
			tape := filepath.Join(e.dir, "x.tape")
			c.row.record(t, e, tape)

			cred := (&row{as: "nobody"}).credential(t)
			user := newEnv(t, e.iotape, "", cred)
			copied := filepath.Join(user.dir, "x.tape")
			if err := os.CopyFS(copied, os.DirFS(tape)); err != nil {
				t.Fatal(err)
			}
			if err := filepath.WalkDir(copied, func(name string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Chown(name, int(cred.Uid), int(cred.Gid))
			}); err != nil {
				t.Fatal(err)
			}
			into := filepath.Join(user.dir, "again")
			v, stderr := user.replay(t, copied, "--into", into, "--verify")
			if v == nil {
				t.Fatal(stderr)
			}
			v.report(t)
			stdout, _ := user.run(t, e.iotape, "replay", copied, "--into", into+"2", "--verify")
			once(t, "lines", strings.Split(stdout, "\n"), []string{c.said})
		})
	}
}
