// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// TestNotes writes notes from inside and from outside of recordings, and uses them.
func TestNotes(t *testing.T) {
	t.Parallel()
	for name, filter := range map[string]string{"all": "", "filtered": "op = write and path glob *out"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forBackends(t, func(t *testing.T, backend string) {
				e := runEnv(t)
				args := []string{e.iotape, "record", "-o", "noted.tape", "--backend", backend}
				if filter != "" {
					args = append(args, "--filter", filter)
				}
				const program = `test -r "iotape:note phase one"; echo 1 > out; test -r "iotape:note phase/two"
"$0" note --recording noted from outside 2> said && echo 22 > out; test -r "iotape:notes"`
				args = append(args, "--", "sh", "-c", program, e.iotape)
				if _, stderr, err := e.try(t, args...); err == nil {
					t.Fatalf("the last test of the program succeeded\n%s", stderr)
				}
				var got []string
				e.events(t, "noted.tape", func(ev *event.Event) {
					switch {
					case ev.Kind == event.NoteMark:
						got = append(got, ev.Note())
					case ev.Kind == event.Call && strings.HasPrefix(ev.Spec().Name, "write") && len(ev.Files) > 0 &&
						filepath.Base(ev.Files[0].Path) == "out":
						got = append(got, "write")
					}
				})
				want := "phase one|write|phase/two|from outside|write"
				if s := strings.Join(got, "|"); s != want {
					said, _ := os.ReadFile(filepath.Join(e.dir, "said"))
					t.Fatalf("notes and writes %s, want %s\n%s", s, want, said)
				}
				e.checkNotes(t)
			})
		})
	}
}

// checkNotes looks at the notes of noted.tape with each command that uses them.
func (e *env) checkNotes(t *testing.T) {
	t.Helper()
	const writes = "op = write and path glob *out"
	out, _ := e.run(t, e.iotape, "stat", "noted.tape", "--by-note", "--json", "--filter", writes)
	var v struct {
		Phases []struct {
			Note    string
			Calls   int
			Written int `json:"written_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Phases) != 4 || v.Phases[1].Written != 2 || v.Phases[2].Calls != 0 || v.Phases[3].Written != 3 {
		t.Errorf("phases %+v, want 2 bytes after \"phase one\", none after \"phase/two\", 3 after the last", v.Phases)
	}
	e.run(t, e.iotape, "slice", "noted.tape", "part.tape", "--between-notes", "phase one,from outside")
	out, _ = e.run(t, e.iotape, "print", "part.tape", "--filter", writes)
	if strings.Count(out, "write(") != 1 || !strings.Contains(out, `"1\n"`) {
		t.Errorf("the slice between the notes has the writes\n%s\nwant the first alone", out)
	}
	out, _ = e.run(t, e.iotape, "query", "--csv", "noted.tape",
		"SELECT note FROM events WHERE kind = 'note' ORDER BY seq")
	if want := "note\nphase one\nphase/two\nfrom outside\n"; out != want {
		t.Errorf("query says %q, want %q", out, want)
	}
	if said := e.fails(t, "slice", "noted.tape", "none.tape", "--from", "note:nothing"); !strings.Contains(said,
		`there is no note "nothing"; there are "phase one"`) {
		t.Errorf("a note that does not exist: %s", said)
	}
}

func TestNoteWithoutRecording(t *testing.T) {
	t.Parallel()
	e := runEnv(t)
	said := e.fails(t, "note", "--recording", "no such", "x")
	if !strings.Contains(said, "no such") && !strings.Contains(said, "no recording") {
		t.Errorf("a note without a recording: %s", said)
	}
}

// TestNoteOfOtherUser: root writes a note into the recording of a user, who keeps sockets in a directory of its own.
func TestNoteOfOtherUser(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	cred := testenv.NeedUser(t)
	dir := testenv.UserDir(t, cred)
	cmd := exec.CommandContext(t.Context(), testenv.IotapeFor(t, cred), "record", "--backend", "ptrace", "-o",
		"theirs.tape", "--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done")
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	root := runEnv(t)
	if !eventually(func() bool {
		_, _, err := root.try(t, root.iotape, "note", "--recording", "theirs", "of root")
		return err == nil
	}) {
		t.Error("root's note is refused")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	out, _ := root.run(t, root.iotape, "print", filepath.Join(dir, "theirs.tape"), "--filter", "kind = note")
	contains(t, out, `--- note "of root" ---`)
}
