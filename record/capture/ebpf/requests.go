// SPDX-License-Identifier: Apache-2.0

package ebpf

import "github.com/cilium/ebpf"

// uringHooks are the programs for io_uring, by the kernel's tracepoint. They are of use
// together only.
var uringHooks = map[string]string{
	"on_uring_create": "io_uring_create", "on_uring_submit": "io_uring_submit_req", "on_uring_refused": "io_uring_req_failed",
	"on_uring_link": "io_uring_link", "on_uring_fail_link": "io_uring_fail_link",
	"on_uring_complete": "io_uring_complete", "on_uring_overflow": "io_uring_cqe_overflow",
}

// olderHooks are the names that tracepoints had before (Linux 6.3).
var olderHooks = map[string]string{"io_uring_submit_req": "io_uring_submit_sqe"}

// requestPrograms are those to be attached, the last to see a request first.
func (p *programs) requestPrograms() []*ebpf.Program {
	if p.noUring {
		return nil
	}
	return []*ebpf.Program{p.OnUringComplete, p.OnUringOverflow, p.OnUringFailLink, p.OnUringLink, p.OnUringRefused,
		p.OnUringSubmit, p.OnUringCreate}
}
