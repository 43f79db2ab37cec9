// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ebpf"
	"github.com/iotape/iotape/record/capture/interpose"
	"github.com/iotape/iotape/record/capture/ptrace"
)

// Backend is a way to record.
type Backend struct {
	capture.Backend
	Shards func(o *capture.Options) int // of its streams
}

// Backends returns all ways, the best first.
func Backends() []Backend {
	return []Backend{
		{ebpf.Backend{}, ebpf.Shards},
		{interpose.Backend{}, func(*capture.Options) int { return 1 }},
		{ptrace.Backend{}, func(*capture.Options) int { return 1 }},
	}
}

// ParseBackends checks a name; "auto" is all of them.
func ParseBackends(name string) ([]Backend, error) {
	all := Backends()
	if name == "auto" {
		return all, nil
	}
	for i := range all {
		if all[i].Name() == name {
			return all[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("backend %q is neither auto, ebpf, interpose nor ptrace", name)
}
