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

// TestReplayByOrdinaryUser replays what root did as another user: that owners differ is said once.
func TestReplayByOrdinaryUser(t *testing.T) {
	testenv.Short(t, "records a program")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "python3")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	tape := filepath.Join(e.dir, "x.tape")
	ofSeveralUsers.record(t, e, tape)

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
	once(t, "lines", strings.Split(stdout, "\n"), []string{`^left off, .* 3 changes of owners`})
}
