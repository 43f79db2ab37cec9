// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"
)

func TestContainerOf(t *testing.T) {
	id := "0123456789ab" + strings.Repeat("c", 52)
	for cgroup, want := range map[string]string{
		"0::/system.slice/docker-" + id + ".scope\n":                               "0123456789ab",
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope\n": "0123456789ab",
		"0::/machine.slice/libpod-" + id + ".scope/container\n":                    "0123456789ab",
		"12:pids:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n":          "0123456789ab",
		"0::/lxc.payload.web/init.scope\n":                                         "web",
		"0::/user.slice/user-1000.slice/session-2.scope\n":                         "",
		"0::/\n": "",
		"":       "",
	} {
		if got := containerOf(cgroup); got != want {
			t.Errorf("container of %q: %q, want %q", cgroup, got, want)
		}
	}
}
