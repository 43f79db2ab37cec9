// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/event/facts"
)

// TestPlaces: where a process runs, as its /proc/PID/cgroup says.
func TestPlaces(t *testing.T) {
	const short, uid = "0123456789ab", "11111111-2222-3333-4444-555555555555"
	id := short + strings.Repeat("c", 52)
	for cgroup, want := range map[string]facts.Place{
		"0::/system.slice/docker-" + id + ".scope\n": {Container: short, Unit: "docker-" + id + ".scope"},
		"0::/kubepods.slice/kubepods-pod" + uid + ".slice/cri-containerd-" + id + ".scope\n": {
			Container: short, Pod: uid, Unit: "cri-containerd-" + id + ".scope"},
		"0::/machine.slice/libpod-" + id + ".scope/container\n":           {Container: short, Unit: "libpod-" + id + ".scope"},
		"12:pids:/docker/" + id + "\n1:name=systemd:/docker/" + id + "\n": {Container: short},
		"12:pids:/docker/" + id + "\n0::/\n":                              {Container: short},
		"0::/lxc.payload.web/init.scope\n":                                {Container: "web", Unit: "init.scope"},
		"0::/system.slice/ssh.service\n":                                  {Unit: "ssh.service"},
		"12:pids:/system.slice/ssh.service\n0::/\n":                       {},
		"0::/\n": {},
		"":       {},
	} {
		got := facts.PlaceIn(cgroupIn(cgroup))
		got.Cgroup = ""
		if got != want {
			t.Errorf("places of %q: %+v, want %+v", cgroup, got, want)
		}
	}
}
