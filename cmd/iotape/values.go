// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
)

// parseValue reads the value of a flag that its error names.
func parseValue[T any](to *T, text string, parse func(string) (T, error)) (err error) {
	if *to, err = parse(text); err != nil {
		return usageError{err}
	}
	return nil
}

// parseFlag reads the value of a flag.
func parseFlag[T, V any](to *T, flag string, value V, parse func(V) (T, error)) (err error) {
	if *to, err = parse(value); err != nil {
		return usageError{fmt.Errorf("--%s: %w", flag, err)}
	}
	return nil
}

// oneOf says whether a flag has the second of two values.
func oneOf(to *bool, flag, value, first, second string) error {
	if value != first && value != second {
		return usageError{fmt.Errorf("%s %s: it is %s or %s", flag, value, first, second)}
	}
	*to = value == second
	return nil
}

// optional is a text that is nil unless its flag is given.
type optional struct{ to **string }

// String implements pflag.Value.
func (o optional) String() string {
	if o.to == nil || *o.to == nil {
		return ""
	}
	return **o.to
}

// Type names the kind of value in the help.
func (optional) Type() string { return "string" }

// Set implements pflag.Value.
func (o optional) Set(text string) error {
	*o.to = &text
	return nil
}
