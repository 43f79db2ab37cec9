// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// MapShared maps the memory that the programs share. The caller unmaps it (munmap(2)).
func MapShared(m *ebpf.Map) ([]byte, *Common, error) {
	b, err := unix.Mmap(m.FD(), 0, int(unsafe.Sizeof(Common{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map shared memory: %w", err)
	}
	return b, (*Common)(unsafe.Pointer(&b[0])), nil
}

// Flags of a Task (include/record.h).
const (
	TaskJoined     = 1 << 8  // it ran already when it was followed
	TaskExcluded   = 1 << 9  // it is the recorder's own
	TaskBeforeExec = 1 << 12 // it is about to become the command
)

// The types that the programs and Go code share (include/record.h).
type (
	Common        = sharedCommon        // the memory that the programs share with the recorder
	Task          = sharedTask          // what is kept of a followed thread
	Spec          = sharedSpec          // a row of the table of calls
	Cap           = sharedCap           // a memory argument of a row
	RequestRow    = sharedRequestRow    // a row of the table of requests
	Suffix        = sharedSuffix        // an end of names that a filter asks for
	PrefilterStep = sharedPrefilterStep // a test of a filter
)
