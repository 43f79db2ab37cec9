// SPDX-License-Identifier: Apache-2.0

package ebpf

import "github.com/cilium/ebpf"

// faultPrograms returns nothing: this architecture has no tracepoint of page faults,
// so only stores through mappings are recorded.
func (p *programs) faultPrograms() []*ebpf.Program { return nil }
