// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"slices"
	"testing"
	"time"

	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/record/session"
)

func TestParsePIDs(t *testing.T) {
	if pids, err := session.ParsePIDs("12, 13,12"); err != nil || !slices.Equal(pids, []int{12, 13}) {
		t.Errorf("ParsePIDs = %v, %v; want 12 and 13, once", pids, err)
	}
	if pids, err := session.ParsePIDs(""); err != nil || pids != nil {
		t.Errorf("ParsePIDs of nothing = %v, %v", pids, err)
	}
	for _, text := range []string{"x", "0", "-1", "1,,2", "1,"} {
		if pids, err := session.ParsePIDs(text); err == nil {
			t.Errorf("ParsePIDs(%q) = %v, want an error", text, pids)
		}
	}
}

func TestParseFlight(t *testing.T) {
	f, err := session.ParseFlight("30s,512M", []string{"exit!=0", "end"})
	if err != nil || f.Options.Age != 30*time.Second || f.Options.Bytes != 512<<20 || !f.OnExit || !f.OnEnd {
		t.Errorf("ParseFlight = %+v, %v; want 30 s and 512 MiB, with both conditions", f, err)
	}
	if f, err := session.ParseFlight("", nil); f != nil || err != nil {
		t.Errorf("ParseFlight of nothing = %v, %v", f, err)
	}
	for _, last := range []string{"30", "30s,40s", "0s", "1K", "512M,30x"} {
		if f, err := session.ParseFlight(last, nil); err == nil {
			t.Errorf("ParseFlight(%q) = %+v, want an error", last, f)
		}
	}
	if f, err := session.ParseFlight("", []string{"end"}); err == nil {
		t.Errorf("ParseFlight with a condition alone = %+v, want an error", f)
	}
}

func TestCheckOutput(t *testing.T) {
	given := func(flags ...string) func(string) bool {
		return func(flag string) bool { return slices.Contains(flags, flag) }
	}
	plain, secret := &chain.Spec{}, &chain.Spec{Encrypted: true}
	for _, tt := range []struct {
		name  string
		plan  session.Plan
		given []string
		want  string // "" is no error
	}{
		{name: "nowhere else", given: []string{"seal"}},
		{name: "to", plan: session.Plan{To: "x"}},
		{name: "to and a tape", plan: session.Plan{To: "x"}, given: []string{"output"},
			want: "--output applies to a tape, and --to makes no tape"},
		{name: "to the command's output", plan: session.Plan{To: "-"},
			want: "--to -: the command uses standard output"},
		{name: "pipe", plan: session.Plan{Pipe: plain, Snapshots: []string{"x"}}, given: []string{"seal"}},
		{
			name: "encrypted with a snapshot", plan: session.Plan{Pipe: secret, Snapshots: []string{"x"}},
			want: "--snapshot writes clear text to the disk, but --pipe encrypts",
		},
		{
			name: "flight recorder", plan: session.Plan{Pipe: plain, Flight: &session.Flight{}},
			want: "--pipe and --to cannot be used with --last, which keeps the recording in memory",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := tt.plan.CheckOutput(given(tt.given...)); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("CheckOutput: %q, want %q", got, tt.want)
			}
		})
	}
	p := session.Plan{Pipe: secret, Seal: session.SealAfter}
	if err := p.CheckOutput(given()); err != nil || p.Seal != session.SealNever {
		t.Errorf("CheckOutput of an encrypted recording: %v, sealed %v; want it not to be sealed", err, p.Seal)
	}
}
