// SPDX-License-Identifier: Apache-2.0

package top

import (
	"os"
	"regexp"
	"strconv"
)

// containers are the names of the containers of processes, as far as they were asked for.
type containers map[uint32]string

// of returns the container of a process: the first 12 digits of its ID, which Docker, containerd, CRI-O and Podman put
// into the name of its control group, or LXC's name. It is "" for none, and for a process that has ended.
func (c containers) of(pid uint32) string {
	name, known := c[pid]
	if !known {
		text, _ := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/cgroup") // no such process: none
		name = containerOf(string(text))
		c[pid] = name
	}
	return name
}

var containerNames = regexp.MustCompile(
	`(?m)(?:^|[/-])([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?(?:/|$)|/lxc\.payload\.([^/\n]+)`)

// containerOf returns the container that a /proc/PID/cgroup names.
func containerOf(cgroup string) string {
	m := containerNames.FindStringSubmatch(cgroup)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}
