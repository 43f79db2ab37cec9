// SPDX-License-Identifier: Apache-2.0

package straceread

import "strings"

// columns are the heads of the columns that a summary can have (strace -C, -U).
var columns = map[string]bool{"%": true, "time": true, "seconds": true, "shortest": true, "longest": true,
	"usecs/call": true, "calls": true, "errors": true, "syscall": true}

// beginsSummary reports whether a line is the first of a summary, which strace -C writes behind the calls: the heads of
// its columns, or what is in front of them when calls of several architectures are counted.
func beginsSummary(s string) bool {
	if strings.HasPrefix(s, "System call usage summary for ") {
		return true
	}
	words := strings.Fields(s)
	for _, w := range words {
		if !columns[w] {
			return false
		}
	}
	return len(words) > 0
}

// inSummary reports whether a line is of a summary, which says nothing that the calls do not.
func (x *importer) inSummary(s string) bool {
	if beginsSummary(s) {
		x.summary = true
	} else if x.summary && startsLine(s) {
		x.summary = false
	}
	return x.summary
}
