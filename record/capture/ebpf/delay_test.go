// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// TestDelays has two threads take turns on one CPU. What their calls say of how long they
// waited for it adds up to what the kernel says of them.
func TestDelays(t *testing.T) {
	need(t)
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("skipped: the kernel does not count how long threads wait for a processor: %v", err)
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pr.Close()
	r, res := record(t, &capture.Options{Stdout: pw}, build(t, "turns"), "60")
	pw.Close()
	if res.ExitStatus != 0 || res.Lost != 0 {
		t.Fatalf("result %+v", res)
	}
	waited := uint64(0)
	lines := bufio.NewScanner(pr)
	for n := 0; n < 2; n++ {
		var tid uint32
		var length int64
		var ran, said, turns, sum uint64
		if !lines.Scan() {
			t.Fatalf("%d lines, %v", n, lines.Err())
		}
		if _, err := fmt.Sscan(lines.Text(), &tid, &length, &ran, &said, &turns); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		calls, before := 0, uint64(0) // before: when it looked
		for _, c := range r.calls {
			if c.TID != tid || c.spec.NoCall {
				continue
			}
			if c.Flags&trace.CallDelays == 0 {
				t.Fatalf("thread %d: %s does not say how long it waited for a processor", tid, c.spec.Name)
			}
			calls++
			before = sum
			sum += uint64(c.DelayBefore) + uint64(c.DelayWithin)
			if event.Op(c.Op) == event.OpRead && c.Ret == length &&
				strings.HasPrefix(text(c, 1), fmt.Sprintf("%d %d ", ran, said)) {
				break
			}
		}
		if sum < said/4 || before > 2*said {
			t.Errorf("thread %d waited %d to %d ns by its %d calls, %d by the kernel", tid, before, sum, calls, said)
		}
		waited += said
		t.Logf("thread %d: %d ns by %d calls, %d by the kernel, in %d turns", tid, sum, calls, said, turns)
	}
	if waited == 0 {
		t.Error("nobody waited: they were to take turns")
	}
	if first := r.calls[0]; first.DelayBefore != 0 {
		t.Errorf("%s waited %d ns before, of which nobody knows", first.spec.Name, first.DelayBefore)
	}
}
