// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/iotape/iotape/record/capture"
)

// TestMissingTracepoints: what a kernel's tracepoints do not show is said, unless nobody asked.
func TestMissingTracepoints(t *testing.T) {
	pointer := &btf.Pointer{Target: &btf.FuncProto{Return: &btf.Void{}}}
	kernel := func(uring bool, hooks ...string) *btf.Spec {
		var b btf.Builder
		types := []btf.Type{&btf.Int{Name: "int", Size: 4}}
		if uring {
			types = append(types, &btf.Struct{Name: "io_kiocb", Size: 8})
		}
		for _, hook := range hooks {
			types = append(types, &btf.Typedef{Name: "btf_trace_" + hook, Type: pointer})
		}
		for _, x := range types {
			if _, err := b.Add(x); err != nil {
				t.Fatal(err)
			}
		}
		spec, err := b.Spec()
		if err != nil {
			t.Fatal(err)
		}
		return spec
	}
	var uring, faults []string
	for _, hook := range uringHooks {
		uring = append(uring, hook)
	}
	for _, hook := range faultHooks {
		faults = append(faults, hook)
	}
	// Linux 6.1: an older name, and nothing of the pages that a fault maps.
	older := []string{"io_uring_submit_sqe", "page_fault_user", "page_fault_kernel"}
	for _, hook := range uring {
		if hook != "io_uring_submit_req" {
			older = append(older, hook)
		}
	}
	for _, test := range []struct {
		name   string
		kernel *btf.Spec
		mmap   capture.Mmap
		want   []string // parts of the lines, in order
	}{
		{"all is there", kernel(true, append(uring, faults...)...), capture.MmapData, nil},
		{"no io_uring at all", kernel(false, faults...), capture.MmapData, nil},
		{"io_uring without its tracepoints", kernel(true, faults...), capture.MmapData, []string{"io_uring"}},
		{"no page faults", kernel(true, uring...), capture.MmapData, []string{"mapped files"}},
		{"no page faults, and not wanted", kernel(true, uring...), capture.MmapWritten, nil},
		{"Linux 6.1", kernel(true, older...), capture.MmapData, []string{"mapped files"}},
		{"Linux 6.1, and reads are not wanted", kernel(true, older...), capture.MmapOff, nil},
		{"neither", kernel(true), capture.MmapData, []string{"io_uring", "mapped files"}},
	} {
		spec, err := loadIotape()
		if err != nil {
			t.Fatal(err)
		}
		got := dropMissing(spec, test.kernel, test.mmap)
		ok := len(got) == len(test.want)
		for i := range got {
			ok = ok && strings.Contains(got[i], test.want[i])
		}
		if !ok {
			t.Errorf("%s: got %q, want lines about %q", test.name, got, test.want)
		}
	}
}
