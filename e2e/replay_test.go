// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/tree"
)

// inShort are the programs that run under -short too.
var inShort = []string{"cp-a", "failures", "git-basics", "pipeline"}

// asUser are those that are also recorded and replayed by an ordinary user.
var asUser = []string{"cp-a", "failures", "git-clone", "pipeline", "sqlite-wal"}

// variants are the ways of each: the state before is inferred from the trace, or
// a snapshot.
var variants = []struct {
	name, backend string
	snapshot      bool
	flags         []string // of replay
}{
	{"ebpf", "ebpf", false, nil},
	{"ptrace", "ptrace", false, []string{"--order", "resource"}},
	{"snapshot", "ebpf", true, []string{"--order", "resource", "--mmap", "native", "--uring", "native"}},
}

// TestReplay records each program, replays it into an empty directory with
// --verify, and compares the trees itself as well.
func TestReplay(t *testing.T) {
	t.Parallel()
	iotape := testenv.Iotape(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		if p.Name == "contend" {
			continue // some of its results no order of calls explains; replay/linearize tests it
		}
		for _, v := range variants {
			if p.Kernel && v.backend != "ebpf" {
				continue // which does not see all that the program does
			}
			t.Run(p.Name+"/"+v.name, func(t *testing.T) {
				if !slices.Contains(inShort, p.Name) || v.snapshot && p.Name != "git-basics" {
					testenv.Short(t, "records and replays a program")
				}
				t.Parallel()
				testenv.NeedProgram(t, p.Needs...)
				if v.backend == "ebpf" {
					testenv.NeedBPF(t)
				}
				e := newEnv(t, iotape, install, nil)
				e.recordAndReplay(t, &p, v.backend, v.snapshot, v.flags...)
			})
		}
	}
}

// TestReplayAsUser does the same without root.
func TestReplayAsUser(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "records and replays programs")
	cred := testenv.NeedUser(t)
	iotape := testenv.IotapeFor(t, cred)
	install := filepath.Join(testenv.UserDir(t, cred), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		if !slices.Contains(asUser, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			testenv.NeedProgram(t, p.Needs...)
			e := newEnv(t, iotape, install, cred)
			e.recordAndReplay(t, &p, "ptrace", true)
		})
	}
}

// env is where one program is recorded and replayed.
type env struct {
	iotape, install string
	dir             string // around everything
	cred            *syscall.Credential
	vars            []string // of the environment of iotape, beside the test's own
}

func newEnv(t *testing.T, iotape, install string, cred *syscall.Credential) *env {
	dir := t.TempDir()
	if cred != nil {
		dir = testenv.UserDir(t, cred)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &env{iotape: iotape, install: install, dir: dir, cred: cred}
}

// run runs a command in the environment's directory and returns its output.
func (e *env) run(t *testing.T, argv ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := e.try(t, argv...)
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", argv, err, stdout, stderr)
	}
	return stdout, stderr
}

// environ returns the environment of a command; nil is the test's own.
func (e *env) environ() []string {
	if e.vars == nil {
		return nil
	}
	return append(os.Environ(), e.vars...)
}

func (e *env) try(t *testing.T, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = e.dir, &out, &errs, e.environ()
	if e.cred != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: e.cred}
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + e.dir, "USER=user", "LANG=C.UTF-8"}
	}
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func (e *env) recordAndReplay(t *testing.T, p *workload.Program, backend string, snapshot bool, flags ...string) {
	t.Helper()
	work, tape, again := filepath.Join(e.dir, "work"), filepath.Join(e.dir, "x.tape"), filepath.Join(e.dir, "again")
	e.run(t, "mkdir", work)
	e.run(t, p.Command(e.install, work, workload.Prep)...)

	record := []string{e.iotape, "record", "-o", tape, "--backend", backend}
	if snapshot {
		record = append(record, "--snapshot", work)
	}
	_, stderr := e.run(t, append(append(record, "--"), p.Command(e.install, work, workload.Run)...)...)
	if !strings.Contains(stderr, "lost 0") {
		t.Errorf("record: %s", stderr)
	}
	want := take(t, work)

	stdout, stderr, err := e.try(t, append([]string{e.iotape, "replay", tape, "--into", again, "--verify",
		"--privileged-files"}, flags...)...)
	if err != nil {
		t.Errorf("replay: %v\n%s%s", err, stdout, stderr)
	}
	opt := &tree.CompareOptions{}
	if e.cred != nil {
		opt.Ignore |= tree.KnownOwner
	}
	got := take(t, filepath.Join(again, work))
	if !snapshot {
		// The replay has what the program touched: all of it must be as it was left,
		// but for content that the program never saw. That is for --verify to say.
		opt.Ignore |= tree.KnownListing | tree.KnownHash | tree.KnownSize | tree.KnownOwner | tree.KnownMode |
			tree.KnownXattrs | tree.KnownLinks
		want, got = got, want
	}
	for i, d := range tree.Compare(want, got, opt) {
		if i == 10 {
			t.Error("and more")
			break
		}
		t.Errorf("trees differ: %v", d)
	}
	e.perfect(t, tape)
	e.run(t, e.iotape, "check", tape)
}

func take(t *testing.T, dir string) *tree.Manifest {
	t.Helper()
	m, err := tree.Take(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// perfect holds the tape's own account of its quality against none of it missing.
func (e *env) perfect(t *testing.T, tape string) {
	t.Helper()
	stdout, _ := e.run(t, e.iotape, "stat", "--json", tape)
	var s struct {
		Calls   uint64
		Quality struct {
			Lost    uint64 `json:"lost_records"`
			Marks   uint64 `json:"loss_marks"`
			Missing uint64 `json:"missing_bytes"`
			Late    uint64
			Damaged uint64 `json:"damaged_blocks"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatal(err)
	}
	if q := s.Quality; s.Calls == 0 || q.Lost+q.Marks+q.Missing+q.Late+q.Damaged > 0 {
		t.Errorf("calls %d, quality %+v", s.Calls, q)
	}
}
