// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
)

// killMoments returns at how many moments a test kills what it is about, if it is not said otherwise.
func killMoments(most int) int {
	if n, err := strconv.Atoi(os.Getenv("IOTAPE_REPEAT")); err == nil {
		return n
	}
	if testing.Short() {
		return min(most, 2)
	}
	return most
}

// TestKilledRecordings kills what records at moments spread over its run, and runs it again: that succeeds, or says
// which command makes a tape of what is left, which does so.
func TestKilledRecordings(t *testing.T) {
	t.Parallel()
	const program = "for i in 1 2 3 4 5; do echo $i >f$i; done"
	for name, command := range map[string]string{
		"record":   "record --backend ptrace -o a.tape -- sh -c '" + program + "'",
		"trace":    "trace --backend ptrace -o a.tape -- sh -c '" + program + "'",
		"run":      "run a.toml",
		"discover": "discover -o a.tape -- sh -c '" + program + "'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := time.Duration(0)
			moments := killMoments(6)
			for i := range moments + 1 {
				e := runEnv(t)
				e.write(t, "a.toml", "[input]\ncommand = ['sh', '-c', '"+program+"']\n[capture]\nbackend = 'ptrace'\n"+
					"[[tracer]]\nname = 'a'\n")
				start := time.Now()
				cmd := exec.Command("sh", "-c", `exec "$0" `+command, e.iotape)
				cmd.Dir, cmd.Env = e.dir, e.environ()
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if i > 0 {
					after := whole * time.Duration(i) / time.Duration(moments+1)
					kill := time.AfterFunc(after, func() { cmd.Process.Kill() })
					defer kill.Stop()
				}
				err := cmd.Wait()
				if whole = max(whole, time.Since(start)); i == 0 && err != nil {
					t.Fatal(err)
				}
				if _, err := os.Lstat(filepath.Join(e.dir, "a.tape")); err == nil { // it had its name before the kill
					e.run(t, e.iotape, "check", "a.tape")
					continue
				}
				_, said, err := e.try(t, "sh", "-c", `exec "$0" `+command, e.iotape)
				if err != nil {
					contains(t, said, "iotape repair a.tape.partial")
					_, text, _ := e.try(t, e.iotape, "repair", "a.tape.partial")
					if strings.Contains(text, "nothing was recorded") {
						continue
					}
				}
				e.run(t, e.iotape, "check", "a.tape")
			}
		})
	}
}

// TestKilledNote kills iotape note, and recorders that get notes, at random moments. The tape has a note whole or not
// at all, and it has each that iotape note has confirmed.
func TestKilledNote(t *testing.T) {
	t.Parallel()
	text := func(i int) string { return fmt.Sprintf("%d %s.", i, strings.Repeat("note", 1000)) }
	begin := func(e *env) *exec.Cmd {
		cmd := exec.Command(e.iotape, "record", "--backend", "ptrace", "-o", "a.tape", "--", "sh", "-c",
			"touch begun; until [ -e stop ]; do sleep 0.01; done")
		cmd.Dir, cmd.Env = e.dir, e.environ()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		if !eventually(func() bool { _, err := os.Stat(filepath.Join(e.dir, "begun")); return err == nil }) {
			t.Fatal("the recording does not begin")
		}
		return cmd
	}
	// A recording is named by its process: other tests record a.tape, too, and root can write into theirs.
	note := func(e *env, recorder *exec.Cmd, i int) *exec.Cmd {
		cmd := exec.Command(e.iotape, "note", "--recording", strconv.Itoa(recorder.Process.Pid), text(i))
		cmd.Dir, cmd.Env = e.dir, e.environ()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	check := func(t *testing.T, e *env, confirmed map[int]bool) {
		t.Helper()
		seen := map[string]int{}
		e.events(t, "a.tape", func(ev *event.Event) {
			if ev.Kind == event.NoteMark {
				seen[ev.Note()]++
			}
		})
		for got, n := range seen {
			i, err := strconv.Atoi(strings.Fields(got)[0])
			if err != nil || n != 1 || got != text(i) {
				t.Errorf("the tape has %d times a note of %d bytes: %.20q", n, len(got), got)
			}
		}
		for i := range confirmed {
			if seen[text(i)] != 1 {
				t.Errorf("note %d was confirmed, and the tape does not have it", i)
			}
		}
	}
	t.Run("note", func(t *testing.T) {
		e, confirmed := runEnv(t), map[int]bool{}
		recorder := begin(e)
		for i := range killMoments(12) {
			cmd := note(e, recorder, i)
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			_ = cmd.Process.Kill()
			confirmed[i] = cmd.Wait() == nil
			if !confirmed[i] {
				delete(confirmed, i)
			}
		}
		e.write(t, "stop", "")
		if err := recorder.Wait(); err != nil {
			t.Fatal(err)
		}
		check(t, e, confirmed)
	})
	t.Run("recorder", func(t *testing.T) {
		for i := range killMoments(6) {
			e, confirmed := runEnv(t), map[int]bool{}
			recorder := begin(e)
			var notes []*exec.Cmd
			for j := range 3 {
				notes = append(notes, note(e, recorder, j))
			}
			time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
			_ = recorder.Process.Kill()
			_ = recorder.Wait()
			e.write(t, "stop", "")
			for j, cmd := range notes {
				if cmd.Wait() == nil {
					confirmed[j] = true
				}
			}
			repaired(t, e.dir)
			if check(t, e, confirmed); t.Failed() {
				t.Fatalf("in round %d", i)
			}
		}
	})
}
