// SPDX-License-Identifier: Apache-2.0

package ptracer

import (
	"bytes"
	"os"
	"strconv"
)

// threadGroup returns the process of a thread; the thread itself if it cannot be
// read. A thread that we have not reaped is always in /proc.
func threadGroup(tid int) int {
	if pid := statusField(tid, "Tgid:"); pid > 0 {
		return pid
	}
	return tid
}

// parentProcess returns the parent of a process, 0 if it cannot be read.
func parentProcess(pid int) int { return statusField(pid, "PPid:") }

// nameOf returns the name of a thread, "" if it cannot be read.
func nameOf(tid int) string { return statusLine(strconv.Itoa(tid), "Name:") }

// tracerOf returns the thread that traces a thread, 0 if none does.
func tracerOf(tid int) int { return statusField(tid, "TracerPid:") }

func statusField(tid int, name string) int {
	n, _ := strconv.Atoi(statusLine(strconv.Itoa(tid), name))
	return n
}

// ignoredSignals returns the recorder's ignored signals as a bit set, bit 0 for
// signal 1. (os/signal.Ignored does not know of SIGTSTP.)
func ignoredSignals() uint64 {
	return statusSet("self", "SigIgn:")
}

// statusSet returns a set of signals of /proc/ID/status, bit 0 for signal 1.
func statusSet(id, name string) uint64 {
	set, _ := strconv.ParseUint(statusLine(id, name), 16, 64)
	return set
}

// statusLine returns the value of a line of /proc/ID/status, "" if there is none.
func statusLine(id, name string) string {
	b, err := os.ReadFile("/proc/" + id + "/status")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return string(bytes.TrimSpace(rest))
		}
	}
	return ""
}
