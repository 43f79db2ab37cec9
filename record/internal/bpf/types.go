// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"sync"

	"github.com/cilium/ebpf/btf"
)

var types struct {
	sync.Mutex
	cache *btf.Cache
}

// Types returns the kernel's types. To parse them takes tens of milliseconds, so all who load
// programs share them until ForgetTypes.
func Types() *btf.Cache {
	types.Lock()
	defer types.Unlock()
	if types.cache == nil {
		types.cache = btf.NewCache()
	}
	return types.cache
}

// ForgetTypes frees the memory of what Types returned; whoever has it can use it on.
func ForgetTypes() {
	types.Lock()
	defer types.Unlock()
	types.cache = nil
}

// KernelTypes returns them parsed, or a *capture.UnsupportedError.
func KernelTypes() (*btf.Spec, error) {
	spec, err := Types().Kernel()
	if err != nil {
		return nil, Unsupported("the kernel's type information (CONFIG_DEBUG_INFO_BTF)", err)
	}
	return spec, nil
}
