// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/tree"
)

// A row is a real program that is recorded once and replayed in every order.
type row struct {
	name  string
	needs []string // programs
	// prep and run are shell scripts (bash -eu), in an empty directory of the row's. What
	// run does is recorded. $ROOT is the module's directory.
	prep, run string
	as        string // the user that runs it; "" is root
	backend   string // that records; "" is ebpf
	// snapshot says that the recording has the state before: all of the tree is compared.
	snapshot bool
}

// orders are those that each tape is replayed in.
var orders = []string{"overlap", "resource"}

// repeat returns how often each replay is done: IOTAPE_REPEAT, or once.
func repeat(t *testing.T) int {
	text := os.Getenv("IOTAPE_REPEAT")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("IOTAPE_REPEAT=%s: it is to be a number from 1 on", text)
	}
	return n
}

// runRows records and replays each row. IOTAPE_KEEP names a directory for the tapes of
// those that fail.
func runRows(t *testing.T, rows []row) {
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	for i := range rows {
		t.Run(rows[i].name, func(t *testing.T) {
			testenv.Short(t, "records and replays a program")
			r := &rows[i]
			testenv.NeedProgram(t, r.needs...)
			e := newEnv(t, iotape, "", r.credential(t))
			e.cred = nil // of the directory only: root records
			r.recordAndReplay(t, e)
		})
	}
}

// recordAndReplay records a program and replays it in every order. What threads race for
// some tapes cannot tell (docs/replay.md): a tape of which a replay differs is followed
// by one more, and that has to agree.
func (r *row) recordAndReplay(t *testing.T, e *env) {
	tape := filepath.Join(e.dir, "x.tape")
	var first firstTry
	for range 2 {
		want := r.record(t, e, tape)
		again := first.tried
		first = firstTry{tried: true}
		for range repeat(t) {
			for _, order := range orders {
				t.Run(order, func(t *testing.T) {
					var f failer = t
					if !again {
						f = &first
					}
					r.replay(t, f, e, tape, into(t, filepath.Join(e.dir, "again-"+order)), order, want)
				})
			}
		}
		if again || len(first.said) == 0 {
			r.keep(t, "", tape)
			return
		}
		if dir := os.Getenv("IOTAPE_KEEP"); dir != "" {
			r.copy(t, filepath.Join(dir, r.name+"-first.tape"), tape)
		}
		t.Logf("recorded once more: %s", strings.Join(first.said, "; "))
		if err := os.RemoveAll(tape); err != nil {
			t.Fatal(err)
		}
	}
}

// failer is told what is wrong.
type failer interface {
	Errorf(format string, args ...any)
}

// firstTry keeps what is wrong with a first try.
type firstTry struct {
	tried bool
	said  []string
}

func (o *firstTry) Errorf(format string, args ...any) {
	o.said = append(o.said, fmt.Sprintf(format, args...))
}

// keep keeps the tape of a test that fails.
func (r *row) keep(t *testing.T, suffix, tape string) {
	dir := os.Getenv("IOTAPE_KEEP")
	if dir == "" {
		return
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		r.copy(t, filepath.Join(dir, r.name+suffix+".tape"), tape)
	})
}

func (r *row) copy(t *testing.T, to, tape string) {
	_ = os.RemoveAll(to)
	if err := os.CopyFS(to, os.DirFS(tape)); err != nil {
		t.Log(err)
	}
}

// record runs prep, records run, and returns the tree that was left.
//
// A recording that lost something, which page faults can while another thread changes the
// address space, is made once more.
func (r *row) record(t *testing.T, e *env, tape string) *tree.Manifest {
	t.Helper()
	for try := 1; ; try++ {
		want, lost := r.recordOnce(t, e, tape)
		if lost == "" {
			return want
		}
		if try == 3 {
			t.Errorf("record: %s", lost)
			return want
		}
		t.Logf("recorded once more: %s", lost)
		if err := os.RemoveAll(tape); err != nil {
			t.Fatal(err)
		}
	}
}

