// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestCheck: what counts needs less of a kernel than what records, and each names what it lacks.
func TestCheck(t *testing.T) {
	testenv.NeedBPF(t)
	for _, test := range []struct {
		without       string // of the running kernel
		count, record string // part of the error, "" for none
	}{
		{"", "", ""},
		{"bpf_rdonly_cast bpf_iter_num_new bpf_iter_task_new bpf_task_from_pid PIDFD_THREAD", "", ""},
		{"bpf_find_vma", "", "bpf_find_vma (Linux 5.17)"},
		{"bpf_ringbuf_reserve_dynptr", "", "bpf_ringbuf_reserve_dynptr (Linux 5.19)"},
		{"bpf_loop", "bpf_loop (Linux 5.17)", "bpf_loop (Linux 5.17)"},
	} {
		t.Run(test.without, func(t *testing.T) {
			t.Setenv(WithoutName, test.without)
			for _, need := range []struct {
				what, want string
				err        error
			}{{"count", test.count, Check()}, {"record", test.record, CheckRecording()}} {
				got := ""
				if need.err != nil {
					got = need.err.Error()
				}
				oneLine := !strings.Contains(got, "\n")
				if (need.want == "") != (got == "") || !strings.Contains(got, need.want) || !oneLine {
					t.Errorf("to %s: %q, want one line with %q", need.what, got, need.want)
				}
			}
		})
	}
}
