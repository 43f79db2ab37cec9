// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"maps"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// TestRequestsLater: the programs for requests may come later only where a thread can wait for
// them, and no queue can be older than the recording or be made by a thread that is not seen.
func TestRequestsLater(t *testing.T) {
	command := []string{"true"}
	for _, tt := range []struct {
		name    string
		options capture.Options
		want    bool
	}{
		{"a command", capture.Options{Command: command}, true},
		{"a command that is not held", capture.Options{Command: command, Overflow: capture.OverflowDrop}, false},
		{"a command with a filter", capture.Options{Command: command, Prefilter: &predicate.Prefilter{}}, false},
		{"the whole machine", capture.Options{All: true}, false},
		{"the whole machine and a command", capture.Options{All: true, Command: command}, false},
		{"running processes", capture.Options{PIDs: []int{1}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newConfig(&tt.options, 1)
			if got := c.requestsLater(); got != tt.want {
				t.Errorf("requestsLater() = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestProgramsHavePlace: each program of the objects is attached or run by its name, of which the
// compiler knows nothing.
func TestProgramsHavePlace(t *testing.T) {
	named := slices.Concat(attached, run, requestNames, []string{exitWithRequests, "on_sys_exit", "on_sys_enter"})
	slices.Sort(named)
	all := map[string]bool{}
	for _, object := range []string{"iotape_x86_bpfel.o", "iotape_arm64_bpfel.o"} {
		spec, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for name := range spec.Programs {
			all[name] = true
		}
	}
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, named) {
		t.Errorf("the objects have %q, want what is named: %q", got, named)
	}
}

// TestUnusedPrograms: a recording of a command loads nothing for control groups, wake-ups, mapped files
// or requests unless it asks for that.
func TestUnusedPrograms(t *testing.T) {
	if err := bpf.CheckRecording(); err != nil {
		testenv.Lacks(t, err.Error())
	}
	always := []string{"follow_listed", "on_cgroup_moved", "on_contention_end", "on_exec", "on_exit", "on_fork",
		"on_signal_deliver", "on_signal_generate", "on_sys_enter", "on_sys_exit"}
	for _, tt := range []struct {
		name    string
		options capture.Options
		want    []string // beside always
	}{
		{"nothing", capture.Options{}, nil},
		{"wake-ups", capture.Options{Wakeups: true}, wakeupHooks},
		{"mapped files that are written", capture.Options{Mmap: capture.MmapWritten},
			[]string{countMappings, "on_dirty_folio", "on_writeback"}},
	} {
		o := tt.options
		if o.Command = []string{"true"}; o.Mmap == "" {
			o.Mmap = capture.MmapOff
		}
		c := newConfig(&o, 1)
		p := &programs{}
		spec, err := p.specification(&c)
		if err != nil {
			t.Fatal(err)
		}
		p.requests.take(spec, c.requestsLater())
		delete(spec.Programs, "on_uring_create") // not all kernels have it
		want := slices.Sorted(slices.Values(slices.Concat(always, tt.want)))
		if got := slices.Sorted(maps.Keys(spec.Programs)); !slices.Equal(got, want) {
			t.Errorf("%s: loads %q, want %q", tt.name, got, want)
		}
	}
}
