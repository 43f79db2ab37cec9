// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"testing"

	"github.com/iotape/iotape/model/posix"
)

// The last mount that covers a name counts, and names of the kernel's files stay such.
func TestCovered(t *testing.T) {
	rs := covered([]posix.Mount{{At: "/w/m", Type: "tmpfs", Number: 1}, {At: "/w/m/proc", Type: "proc", Number: 2},
		{At: "/w/m/d", Number: 3}, {At: "/w/m/d", Type: "ext4", Number: 4}})
	for name, want := range map[string]string{
		"/w/m":        "/.iotape-mounts/1",
		"/w/m/x":      "/.iotape-mounts/1/x",
		"/w/mm":       "/w/mm",
		"/w/m/d/x":    "/.iotape-mounts/4/x",
		"/w/m/proc/1": "/proc/1",
	} {
		if got := rs.Path(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
