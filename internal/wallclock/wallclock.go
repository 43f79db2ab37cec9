// SPDX-License-Identifier: Apache-2.0

// Package wallclock writes moments for people: in the local time zone, which TZ sets, in UTC, or as seconds since 1970.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package wallclock

import (
	"fmt"
	"time"
)

// The layouts of tables and headings.
const (
	Minute  = "2006-01-02 15:04"
	Second  = "2006-01-02 15:04:05"
	TimeDay = "15:04:05"
)

// Form says how moments are written. The zero Form is local time.
type Form struct {
	UTC   bool
	Epoch bool // seconds since 1970 with three decimals; stronger than UTC
}

// Location returns the time zone.
func (f Form) Location() *time.Location {
	if f.UTC {
		return time.UTC
	}
	return time.Local
}

// Text writes a moment.
func (f Form) Text(t time.Time, layout string) string {
	if f.Epoch {
		ms := t.UnixMilli()
		sign := ""
		if ms < 0 {
			sign, ms = "-", -ms
		}
		return fmt.Sprintf("%s%d.%03d", sign, ms/1000, ms%1000)
	}
	return t.In(f.Location()).Format(layout)
}
