// SPDX-License-Identifier: Apache-2.0

package early

// System calls that package syscall does not know (asm/unistd.h).
const (
	sysSeccomp = 317
	sysBPF     = 321
)
