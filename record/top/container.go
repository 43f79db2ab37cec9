// SPDX-License-Identifier: Apache-2.0

package top

import (
	"os"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// cgroups are the control groups of processes, as the recording says, or else as the kernel does.
type cgroups struct {
	told  facts.Tracker
	asked map[uint32]string // since the last interval
}

// of returns the control group of an event's process. It is "" if it is not known, and for a process that had ended
// before it was asked for.
func (c *cgroups) of(ev *event.Event) string {
	if d := c.told.Of(ev.Host, ev.PID); d != nil && d.Cgroup != "" && d.Cgroup != "/" {
		return d.Cgroup
	}
	path, known := c.asked[ev.PID]
	if !known {
		if c.asked == nil {
			c.asked = map[uint32]string{}
		}
		text, _ := os.ReadFile("/proc/" + strconv.FormatUint(uint64(ev.PID), 10) + "/cgroup") // no such process: none
		path = cgroupIn(string(text))
		c.asked[ev.PID] = path
	}
	return path
}

// cgroupIn returns the control group that a /proc/PID/cgroup names in version 2, or else in another hierarchy
// if that is a container's.
func cgroupIn(text string) (path string) {
	for line := range strings.Lines(text) {
		of := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(of) < 3:
		case facts.Container(of[2]) != "":
			return of[2]
		case of[0] == "0":
			path = of[2]
		}
	}
	return path
}