func (r *row) recordOnce(t *testing.T, e *env, tape string) (want *tree.Manifest, lost string) {
	t.Helper()
	work := into(t, filepath.Join(e.dir, "work"))
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if c := r.credential(t); c != nil {
		if err := os.Chown(work, int(c.Uid), int(c.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	r.script(t, e, r.prep)
	record := []string{e.iotape, "record", "-o", tape, "--backend", cmp.Or(r.backend, "ebpf"), "--no-index"}
	if r.snapshot {
		record = append(record, "--snapshot", work)
	}
	_, stderr := r.script(t, e, r.run, append(record, "--")...)
	if !strings.Contains(stderr, "lost 0") {
		lost = stderr[max(0, len(stderr)-200):]
	}
	want = take(t, work)
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	return want, lost
}

// script runs a phase of the row, behind a command if one is given.
func (r *row) script(t *testing.T, e *env, text string, behind ...string) (stdout, stderr string) {
	t.Helper()
	argv := []string{"env", "-C", filepath.Join(e.dir, "work"), "ROOT=" + testenv.ModuleRoot(t), "LC_ALL=C", "TZ=UTC",
		"HOME=" + filepath.Join(e.dir, "work")}
	argv = append(argv, behind...)
	if r.as != "" {
		argv = append(argv, "setpriv", "--reuid", r.as, "--regid", r.as, "--init-groups")
	}
	return e.run(t, append(argv, "bash", "-eu", "-o", "pipefail", "-c", "umask 022\n"+text)...)
}

// replay replays a tape into a directory and compares the tree there with the one that
// the recording left.
func (r *row) replay(t *testing.T, f failer, e *env, tape, into, order string, want *tree.Manifest) {
	t.Helper()
	v, stderr := e.replay(t, tape, "--into", into, "--verify", "--privileged-files", "--order", order)
	if v == nil {
		t.Fatalf("replay: %s", stderr)
	}
	v.Problems = slices.DeleteFunc(v.Problems, func(p string) bool { // ext4 and tmpfs have the same content without
		return strings.HasPrefix(p, "share content between files: ") ||
			strings.HasPrefix(p, "have files share what is equal: ")
	})
	v.report(f)
	r.compare(f, want, take(t, filepath.Join(into, e.dir, "work")))
}

// report fails the test if anything differed.
func (v *verdict) report(t failer) {
	if v.OK && len(v.Problems) == 0 {
		return
	}
	t.Errorf("%d results and %d paths differ; the target did not allow: %q", v.Different, len(v.Tree), v.Problems)
	for _, m := range v.Mismatches[:min(len(v.Mismatches), 10)] {
		t.Errorf("event %d, thread %d: %s %s: %s: expected %s, got %s", m.Seq, m.TID, m.Op, m.Path, m.Field, m.Expected,
			m.Got)
	}
	for _, o := range v.Omitted {
		t.Errorf("%d %s not made: %s", o.Count, o.Op, o.Why)
	}
	for _, d := range v.Tree[:min(len(v.Tree), 10)] {
		t.Errorf("%s: %s: expected %s, got %s", d.Path, d.Field, d.Expected, d.Got)
	}
}

// compare holds what a replay left against what the recording left, without what
// iotape itself says of it. Where the recording began with files, those that no call
// looked at are not in the replay's tree, and what no call told of them is not as it was.
func (r *row) compare(t failer, want, got *tree.Manifest) {
	opt := &tree.CompareOptions{}
	if r.prep != "" && !r.snapshot {
		opt.Ignore = tree.KnownListing | tree.KnownHash | tree.KnownSize | tree.KnownOwner | tree.KnownMode |
			tree.KnownXattrs | tree.KnownLinks
		want, got = got, want
	}
	for i, d := range tree.Compare(want, got, opt) {
		if i == 10 {
			t.Errorf("and more")
			break
		}
		t.Errorf("trees differ: %v", d)
	}
	if len(got.Entries) < 2 {
		t.Errorf("the replay left nothing to compare")
	}
}

// verdict is what the tests read of `iotape replay --json`.
type verdict struct {
	OK, Aborted                  bool
	Events, Different, Following uint64
	Mismatches                   []mismatch
	Kinds                        []struct {
		mismatch
		Count uint64
	}
	Tree        []struct{ Path, Field, Expected, Got string }
	Problems    []string
	OverlayDirs []string `json:"overlay_dirs"`
	Omitted     []struct {
		Op, Why string
		Count   uint64
	}
}

type mismatch struct {
	Seq                            uint64
	TID                            uint32
	Op, Path, Field, Expected, Got string
}

// replay replays with --json; the verdict is nil if there is none, and stderr says why.
func (e *env) replay(t *testing.T, args ...string) (v *verdict, stderr string) {
	t.Helper()
	stdout, stderr, err := e.try(t, append([]string{e.iotape, "replay", "--json"}, args...)...)
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	v = &verdict{}
	if json.Unmarshal([]byte(stdout), v) != nil {
		return nil, fmt.Sprintf("%v\n%s%s", err, stdout, stderr)
	}
	if (err == nil) != v.OK {
		t.Errorf("exit status %v, but ok is %v", err, v.OK)
	}
	return v, stderr
}

// into returns a target, which goes after the test.
func into(t *testing.T, dir string) string {
	t.Helper()
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// credential is that of the user that runs the row; nil for root.
func (r *row) credential(t *testing.T) *syscall.Credential {
	t.Helper()
	if r.as == "" {
		return nil
	}
	u, err := user.Lookup(r.as)
	if err != nil {
		t.Fatalf("%v (scripts/setup.sh --test installs what tests need)", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}
