// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
)

// Ended returns how a command ended: by an error, or, unless all is as it should be, with
// the status that says so.
func Ended(err error, good bool) error {
	if err == nil && !good {
		return Status(ExitFound, nil)
	}
	return err
}

// The exit statuses; docs/exit-codes.md.
const (
	ExitOK     = 0
	ExitFound  = 1   // done, and something is not as it should be
	ExitFailed = 2   // could not be done
	ExitRecord = 125 // record: iotape itself failed
	ExitNoExec = 126 // record: the command cannot be executed
	ExitNoFile = 127 // record: the command was not found
)

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Usage makes an error one of a wrong command line.
func Usage(err error) error { return usageError{err} }

// StatusError asks for an exit status. Without Err nothing is said.
type StatusError struct {
	Status int
	Err    error
}

func (e *StatusError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

func (e *StatusError) Unwrap() error { return e.Err }

// Status asks for an exit status. err says why; without it nothing is said.
func Status(status int, err error) error { return &StatusError{status, err} }

// Found gives an error of some kind the status of what was done and found something.
func Found(err, kind error) error {
	if errors.Is(err, kind) {
		return Status(ExitFound, err)
	}
	return err
}

// UsageIf makes a usage error of an error of type T.
func UsageIf[T error](err error) error {
	var wrong T
	if errors.As(err, &wrong) {
		return Usage(err)
	}
	return err
}
