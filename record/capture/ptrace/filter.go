// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/ptracer"
)

// letThrough makes the recorder do what the filter would.
func (r *Recorder) letThrough(exempt []Exempt) {
	for _, e := range exempt {
		if e.NR < len(r.through) {
			r.through[e.NR] = true
		}
	}
}

// filter returns the seccomp program that lets the exempt calls through and sends all
// others, and those of other ABIs, to the tracer.
func filter(exempt []Exempt) ([]unix.SockFilter, error) {
	numbers := make([]int, len(exempt))
	for i, e := range exempt {
		numbers[i] = e.NR
	}
	return ptracer.Filter(numbers, false)
}
