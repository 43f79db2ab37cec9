// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"strconv"
	"strings"
)

// attachedWith takes note of a process to which strace attached, with several threads (strace -p 12 -f):
//
//	strace: Process 12 attached with 3 threads
func (x *importer) attachedWith(s string) {
	number, ok := strings.CutPrefix(strings.TrimPrefix(s, "strace: "), "Process ")
	if !ok {
		return
	}
	number, count, ok := strings.Cut(number, " attached with ")
	if !ok {
		return
	}
	count, _, _ = strings.Cut(count, " ")
	pid, err1 := strconv.ParseUint(number, 10, 22)
	threads, err2 := strconv.ParseUint(count, 10, 22)
	if err1 != nil || err2 != nil || pid == 0 || len(x.attached) > 1 {
		return
	}
	if x.attached == nil {
		x.attached = map[uint32]int{}
	}
	x.attached[uint32(pid)] = int(max(threads, 1)) - 1 // the first has the process's number
}

// sibling returns a thread of the one process to which strace attached, as long as there are threads of it without
// lines: a new thread that nobody made is one of them. It is nil if there is none.
func (x *importer) sibling(tid uint32) (by *thread, group bool) {
	for pid, left := range x.attached {
		if tid == pid || left == 0 {
			return nil, false
		}
		x.attached[pid] = left - 1
		if t := x.threads[pid]; t != nil {
			return t, true
		}
		t, err := x.newThread(pid, nil, false)
		return t, err == nil
	}
	return nil, false
}
