// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// psProcess is what the test looks at of iotape ps --json.
type psProcess struct {
	Programs []struct{ Args []string }
	Exit     *int `json:"exit_status"`
	Signal   string
	Running  bool
	Calls    int
	Written  int `json:"written_bytes"`
	Children []psProcess
}

// ended says how a process and its descendants ended.
func (p *psProcess) ended() string {
	text := "none"
	if n := len(p.Programs); n > 0 {
		text = strings.Join(p.Programs[n-1].Args, " ")
	}
	switch {
	case p.Running:
		text += " runs"
	case p.Signal != "":
		text += " " + p.Signal
	case p.Exit != nil:
		text += " " + string(rune('0'+*p.Exit))
	}
	for i := range p.Children {
		text += " [" + p.Children[i].ended() + "]"
	}
	return text
}

// TestPS draws processes that fork, execute programs, and end with a status and by a signal.
func TestPS(t *testing.T) {
	t.Parallel()
	forBackends(t, func(t *testing.T, backend string) {
		e := runEnv(t)
		const program = `sh -c 'kill -9 $$'; (exit 3)
sh -c 'printf 12345 >out; sh -c "exit 5"; true'
exec sh -c "exit 4"`
		_, stderr, err := e.try(t, e.iotape, "record", "-o", "a.tape", "--backend", backend, "--", "sh", "-c", program)
		if err == nil {
			t.Fatalf("status 0, want 4\n%s", stderr)
		}
		out, _ := e.run(t, e.iotape, "ps", "--json", "a.tape")
		var v struct {
			Processes []psProcess
			Total     int
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatal(err)
		}
		if len(v.Processes) != 1 || v.Total != 5 {
			t.Fatalf("%d processes, %d of them without a parent, want 5 and 1\n%s", v.Total, len(v.Processes), out)
		}
		want := `sh -c exit 4 4 [sh -c kill -9 $$ SIGKILL] [none 3] ` +
			`[sh -c printf 12345 >out; sh -c "exit 5"; true 0 [sh -c exit 5 5]]`
		if got := v.Processes[0].ended(); got != want {
			t.Errorf("tree\n%s, want\n%s", got, want)
		}
		if p := &v.Processes[0]; len(p.Programs) != 2 || len(p.Children) != 3 || p.Children[2].Written != 5 {
			t.Errorf("want 2 programs of the first process, and 5 bytes of its third child\n%s", out)
		}
		out, _ = e.run(t, e.iotape, "ps", "a.tape")
		contains(t, out, "├─ sh -c kill -9 $$\n")
		contains(t, out, "└─ sh -c printf 12345")
		contains(t, out, "SIGKILL")
	})
}
