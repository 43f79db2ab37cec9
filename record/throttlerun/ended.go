// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// whatThreadsWereAt says of a command that was ended in what calls its threads were, and
// since when: as its tape has it, and, for calls that are not recorded, as they were seen
// at that time, on the monotonic clock. What happened later came of its end: a wait for a
// child that was killed before its parent takes its signal can return.
func whatThreadsWereAt(name string, over int64, calls map[uint32]string) string {
	t, err := trace.Open(name)
	if err != nil {
		return ": nothing is known of it"
	}
	defer t.Close()
	type key struct{ host, tid uint32 }
	type at struct {
		what  string
		since int64
		in    bool
	}
	last, order := map[key]at{}, []key(nil)
	for ev, err := range t.Events() {
		if err != nil {
			break
		}
		if ev.Enter > over {
			continue
		}
		k := key{ev.Host, ev.TID}
		if ev.Kind != event.Call {
			byItself := ev.Kind == event.Exited && ev.ExitStatus().Signal() != int(syscall.SIGKILL)
			if byItself && last[k].what != "" && !last[k].in {
				delete(last, k) // it ended by itself
				order = slices.DeleteFunc(order, func(o key) bool { return o == k })
			}
			continue
		}
		if _, known := last[k]; !known {
			order = append(order, k)
		}
		a := at{fmt.Sprintf("thread %d (%s)", ev.TID, report.Printable(ev.Comm)), ev.Exit,
			ev.Flags&event.Interrupted != 0 || ev.Exit > over}
		switch call := calls[ev.TID]; {
		case a.in:
			a.what, a.since = a.what+" in "+ev.Op.String(), ev.Enter
		case call != "":
			a.what += " in " + call + ", after " + ev.Op.String() + ","
		default:
			a.what += " in no call, after " + ev.Op.String() + ","
		}
		last[k] = a
	}
	const most = 8
	var said []string
	for i, k := range order {
		if i == most {
			said = append(said, "…")
			break
		}
		said = append(said, fmt.Sprintf("%s for %s", last[k].what, report.Duration(over-last[k].since)))
	}
	if len(said) == 0 {
		return ": nothing is known of it"
	}
	return ": " + strings.Join(said, "; ")
}

// killAll ends what a process has started, parents before their children: a parent whose
// child was killed first could end by itself, as if all were well.
func killAll(pid int) {
	var all []int
	descendants(pid, func(child int) { all = append(all, child) })
	for _, child := range slices.Backward(all) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
}

// descendants calls f for what a process has started, children before their parents.
func descendants(pid int, f func(pid int)) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		b, _ := os.ReadFile(name)
		for _, s := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(s); err == nil {
				descendants(child, f)
				f(child)
			}
		}
	}
}
