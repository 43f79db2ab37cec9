// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package ptracer

import "syscall"

// repeat does nothing: a call's first argument is not known any more when the call has returned.
func repeat(*Tracee, syscall.Signal) bool { return false }

func again(*Tracee) {}

func onlyWaits(uint64) bool { return false }
