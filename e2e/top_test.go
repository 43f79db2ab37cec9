// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/bench/workload"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
)

// counted is a row of iotape top --json, and its key.
type countedKey struct {
	PID, UID            uint32
	Comm, Op, Extension string
}

type countedRow struct {
	countedKey
	Other                     bool
	Calls, Failed, Unfinished uint64
	ReadBytes                 uint64 `json:"read_bytes"`
	WrittenBytes              uint64 `json:"written_bytes"`
}

// sums adds up the rows of all intervals, and returns the alarms. What the command writes
// stands between the lines.
func sums(t *testing.T, stdout string) (rows map[countedKey]countedRow, alarms []map[string]any) {
	t.Helper()
	rows = map[countedKey]countedRow{}
	sc := bufio.NewScanner(strings.NewReader(stdout))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		if !strings.HasPrefix(sc.Text(), `{"version":1,`) {
			continue
		}
		var x struct {
			Alarm string
			Lost  uint64       `json:"uncounted_calls"`
			More  int          `json:"more_rows"`
			Rows  []countedRow `json:"rows"`
		}
		if err := json.Unmarshal(sc.Bytes(), &x); err != nil {
			t.Fatalf("%v in %.200q", err, sc.Text())
		}
		if x.Alarm != "" {
			var a map[string]any
			_ = json.Unmarshal(sc.Bytes(), &a)
			alarms = append(alarms, a)
		}
		if x.Lost > 0 || x.More > 0 {
			t.Errorf("%d calls were not counted, %d rows are not listed", x.Lost, x.More)
		}
		for _, r := range x.Rows {
			if r.Other {
				t.Errorf("no room for %+v", r)
			}
			s := rows[r.countedKey]
			s.countedKey = r.countedKey
			s.Calls += r.Calls
			s.Failed += r.Failed
			s.Unfinished += r.Unfinished
			s.ReadBytes += r.ReadBytes
			s.WrittenBytes += r.WrittenBytes
			rows[r.countedKey] = s
		}
	}
	return rows, alarms
}

// TestKernelAgreesWithTape counts programs in the kernel while they are recorded: the
// same table comes of the tape, to the last call and byte.
func TestKernelAgreesWithTape(t *testing.T) {
	testenv.Short(t, "it records several programs")
	t.Parallel()
	testenv.NeedBPF(t)
	iotape := testenv.Iotape(t)
	install := filepath.Join(t.TempDir(), "workload")
	if err := workload.Install(install); err != nil {
		t.Fatal(err)
	}
	for _, p := range workload.Programs() {
		if !slices.Contains([]string{"failures", "git-basics", "passfds", "pipeline", "sqlite-wal", "threads8-shared",
			"uring"}, p.Name) {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			if p.Name != "git-basics" && p.Name != "pipeline" {
				testenv.Short(t, "records and counts a program")
			}
			testenv.NeedProgram(t, p.Needs...)
			e := newEnv(t, iotape, install, nil)
			work := filepath.Join(e.dir, "work")
			e.run(t, "mkdir", work)
			e.run(t, p.Command(e.install, work, workload.Prep)...)
			by := []string{"--json", "--rows", "0", "--by", "op,process,user,extension"}
			// The recorder is counted, too: it and the program are different processes.
			count := slices.Concat([]string{iotape, "top"}, by,
				[]string{"--interval", "100ms", "--", iotape, "record", "-o", "a.tape", "--no-index", "--backend",
					"ebpf", "--"})
			stdout, _ := e.run(t, append(count, p.Command(e.install, work, workload.Run)...)...)
			kernel, _ := sums(t, stdout)
			stdout, _ = e.run(t, slices.Concat([]string{iotape, "top", "--tape", "a.tape"}, by)...)
			tape, _ := sums(t, stdout)

			type program struct {
				pid  uint32
				comm string
			}
			calls, programs := uint64(0), map[program]bool{}
			for k, want := range tape {
				if strings.HasPrefix(k.Comm, "iotape") {
					continue // the execve that became the program: those of the recorder's stub were before it
				}
				programs[program{k.PID, k.Comm}] = true
				calls += want.Calls
				if got := kernel[k]; got != want {
					t.Errorf("%+v in the kernel\n%+v in the tape", got, want)
				}
			}
			for k, got := range kernel {
				if _, ok := tape[k]; !ok && programs[program{k.PID, k.Comm}] {
					t.Errorf("%+v in the kernel only", got)
				}
			}
			if calls < 300 {
				t.Errorf("%d calls", calls)
			}
		})
	}
}

// TestAlarmRecordsWhatGoesWild is the case of Tracefs (section 3.3): counters are always
// on, and when a rate is abnormal a detailed recording of the process begins.
func TestAlarmRecordsWhatGoesWild(t *testing.T) {
	testenv.NeedBPF(t)
	testenv.Short(t, "takes some seconds")
	wild := compiled(t, "wild")
	e := newEnv(t, testenv.Iotape(t), "", nil)
	hook := filepath.Join(e.dir, "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho \"$IOTAPE_ALARM $IOTAPE_ALARM_COMM\" >>"+e.dir+"/hooked\n"),
		0o755); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := e.run(t, e.iotape, "top", "--json", "--rows", "0", "--interval", "200ms", "--alarm",
		"unlink by process > 15/s for 500ms",
		"--alarm-exec", hook, "--detail", "details", "--detail-for", "2s",
		"--", "sh", "-c", wild+` 500 60 1 & until ls details/*.tape >/dev/null 2>&1; do sleep 0.1; done; kill `+
			`$!; wait $!; sleep 1`)
	_, alarms := sums(t, stdout)
	for i, a := range alarms { // more than one pair where others leave the program little time
		if want := []string{"on", "over"}[i%2]; a["alarm"] != want || a["comm"] != "wild" {
			t.Errorf("alarm %d: %v", i, a)
		}
	}
	if len(alarms) < 2 || len(alarms)%2 != 0 {
		t.Fatalf("alarms %v\n%s", alarms, stderr)
	}
	hooked, err := os.ReadFile(filepath.Join(e.dir, "hooked"))
	if on, over := strings.Count(string(hooked), "on wild\n"), strings.Count(string(hooked),
		"over wild\n"); err != nil || on != len(alarms)/2 || over != on {
		t.Errorf("the command was told %q, %v", hooked, err)
	}
	tapes, err := filepath.Glob(filepath.Join(e.dir, "details", "wild-*.tape"))
	// Each alarm begins a recording; the last ones may have ended with top.
	if err != nil || len(tapes) < 1 || len(tapes) > len(alarms)/2 {
		t.Fatalf("recordings %q of %d alarms, %v\n%s", tapes, len(alarms)/2, err, stderr)
	}
	for _, tape := range tapes {
		if pid := fmt.Sprintf("wild-%.0f-", alarms[0]["pid"]); !strings.Contains(tape, pid) {
			t.Errorf("recording %s is not named after %s", tape, pid)
		}
	}
	names := map[string]bool{}
	unlinks := 0
	e.events(t, filepath.Join("details", filepath.Base(tapes[0])), func(ev *event.Event) {
		if float64(ev.PID) != alarms[0]["pid"] {
			t.Errorf("it has an event of process %d", ev.PID)
		}
		if ev.Kind == event.Call && ev.Op == event.OpUnlink {
			unlinks++
			names[filepath.Base(ev.Name())] = true
		}
	})
	// Two seconds of it, in detail; not what was before the alarm.
	if unlinks < 1 || unlinks > 2000 || !names["wild.tmp"] || names["calm.tmp"] {
		t.Errorf("%d unlinks, of %v", unlinks, names)
	}
}
