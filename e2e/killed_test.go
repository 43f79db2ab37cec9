// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// TestKilledCommands kills each command that makes files at moments spread over its run and
// runs it again: that succeeds, and only what the command makes is there in the end. What a
// killed run leaves under the name of its result is whole.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	iotape := testenv.Iotape(t)
	moments := 2
	if n, err := strconv.Atoi(os.Getenv("IOTAPE_REPEAT")); err == nil {
		moments = n
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "a.tape")
	record := exec.Command(iotape, "record", "--backend", "ptrace", "--no-index", "--keep-stream", "-o", source, "--",
		"sh", "-c", "for i in $(seq 1000); do echo $i > f$i; done; cat f*")
	record.Dir = t.TempDir()
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	for _, tt := range []struct {
		out     string // what it makes: a file, a tape or a directory
		command string
		more    []string // other names that it makes
	}{
		{"b.tape", "slice a.tape b.tape --filter 'op = read'", nil},
		{"b.tape", "merge a.tape a.tape -o b.tape", nil},
		{"b.tape", "anonymise a.tape b.tape --keys keys", []string{"keys"}},
		{"b.tape", "convert a.strace b.tape", nil},
		{"b.json.gz", "convert a.tape b.json.gz --to chrome", nil},
		{"b.strace", "convert a.tape b.strace", nil},
		{"b.script", "script a.tape -o b.script", nil},
		{"b.tape", "script --compile a.script -o b.tape", nil},
		{"b.html", "report a.tape -o b.html", nil},
		{"b.parquet", "query --parquet b.parquet a.tape 'SELECT * FROM events'", nil},
		{"a.tape", "index a.tape", nil},
		{"a.tape", "annotate a.tape", nil},
		{"b.tape", "repair a.stream -o b.tape", nil},
		{"b.tape", "seal a.stream -o b.tape", nil},
		{"b.tape", "convert a.opensnoop b.tape", nil},
		{"b.piped", "pipe --apply zstd:3 -o b.piped a.stream", nil},
		{"b.catalogue", "catalogue add --catalogue b.catalogue a.tape", nil},
		{"b.lake", "lake add --lake b.lake a.tape", nil},
		{"a.tape", "flow --decode a.tape", nil},
		{"a.tape", "ps a.tape", nil},
		{"a.tape", "serve a.tape --listen 127.0.0.1:0", nil},
	} {
		words := strings.Fields(tt.command)
		grows := slices.Contains([]string{"catalogue", "lake"}, words[0]) // another run adds to what is there
		t.Run(words[0]+" "+tt.out, func(t *testing.T) {
			t.Parallel()
			k := &killing{iotape: iotape, dir: t.TempDir(), command: tt.command, out: tt.out}
			k.prepare(t, source)
			names := k.names(t)
			whole := k.run(t, -1)
			k.check(t)
			for i := range moments {
				k.clear(t, names)
				k.run(t, whole*time.Duration(i+1)/time.Duration(moments+1))
				if _, err := os.Lstat(filepath.Join(k.dir, k.out)); err == nil && !grows {
					k.check(t) // it had its name before the kill
					if k.out != "a.tape" {
						if err := os.RemoveAll(filepath.Join(k.dir, k.out)); err != nil {
							t.Fatal(err)
						}
					}
				}
				k.run(t, -1)
				k.check(t)
				want := append(slices.Clone(names), tt.more...)
				if tt.out != "a.tape" {
					want = append(want, tt.out)
				}
				slices.Sort(want)
				if got := k.names(t); !slices.Equal(got, want) {
					t.Errorf("after the second run the directory has %q; want %q", got, want)
				}
			}
		})
	}
}

// killing is a command that is killed.
type killing struct {
	iotape, dir  string
	command, out string
}

