// SPDX-License-Identifier: Apache-2.0

package session

import (
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture/ebpf"
)

// Helper does nothing in an ordinary process. In one that a recording has started from this
// program's executable, to become the recorded command or to watch over the recording, it
// does that work and does not return. A main function that calls Record calls it first.
func Helper() {
	ptracer.Stub()
	ebpf.Stub()
	watchdogStub()
}
