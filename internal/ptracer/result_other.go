// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package ptracer

// stopAtEnd is nothing: a stop would not tell the result.
const stopAtEnd = 0

// Result does not know: before a call begins, the register of the result has its first argument.
func (t *Tracee) Result() (ret int64, ok bool) { return 0, false }
