// SPDX-License-Identifier: Apache-2.0

package ebpf

import "github.com/cilium/ebpf"

// faultPrograms are those that record reads through mappings.
func (p *programs) faultPrograms() []*ebpf.Program {
	return []*ebpf.Program{p.OnFilemapFault, p.OnMapPages, p.OnPageFaultKernel, p.OnPageFaultUser}
}
