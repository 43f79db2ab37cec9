package main

import (
	"fmt"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ebpf"
	"github.com/iotape/iotape/record/capture/ptrace"
)

// backend is a way to record.
type backend struct {
	capture.Backend
	shards func(o *capture.Options) int // of its streams
}

// backends are all ways, the best first.
func backends() []backend {
	return []backend{
		{ebpf.Backend{}, ebpf.Shards},
		{ptrace.Backend{}, func(*capture.Options) int { return 1 }},
	}
}

// parseBackend checks a name; "auto" is all of them.
func parseBackend(name string) ([]backend, error) {
	all := backends()
	if name == "auto" {
		return all, nil
	}
	for i := range all {
		if all[i].Name() == name {
			return all[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("backend %q is neither auto, ebpf nor ptrace", name)
}
