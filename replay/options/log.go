// SPDX-License-Identifier: Apache-2.0

package options

import "fmt"

// LogLevel is how much a replay writes into its log.
type LogLevel string

// The levels: each has what the one before has.
const (
	LogDifferences LogLevel = "differences" // results that are not as recorded
	LogSkipped     LogLevel = "skipped"     // calls that are not made, with the reason
	LogCalls       LogLevel = "calls"       // every call, with its result
)

// ParseLogLevel returns the level with a name.
func ParseLogLevel(s string) (LogLevel, error) {
	switch l := LogLevel(s); l {
	case LogDifferences, LogSkipped, LogCalls:
		return l, nil
	}
	return "", fmt.Errorf("log level %q is neither differences, skipped nor calls", s)
}
