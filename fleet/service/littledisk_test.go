// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/service"
)

// TestLittleDisk starts a collector where a stream of its broker is allowed more than is free by now.
func TestLittleDisk(t *testing.T) {
	data := t.TempDir()
	for _, minFree := range []int64{0, 1 << 50} { // what is to stay free is more than the disk has
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		said, ready := "", false
		o := service.Options{
			Options: collector.Options{
				Data: data, BrokerBytes: 100 << 20, MinFree: minFree, Note: func(s string) { said += s + "\n" },
			},
			Listen: "127.0.0.1:0", Page: "-", Sync: time.Second,
			Ready: func(...string) error { ready = true; stop(); return nil },
		}
		err := service.Run(ctx, &o)
		stop()
		if err != nil || !ready {
			t.Fatalf("with %d bytes to stay free: ready %v, %v; it said %s", minFree, ready, err, said)
		}
		if got := strings.Contains(said, "has room for 16 MiB of the broker's 100 MiB"); got != (minFree > 0) {
			t.Errorf("with %d bytes to stay free it said %q", minFree, said)
		}
	}
}
