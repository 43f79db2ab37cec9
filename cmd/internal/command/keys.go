// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
)

// readsStreams reports whether a command opens streams, or what can be made tapes.
func readsStreams(name string) bool {
	return slices.Contains([]string{"seal", "repair", "merge", "slice", "diff", "raw", "print", "stat", "replay",
		"skeleton", "check", "convert", "query", "index", "pipe", "tail"}, name)
}
