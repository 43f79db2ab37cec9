// SPDX-License-Identifier: Apache-2.0

package ptrace

import "golang.org/x/sys/unix"

// archExempt holds the calls that only arm64 lists here.
func archExempt() []Exempt {
	return []Exempt{{unix.SYS_GETRLIMIT, "getrlimit", isResource}}
}
