// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// secretProgram makes and moves secrets: a private key, a password in a configuration, in two writes of one file, with
// some time between them too, in its environment, in arguments, and through a pipe. Then it waits.
const secretProgram = `
umask 077
{ printf 'host=db pass'; printf 'word=hunter2-%s\n' config; printf 'port=1\n'; } > work/config
cat work/config | cat > work/copy
PGPASSWORD=hunter2-environ /bin/true
/bin/echo 'Authorization: Bearer hunter2.argument' > work/header
printf 'key AKIAHUNTER2HUNTER2AB.\n' >> work/header
if command -v ssh-keygen > /dev/null; then ssh-keygen -q -t ed25519 -N '' -f work/key; cat work/key > work/key.copy; fi
dd if=/dev/zero of=work/large bs=1M count=20 2> /dev/null
x=zq; printf "password=${x}7first" > work/halves
touch work/ready
read go
printf "${x}7second\n" >> work/halves
`

// TestRedact records a program with secrets: none is in a file of the recording, during or after it, lengths are as
// they were, and a replay does what the program did.
func TestRedact(t *testing.T) {
	t.Parallel()
	forWays(t, func(t *testing.T, way string, args []string) {
		e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
		if err := os.Mkdir(filepath.Join(e.dir, "work"), 0o755); err != nil {
			t.Fatal(err)
		}
		// The program's text is an argument of the shell: a pattern masks its words there.
		patterns := "builtin\nhunter2[-.]?[a-z]*\nHUNTER2HUNTER[A-Z0-9]*\n"
		if err := os.WriteFile(filepath.Join(e.dir, "patterns"), []byte(patterns), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"record", "-o", "a.tape", "--redact", "patterns", "--keep-stream"}, args...)
		args = append(args, "--", "sh", "-c", secretProgram)
		cmd := exec.Command(e.iotape, args...)
		var said bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = e.dir, &said, &said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
		if !eventually(func() bool { _, err := os.Stat(filepath.Join(e.dir, "work/ready")); return err == nil }) {
			t.Fatalf("the program does not get ready:\n%s", said.String())
		}
		secrets := []string{"hunter2-config", "hunter2-environ", "hunter2.argument", "HUNTER2HUNTER",
			"zq7first", "zq7second"}
		if key, err := os.ReadFile(filepath.Join(e.dir, "work/key")); err == nil {
			secrets = append(secrets, strings.Split(string(key), "\n")[1:4]...)
		} else {
			t.Log("there is no ssh-keygen: no private key is tried")
		}
		lookFor(t, filepath.Join(e.dir, "a.tape.partial"), secrets)
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("record: %v\n%s", err, said.String())
		}
		contains(t, said.String(), "secrets masked")
		for _, name := range []string{"a.tape", "a.stream"} {
			lookFor(t, filepath.Join(e.dir, name), secrets)
		}
		e.run(t, e.iotape, "check", "a.tape")
		text, _ := e.run(t, e.iotape, "print", "a.tape")
		for _, s := range secrets {
			if strings.Contains(text, s) {
				t.Errorf("iotape print shows %q", s)
			}
		}
		contains(t, text, "host=db")
		manifest, err := os.ReadFile(filepath.Join(e.dir, "a.tape", "manifest.json"))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(manifest), `"redact"`)
		e.run(t, e.iotape, "replay", "--verify", "a.tape", "--into", "again")
		config := filepath.Join(e.dir, "work/config")
		was, err := os.Stat(config)
		if err != nil {
			t.Fatal(err)
		}
		is, err := os.Stat(filepath.Join(e.dir, "again", config))
		if err != nil || is.Size() != was.Size() {
			t.Errorf("replayed: %v, %v; want a file of %d bytes", is, err, was.Size())
		}
	})
}

// TestRedactOfTracers has two tracers of one capture, of which one masks: its tape has no secret, and the other's has.
func TestRedactOfTracers(t *testing.T) {
	t.Parallel()
	e := &env{iotape: testenv.Iotape(t), dir: t.TempDir()}
	const config = `
[capture]
backend = "interpose"

[[tracer]]
name = "masked"
[tracer.output]
redact = "patterns"
keep-stream = true

[[tracer]]
name = "whole"
`
	for name, text := range map[string]string{"a.toml": config, "patterns": "hunter2-[a-z]*\n"} {
		if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const program = `x=hunter; echo password=${x}2-content > file; cat file`
	_, said := e.run(t, e.iotape, "run", "a.toml", "--", "sh", "-c", program)
	contains(t, said, "iotape: masked: 3 secrets masked")
	for _, name := range []string{"masked.tape", "masked.stream"} {
		lookFor(t, filepath.Join(e.dir, name), []string{"hunter2-content"})
	}
	text, _ := e.run(t, e.iotape, "print", "whole.tape")
	contains(t, text, "hunter2-content")
	text, _ = e.run(t, e.iotape, "print", "masked.tape")
	contains(t, text, "password=")
	for _, tt := range []struct{ key, want string }{
		{"[tracer.stream]\ncontent = \"hash\"", "content of which only hashes or signatures are kept cannot be masked"},
		{"[tracer.aggregate]\nby = \"op\"", "an aggregate has sums"},
	} {
		text := "[[tracer]]\nname = \"a\"\n" + tt.key + "\n[tracer.output]\nredact = \"builtin\"\n"
		if err := os.WriteFile(filepath.Join(e.dir, "bad.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, said, err := e.try(t, e.iotape, "run", "--check", "bad.toml")
		if err == nil || !strings.Contains(said, tt.want) {
			t.Errorf("%s: %v, %s; want %q", tt.key, err, said, tt.want)
		}
	}
}

// lookFor looks for words in all files below a name.
func lookFor(t *testing.T, root string, words []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(name)
		for _, w := range words {
			if bytes.Contains(b, []byte(w)) {
				t.Errorf("%s has %q", name, w)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files were looked at: %v", files, err)
	}
}

// TestRedactRefused asks for what would keep secrets.
func TestRedactRefused(t *testing.T) {
	iotape := testenv.Iotape(t)
	for _, tt := range []struct{ args, want string }{
		{"--redact builtin --content hash", "--redact cannot mask content of which only hashes"},
		{"--redact builtin --snapshot .", "--redact does not mask what --snapshot stores"},
		{"--redact /nowhere/patterns", "read patterns"},
	} {
		args := append([]string{"record"}, strings.Fields(tt.args)...)
		cmd := exec.Command(iotape, append(args, "--", "true")...)
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err == nil || !bytes.Contains(out, []byte(tt.want)) {
			t.Errorf("record %s: %v, %s; want %q", tt.args, err, out, tt.want)
		}
	}
}
