// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/iotape/iotape/internal/bytesize"

// sizeFlag is a number of bytes on the command line: 4096, 64K, 256MiB, 1G.
type sizeFlag int64

func (s *sizeFlag) String() string { return bytesize.Format(int64(*s)) }

// Type names the kind of value in the help.
func (*sizeFlag) Type() string { return "SIZE" }

// Set parses a size. Units are powers of 1024.
func (s *sizeFlag) Set(text string) error {
	v, err := bytesize.Parse(text)
	if err == nil {
		*s = sizeFlag(v)
	}
	return err
}
