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

// Check says whether the kernel can load the programs: nil, or a *capture.UnsupportedError.
func Check() error {
	if _, ok := Arch(); !ok {
		return Unsupported("an x86-64 or arm64 machine", nil)
	}
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		if errors.Is(err, unix.EPERM) {
			return Unsupported("root's right to load programs into the kernel (CAP_BPF)", err)
		}
		return Unsupported("ring buffers (Linux 5.8)", err)
	}
	if err := features.HaveMapType(ebpf.TaskStorage); err != nil {
		return Unsupported("storage per thread in the kernel (Linux 5.11)", err)
	}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return Unsupported("the kernel's type information (CONFIG_DEBUG_INFO_BTF)", err)
	}
	for _, kfunc := range []struct{ name, since string }{
		{"bpf_rdonly_cast", "6.2"}, {"bpf_task_from_pid", "6.2"}, {"bpf_iter_num_new", "6.4"}, {"bpf_iter_task_new", "6.7"},
	} {
		if !hasFunction(spec, kfunc.name) {
			return Unsupported("the kernel function "+kfunc.name+" (Linux "+kfunc.since+")", nil)
		}
	}
	fd, err := unix.PidfdOpen(os.Getpid(), unix.PIDFD_THREAD) // as Follow does
	if err != nil {
		return Unsupported("descriptors of threads (PIDFD_THREAD, Linux 6.9)", err)
	}
	unix.Close(fd)
	return nil
}

// WithoutName is the environment variable by which tests make programs do without features
// of the kernel that it has: the names of functions, with spaces between.
const WithoutName = "IOTAPE_TEST_WITHOUT"

// hasFunction reports whether the kernel has a function that programs can call (a kfunc).
func hasFunction(kernel *btf.Spec, name string) bool {
	var f *btf.Func
	return kernel.TypeByName(name, &f) == nil && !slices.Contains(strings.Fields(os.Getenv(WithoutName)), name)
}

// Features are what programs of recording do otherwise where the kernel lacks it.
type Features struct {
	// CopiesUsers: it copies from programs into rings (bpf_probe_read_user_dynptr, Linux 6.16).
	CopiesUsers bool
	// SignalsTasks: it signals other threads than the calling one (bpf_send_signal_task, Linux 6.13).
	SignalsTasks bool
}

// ProbeFeatures looks what a kernel has.
func ProbeFeatures(kernel *btf.Spec) Features {
	return Features{
		CopiesUsers: hasFunction(kernel, "bpf_probe_read_user_dynptr") &&
			hasFunction(kernel, "bpf_probe_read_user_str_dynptr"),
		SignalsTasks: hasFunction(kernel, "bpf_send_signal_task"),
	}
}

// Rejected returns the error of programs that the kernel did not load. It says what the
// verifier said.
func Rejected(err error) error {
	var ve *ebpf.VerifierError
	if errors.As(err, &ve) {
		err = fmt.Errorf("%+v", ve)
	}
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