// prepare copies what the command reads.
func (k *killing) prepare(t *testing.T, source string) {
	t.Helper()
	if out, err := exec.Command("cp", "-r", source, filepath.Join(k.dir, "a.tape")).CombinedOutput(); err != nil {
		t.Fatalf("copy the tape: %v\n%s", err, out)
	}
	for name, from := range map[string]string{
		"a.stream":    strings.TrimSuffix(source, ".tape") + ".stream",
		"a.opensnoop": "../format/snoop/testdata/opensnoop.txt",
	} {
		if strings.Contains(k.command, name) {
			if out, err := exec.Command("cp", from, filepath.Join(k.dir, name)).CombinedOutput(); err != nil {
				t.Fatalf("copy %s: %v\n%s", from, err, out)
			}
		}
	}
	for needed, command := range map[string]string{
		"a.strace": "convert a.tape a.strace",
		"a.script": "script a.tape -o a.script",
		"a.tape":   "index a.tape",
	} {
		if strings.Contains(k.command, " "+needed) && !(needed == "a.tape" && !strings.HasPrefix(k.command, "query")) {
			if out, err := k.shell(command).CombinedOutput(); err != nil {
				t.Fatalf("iotape %s: %v\n%s", command, err, out)
			}
		}
	}
}

func (k *killing) shell(command string) *exec.Cmd {
	cmd := exec.Command("sh", "-c", `exec "$0" `+command, k.iotape)
	cmd.Dir = k.dir
	return cmd
}

// run runs the command and kills it after some time, which is not negative. It returns how
// long it ran.
func (k *killing) run(t *testing.T, after time.Duration) time.Duration {
	t.Helper()
	cmd := k.shell(k.command)
	said := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = said, said
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after >= 0 {
		kill := time.AfterFunc(after, func() { cmd.Process.Kill() })
		defer kill.Stop()
	}
	serves := strings.HasPrefix(k.command, "serve")
	if serves && after < 0 { // it ends when it is told to
		eventually(func() bool { return strings.Contains(said.String(), "http://") })
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	err := cmd.Wait()
	if serves && after < 0 && strings.Contains(said.String(), "http://") {
		err = nil
	}
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (after < 0 || ok && !st.Signaled()) {
		t.Fatalf("iotape %s: %v\n%s", k.command, err, said.String())
	}
	return time.Since(start)
}

// check reads what the command has made.
func (k *killing) check(t *testing.T) {
	t.Helper()
	var argv []string
	switch filepath.Ext(k.out) {
	case ".tape":
		argv = []string{k.iotape, "check", k.out}
	case ".gz":
		argv = []string{"gzip", "-t", k.out}
	case ".script":
		argv = []string{k.iotape, "replay", "--script", k.out, "--dry-run"}
	case ".piped":
		argv = []string{k.iotape, "pipe", "--check", k.out}
	case ".catalogue":
		argv = []string{k.iotape, "catalogue", "check", "--catalogue", k.out}
	case ".lake":
		argv = []string{k.iotape, "query", "--lake", k.out, "SELECT count(*) FROM events"}
	case ".html":
		argv = []string{"grep", "-q", "</html>", k.out}
	case ".strace":
		argv = []string{"grep", "-q", "+++ exited with", k.out}
	case ".parquet":
		argv = []string{"sh", "-c", "tail -c 4 " + k.out + " | grep -q PAR1"}
	default:
		t.Fatalf("no check for %s", k.out)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = k.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s is not whole: %q: %v\n%s", k.out, argv, err, out)
	}
}

// names lists the directory of the command and the tape in it, without derived files.
func (k *killing) names(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, dir := range []string{"", "a.tape"} {
		entries, err := os.ReadDir(filepath.Join(k.dir, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			switch name := e.Name(); {
			case name == "index.json", name == "annotations", name == "timeline",
				filepath.Ext(name) == ".parquet" && dir != "":
			default:
				names = append(names, filepath.Join(dir, name))
			}
		}
	}
	slices.Sort(names)
	return names
}

// clear removes what earlier runs have made.
func (k *killing) clear(t *testing.T, keep []string) {
	t.Helper()
	for _, name := range k.names(t) {
		if !slices.Contains(keep, name) {
			if err := os.RemoveAll(filepath.Join(k.dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := k.names(t); !slices.Equal(got, keep) {
		t.Fatal(fmt.Errorf("the directory has %q; want %q", got, keep))
	}
}
