package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizeFlag is a number of bytes on the command line: 4096, 64K, 256MiB, 1G.
type sizeFlag int64

func (s *sizeFlag) String() string {
	if *s == 0 {
		return "0"
	}
	v, unit := int64(*s), 0
	for v%1024 == 0 && unit < 4 {
		v /= 1024
		unit++
	}
	return strconv.FormatInt(v, 10) + [...]string{"", "K", "M", "G", "T"}[unit]
}

// Type names the kind of value in the help.
func (*sizeFlag) Type() string { return "SIZE" }

// Set parses a size. Units are powers of 1024.
func (s *sizeFlag) Set(text string) error {
	digits := strings.TrimRight(text, "KMGTkmgtiBb")
	unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(text[len(digits):]), "B"), "I")
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
	by, ok := shift[unit]
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !ok || v < 0 || v > 1<<62>>by {
		return fmt.Errorf("%q is no size such as 4096, 64K, 256M or 1G", text)
	}
	*s = sizeFlag(v << by)
	return nil
}
