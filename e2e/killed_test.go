// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	moments := killMoments(2)
	dir := t.TempDir()
	source := filepath.Join(dir, "a.tape")
	record := exec.Command(iotape, "record", "--backend", "ptrace", "--no-index", "--keep-stream", "-o", source, "--",
		"sh", "-c", "for i in $(seq 1000); do echo $i > f$i; done; cat f*")
	record.Dir = t.TempDir()
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	checkCommands(t)
	for _, tt := range killedCommands {
		words := strings.Fields(tt.command)
		name := words[0] + " " + tt.out
		if tt.before != "" || words[0] == "archive" {
			name = words[0] + " " + words[1] + " " + tt.out
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &killing{iotape: iotape, dir: t.TempDir(), killedCommand: tt}
			k.prepare(t, source)
			names := k.names(t)
			k.first(t)
			whole := k.run(t, -1)
			k.check(t)
			for i := range moments {
				k.clear(t, names)
				k.first(t)
				k.run(t, whole*time.Duration(i+1)/time.Duration(moments+1))
				if _, err := os.Lstat(filepath.Join(k.dir, k.out)); err == nil && !k.grows {
					if k.removed {
						k.removable(t)
					} else {
						k.check(t) // it had its name before the kill
					}
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

// killedCommand is a command that TestKilledCommands kills.
type killedCommand struct {
	out     string // what it makes: a file, a tape or a directory
	command string
	more    []string // other names that it makes
	before  string   // a command that runs before it, in an empty directory
	grows   bool     // what a killed run has made is part of what the next one makes
	status  int      // of a run that succeeds
	removed bool     // what a killed run leaves has to be removed, which the next one says
}

var killedCommands = []killedCommand{
	{out: "b.tape", command: "slice a.tape b.tape --filter 'op = read'"},
	{out: "b.tape", command: "merge a.tape a.tape -o b.tape"},
	{out: "b.tape", command: "anonymise a.tape b.tape --keys keys", more: []string{"keys"}},
	{out: "b.tape", command: "reveal anon.tape b.tape --keys anon.keys"},
	{out: "b.tape", command: "convert a.strace b.tape"},
	{out: "b.json.gz", command: "convert a.tape b.json.gz --to chrome"},
	{out: "b.strace", command: "convert a.tape b.strace"},
	{out: "b.script", command: "script a.tape -o b.script"},
	{out: "b.tape", command: "script --compile a.script -o b.tape"},
	{out: "b.html", command: "report a.tape -o b.html"},
	{out: "b.html", command: "compare a.tape --on x=X --on y=Y --html b.html"},
	{out: "b.parquet", command: "query --parquet b.parquet a.tape 'SELECT * FROM events'"},
	{out: "b.json", command: "query --json -o b.json a.tape 'SELECT * FROM events ORDER BY seq'"},
	{out: "a.tape", command: "index a.tape"},
	{out: "a.tape", command: "annotate a.tape"},
	{out: "b.tape", command: "repair a.stream -o b.tape"},
	{out: "b.tape", command: "repair d.tape -o b.tape", status: 1},
	{out: "b.tape", command: "seal a.stream -o b.tape"},
	{out: "b.tape", command: "convert a.opensnoop b.tape"},
	{out: "b.stream", command: "raw --build b.stream a.txt"},
	{out: "b.piped", command: "pipe --apply zstd:3 -o b.piped a.stream"},
	{out: "b.catalogue", command: "catalogue add --catalogue b.catalogue a.tape", grows: true},
	{out: "b.catalogue", command: "catalogue compact --catalogue b.catalogue", grows: true,
		before: "catalogue add --catalogue b.catalogue a.tape"},
	{out: "b.lake", command: "lake add --lake b.lake a.tape", grows: true},
	{out: "b.lake", command: "lake compact --lake b.lake", grows: true, before: "lake add --lake b.lake a.tape"},
	{out: "b.lake", command: "lake expire --lake b.lake --keep 1d", grows: true,
		before: "lake add --lake b.lake a.tape"},
	{out: "b", command: "skeleton a.tape b", removed: true},
	{out: "b", command: "replay a.tape --into b", removed: true},
	{out: "b", command: "man b", grows: true},
	{out: "x.tape", command: "archive get --from store x.tape -o ."},
	{out: "b.key", command: "keygen -o b.key"},
	{out: "b.nk", command: "collector enrol h7 --replace --data data -o b.nk", more: []string{"data", "old.nk"},
		before: "collector enrol h7 --data data -o old.nk"},
	{out: "a.tape", command: "flow --decode a.tape"},
	{out: "a.tape", command: "ps a.tape"},
	{out: "a.tape", command: "serve a.tape --listen 127.0.0.1:0"},
}

// killedElsewhere are commands that make files and are killed by other tests.
var killedElsewhere = map[string]string{
	"record": "TestKilledRecordings", "trace": "TestKilledRecordings", "run": "TestKilledRecordings",
	"mount": "TestMountKilled", "dump": "TestFlightKilled", "note": "TestKilledNote", "receive": "TestReceiveKilled",
	"discover": "TestKilledRecordings", "agent": "TestAgentsKilled",
}

// makeNoFiles are commands whose result is what they print, or what other processes make.
var makeNoFiles = strings.Fields("tail top tracers print stat tstat users patterns sessions explain-filter diff " +
	"check order fleet ops completion version help")

// checkCommands requires that each command is known to make files and be killed, or to make none.
func checkCommands(t *testing.T) {
	t.Helper()
	known := slices.Clone(makeNoFiles)
	for command := range killedElsewhere {
		known = append(known, command)
	}
	for _, c := range killedCommands {
		known = append(known, strings.Fields(c.command)[0])
	}
	e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
	help, _ := e.run(t, e.iotape, "--help")
	_, list, _ := strings.Cut(help, "\nRecord:\n")
	list, _, _ = strings.Cut(list, "\nFlags:\n")
	for line := range strings.Lines(list) {
		if name, ok := strings.CutPrefix(line, "  "); ok && !slices.Contains(known, strings.Fields(name)[0]) {
			t.Errorf("nothing is known of the files that iotape %s makes: add a row to killedCommands",
				strings.Fields(name)[0])
		}
	}
}

// killing is a command that is killed.
type killing struct {
	iotape, dir string
	killedCommand
	made string // what is in the result, where no other check is known
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
	for needed, script := range map[string]string{
		" d.tape":       "cp -r a.tape d.tape && truncate -s -100 d.tape/events",
		" --from store": "d=store/day=2026-11-22/host=db7 && mkdir -p $d && cp -r a.tape $d/x.tape",
		" --on x=X":     "mkdir X Y",
	} {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = k.dir
		if strings.Contains(k.command, needed) && cmd.Run() != nil {
			t.Fatal(script)
		}
	}
	for needed, command := range map[string]string{
		" a.strace":  "convert a.tape a.strace",
		" a.script":  "script a.tape -o a.script",
		" a.txt":     "raw " + strings.TrimSuffix(source, ".tape") + ".stream >a.txt",
		" anon.tape": "anonymise a.tape anon.tape --keys anon.keys",
		"query":      "index a.tape",
	} {
		if strings.Contains(k.command, needed) {
			if out, err := k.shell(command).CombinedOutput(); err != nil {
				t.Fatalf("iotape %s: %v\n%s", command, err, out)
			}
		}
	}
}

// first runs the command that is to run before.
func (k *killing) first(t *testing.T) {
	t.Helper()
	if k.before == "" {
		return
	}
	if out, err := k.shell(k.before).CombinedOutput(); err != nil {
		t.Fatalf("iotape %s: %v\n%s", k.before, err, out)
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
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && (after < 0 || ok && !st.Signaled()) &&
		st.ExitStatus() != k.status {
		t.Fatalf("iotape %s: %v\n%s", k.command, err, said.String())
	}
	return time.Since(start)
}

// removable requires that the command says how to remove what a killed run has left, if that is in its way.
func (k *killing) removable(t *testing.T) {
	t.Helper()
	if out, err := k.shell(k.command).CombinedOutput(); err != nil && !strings.Contains(string(out), "rm -r") {
		t.Errorf("iotape %s: %v\n%s", k.command, err, out)
	}
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
	case ".stream":
		argv = []string{"sh", "-c", `"$0" raw b.stream | cmp - a.txt`, k.iotape}
	case ".parquet":
		argv = []string{"sh", "-c", "tail -c 4 " + k.out + " | grep -q PAR1"}
	default:
		k.same(t)
		return
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = k.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s is not whole: %q: %v\n%s", k.out, argv, err, out)
	}
}

// same requires that the result has the files that it had the first time, of the same sizes.
func (k *killing) same(t *testing.T) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `find "$0" -printf '%P %y %m %s\n' | grep -v ' d ' | sort`, k.out)
	cmd.Dir = k.dir
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("list %s: %v\n%s", k.out, err, b)
	}
	if k.made == "" {
		k.made = string(b)
	}
	if string(b) != k.made {
		t.Fatalf("%s is not whole: it has\n%s\nand not\n%s", k.out, b, k.made)
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
