// SPDX-License-Identifier: Apache-2.0

package top

import (
	"os"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event/facts"
)

// containers are the names of the containers of processes, as far as they were asked for.
type containers map[uint32]string

// of returns the container of a process: the first 12 digits of its ID, or its name if it
// has none. It is "" for none, and for a process that has ended.
func (c containers) of(pid uint32) string {
	name, known := c[pid]
	if !known {
		text, _ := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/cgroup") // no such process: none
		name = containerOf(string(text))
		c[pid] = name
	}
	return name
}

// containerOf returns the container that a /proc/PID/cgroup names, in whichever hierarchy.
func containerOf(cgroup string) string {
	for line := range strings.Lines(cgroup) {
		if id := facts.Container(strings.TrimSuffix(line, "\n")); id != "" {
			return facts.ShortContainer(id)
		}
	}
	return ""
}
