// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package interpose

import (
	"context"
	"runtime"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// Run reports that the back end is for amd64 alone.
func (Backend) Run(context.Context, *capture.Options, *trace.StreamWriter) (*capture.Result, error) {
	return nil, &capture.UnsupportedError{Backend: name,
		Feature: "Syscall User Dispatch, which " + runtime.GOARCH + " has not"}
}
