// SPDX-License-Identifier: Apache-2.0

// Package hint adds to an error what its reader can do about it.
//
// The message of the error stays as it is. A program that shows it to a person shows the
// hint on a line of its own.
package hint

import (
	"errors"
	"fmt"
)

// An Error is an error with a hint.
type Error struct {
	Err  error
	Text string // what can be done: one line, a command where there is one
}

// Error returns the message without the hint.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error that the hint is about.
func (e *Error) Unwrap() error { return e.Err }

// With adds a hint, formatted as by fmt.Sprintf, to an error.
func With(err error, format string, args ...any) error {
	return &Error{err, fmt.Sprintf(format, args...)}
}

// Of returns the outermost hint of an error, "" if it has none.
func Of(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Text
	}
	return ""
}
