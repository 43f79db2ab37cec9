// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"iter"
	"strconv"
	"strings"
)

// maker is who made a thread, by a call whose line stands behind the thread's first one.
type maker struct {
	tid   uint32
	group bool // in the same process
}

// makesThread reports whether a call makes a thread.
func makesThread(name string) bool {
	switch name {
	case "clone", "clone3", "fork", "vfork":
		return true
	}
	return false
}

// findMakers looks in a trace's beginning for calls that made threads and whose lines are whole, but stand behind
// lines of these threads. strace -z prints them so, because it waits for the result.
func findMakers(head iter.Seq[string]) map[uint32]maker {
	found, seen := map[uint32]maker{}, map[uint32]bool{}
	for line := range head {
		p := parsePrefix(strings.TrimSuffix(line, "\n"))
		if p.tid == 0 || len(seen) > maxDirectories {
			continue
		}
		if strings.HasPrefix(p.body, "+++ ") { // its number can be used again
			delete(seen, p.tid)
			continue
		}
		seen[p.tid] = true
		name, _, _ := strings.Cut(p.body, "(")
		if !makesThread(name) {
			continue
		}
		if tid := madeThread(p.body); tid != 0 && seen[tid] && tid != p.tid {
			found[tid] = maker{p.tid, sharesThread(p.body)}
		}
	}
	return found
}

// madeThread returns the number of the thread that a call made, by its line; 0 if the line does not say it.
func madeThread(body string) uint32 {
	i := strings.LastIndex(body, ") = ")
	if i < 0 {
		i = strings.LastIndex(body, " = ")
	}
	if i < 0 {
		return 0
	}
	_, result, _ := strings.Cut(body[i:], "= ")
	result, _, _ = strings.Cut(strings.TrimSpace(result), " ")
	tid, err := strconv.ParseUint(result, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(tid)
}
