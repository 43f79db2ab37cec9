// SPDX-License-Identifier: Apache-2.0

// Package bytesize reads and writes numbers of bytes with units, powers of 1024: 4096, 64K,
// 256MiB, 1G.
package bytesize

import (
	"fmt"
	"strconv"
	"strings"
)

// Format writes a size with the largest unit up to T that it is a multiple of.
func Format(size int64) string {
	if size == 0 {
		return "0"
	}
	unit := 0
	for size%1024 == 0 && unit < 4 {
		size /= 1024
		unit++
	}
	return strconv.FormatInt(size, 10) + [...]string{"", "K", "M", "G", "T"}[unit]
}

// Parse reads a size of 0 to 2⁶² bytes.
func Parse(text string) (int64, error) {
	digits := strings.TrimRight(text, "KMGTkmgtiBb")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text[len(digits):]), "B"), "I")
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
	by, ok := shift[unit]
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || v < 0 || v > 1<<62>>by {
		return 0, fmt.Errorf("%q is no size such as 4096, 64K, 256M or 1G", text)
	}
	return v << by, nil
}
