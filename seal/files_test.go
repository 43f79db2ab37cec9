// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"os"
	"strings"
	"testing"

	"github.com/iotape/iotape/trace"
)

// Only a stream of this host, since it booted, is resolved with the files that are here.
func TestIsHere(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	boot := strings.TrimSpace(string(id))
	for _, tt := range []struct {
		name, host, boot string
		want             bool
	}{
		{"this machine", name, boot, true},
		{"before it booted", name, "0" + boot[1:] + "0", false},
		{"a container on it", name + "-c", boot, false},
		{"a foreign trace", name, "", false},
	} {
		if got := isHere(&trace.Head{Host: tt.host, BootID: tt.boot}); got != tt.want {
			t.Errorf("%s: want %v, got %v", tt.name, tt.want, got)
		}
	}
}
