// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/internal/bpf"
)

// TestAccepted has the kernel verify each program alone, and shows what it says of those
// that it refuses. It is what to run first on a kernel that the programs are new to.
func TestAccepted(t *testing.T) {
	if err := bpf.CheckRecording(); err != nil {
		testenv.Lacks(t, err.Error())
	}
	_ = rlimit.RemoveMemlock()
	c := &config{options: &capture.Options{}, object: loadIotape, block: true, shards: 1, ringBytes: minRingBytes}
	spec, err := (&programs{}).specification(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		alone := spec.Copy()
		alone.Programs = map[string]*ebpf.ProgramSpec{name: alone.Programs[name]}
		coll, err := ebpf.NewCollection(alone)
		if err == nil {
			coll.Close()
			continue
		}
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Errorf("%s: %v\n%+v", name, refused, tail(refused, 25))
		} else {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tail returns a verifier's last lines.
func tail(err *ebpf.VerifierError, n int) []string {
	return err.Log[max(0, len(err.Log)-n):]
}
