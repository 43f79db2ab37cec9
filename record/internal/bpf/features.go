// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
)

// Arch returns the architecture of this program; false if there are no programs for it.
func Arch() (event.Arch, bool) { return event.ParseArch(runtime.GOARCH) }

// Unsupported returns the error of a machine that lacks a feature.
func Unsupported(feature string, err error) error {
	return &capture.UnsupportedError{Backend: "ebpf", Feature: feature, Reason: err}
}

// CheckRight says whether this process may load programs: nil, or a *capture.UnsupportedError. It takes one
// call to the kernel.
func CheckRight() error {
	if err := features.HaveMapType(ebpf.Hash); errors.Is(err, unix.EPERM) {
		return Unsupported("root's right to load programs into the kernel (CAP_BPF)", err)
	}
	return nil
}

// Check says whether the kernel has what all programs need, and those that count need no more:
// nil, or a *capture.UnsupportedError.
func Check() error {
	if _, ok := Arch(); !ok {
		return Unsupported("an x86-64 or arm64 machine", nil)
	}
	if err := CheckRight(); err != nil {
		return err
	}
	if err := features.HaveMapType(ebpf.TaskStorage); err != nil {
		return Unsupported("storage per thread in the kernel (Linux 5.11)", err)
	}
	spec, err := KernelTypes()
	if err != nil {
		return err
	}
	if !hasFunction(spec, "bpf_loop") {
		return Unsupported("the kernel function bpf_loop (Linux 5.17)", nil)
	}
	return nil
}

// CheckRecording says whether the kernel can load the programs that record, which need more
// than those that count.
func CheckRecording() error {
	if err := Check(); err != nil {
		return err
	}
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		return Unsupported("ring buffers (Linux 5.8)", err)
	}
	spec, err := KernelTypes()
	if err != nil {
		return err
	}
	for _, function := range []struct{ name, since string }{
		{"bpf_find_vma", "5.17"}, {"bpf_ringbuf_reserve_dynptr", "5.19"},
	} {
		if !hasFunction(spec, function.name) {
			return Unsupported("the kernel function "+function.name+" (Linux "+function.since+")", nil)
		}
	}
	return nil
}

// WithoutName is the environment variable by which tests make programs do without features
// of the kernel that it has: the names of functions, with spaces between.
const WithoutName = "IOTAPE_TEST_WITHOUT"

// hasFunction reports whether the kernel has a function that programs can call (a kfunc).
func hasFunction(kernel *btf.Spec, name string) bool {
	var f *btf.Func
	return kernel.TypeByName(name, &f) == nil && !doWithout(name)
}

// doWithout reports whether a test wants a feature not to be used.
func doWithout(name string) bool {
	return slices.Contains(strings.Fields(os.Getenv(WithoutName)), name)
}

// Features are what programs do otherwise where the kernel lacks it.
type Features struct {
	// CopiesUsers: it copies from programs into rings (bpf_probe_read_user_dynptr, Linux 6.16).
	CopiesUsers bool
	// SignalsTasks: it signals other threads than the calling one (bpf_send_signal_task, Linux 6.13).
	SignalsTasks bool
	// Casts: programs read what an address leads to (bpf_rdonly_cast, Linux 6.2).
	Casts bool
	// Iterates: programs can have loops without bounds (bpf_iter_num_new, Linux 6.4).
	Iterates bool
	// IteratesTasks: they can go through the threads of a process (bpf_iter_task_new, Linux 6.7).
	IteratesTasks bool
}

// setFeatures tells programs what the kernel has, by the variables that all have (bpf/state.h).
func setFeatures(programs *ebpf.CollectionSpec, has Features) error {
	for name, v := range map[string]bool{
		"casts": has.Casts, "iterates": has.Iterates, "iterates_tasks": has.IteratesTasks,
	} {
		if err := programs.Variables[name].Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// ProbeFeatures looks what a kernel has.
func ProbeFeatures(kernel *btf.Spec) Features {
	return Features{
		CopiesUsers: hasFunction(kernel, "bpf_probe_read_user_dynptr") &&
			hasFunction(kernel, "bpf_probe_read_user_str_dynptr"),
		SignalsTasks:  hasFunction(kernel, "bpf_send_signal_task") && hasFunction(kernel, "bpf_task_from_pid"),
		Casts:         hasFunction(kernel, "bpf_rdonly_cast"),
		Iterates:      hasFunction(kernel, "bpf_iter_num_new"),
		IteratesTasks: hasFunction(kernel, "bpf_iter_task_new"),
	}
}

// Rejected returns the error of programs that the kernel did not load. Of what the verifier
// said it has the end, which tells why.
func Rejected(err error) error {
	return Unsupported("its programs to be accepted by the kernel", err)
}

// Attach attaches programs to their tracepoints, in order, and appends the links. After an
// error the caller has to close those that it got, too.
func Attach(links []link.Link, programs []*ebpf.Program) ([]link.Link, error) {
	for _, prog := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: prog})
		if err != nil {
			return links, Unsupported("tracepoints with types (tp_btf)", err)
		}
		links = append(links, l)
	}
	return links, nil
}
