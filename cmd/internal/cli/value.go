// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/iotape/iotape/internal/bytesize"
)

// ParseValue reads the value of a flag that its error names.
func ParseValue[T any](to *T, text string, parse func(string) (T, error)) (err error) {
	if *to, err = parse(text); err != nil {
		return Usage(err)
	}
	return nil
}

// ParseFlag reads the value of a flag.
func ParseFlag[T, V any](to *T, flag string, value V, parse func(V) (T, error)) (err error) {
	if *to, err = parse(value); err != nil {
		return Usage(fmt.Errorf("--%s: %w", flag, err))
	}
	return nil
}

// OneOf says whether a flag has the second of two values.
func OneOf(to *bool, flag, value, first, second string) error {
	if value != first && value != second {
		return Usage(fmt.Errorf("%s %s: it is %s or %s", flag, value, first, second))
	}
	*to = value == second
	return nil
}

// Optional returns the value of a flag whose text is nil unless the flag is given.
func Optional(to **string) pflag.Value { return optional{to} }

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

// Either returns a or b.
func Either[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// Size is a number of bytes on the command line: 4096, 64K, 256MiB, 1G.
type Size int64

// String implements pflag.Value.
func (s *Size) String() string { return bytesize.Format(int64(*s)) }

// Type names the kind of value in the help.
func (*Size) Type() string { return "SIZE" }

// Set parses a size. Units are powers of 1024.
func (s *Size) Set(text string) error {
	v, err := bytesize.Parse(text)
	if err == nil {
		*s = Size(v)
	}
	return err
}

// Days is a time that may be given in days.
type Days time.Duration

// Set parses a time.
func (d *Days) Set(text string) error {
	var days int
	var rest string
	if n, _ := fmt.Sscanf(text, "%d%s", &days, &rest); n == 2 && rest == "d" && days > 0 && days < 100_000 {
		*d = Days(time.Duration(days) * 24 * time.Hour)
		return nil
	}
	v, err := time.ParseDuration(text)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is no time such as 365d or 12h", text)
	}
	*d = Days(v)
	return nil
}

// String implements pflag.Value.
func (d *Days) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type names the kind of value in the help.
func (d *Days) Type() string { return "TIME" }
