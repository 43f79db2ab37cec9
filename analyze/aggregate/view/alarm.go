// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/alarm"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/wallclock"
	"github.com/iotape/iotape/model/aggregate"
)

// AlarmLine says in one line what an alarm is of.
func (o *Options) AlarmLine(a *alarm.Alarm) string {
	who := "in all"
	if a.Rule.By != 0 {
		who = strings.Join(o.names(a.Rule.By, a.Key), " ")
	}
	state := "ALARM"
	if !a.On {
		state = "over"
	}
	return fmt.Sprintf("%s %s: %s: %s %s, the limit is %s, since %s", o.Clock.Text(a.At, wallclock.TimeDay), state,
		report.Printable(a.Rule.Source), who,
		quantity(a.Rule.Measure, a.Value), quantity(a.Rule.Measure, a.Limit), o.Clock.Text(a.Since, wallclock.TimeDay))
}

// quantity writes a number of a measure's unit.
func quantity(m alarm.Measure, v float64) string {
	n := uint64(max(v, 0) + 0.5)
	switch m {
	case alarm.MeasureCalls, alarm.MeasureFailures:
		if v < 10 {
			return strconv.FormatFloat(v, 'f', 1, 64) + "/s"
		}
		return report.Count(n) + "/s"
	case alarm.MeasureBytes, alarm.MeasureRead, alarm.MeasureWritten:
		return report.Bytes(n) + "/s"
	case alarm.MeasureTime:
		return report.Duration(int64(n)) + "/s"
	}
	return report.Duration(int64(n))
}

// Heading says in one line what an interval had.
func (o *Options) Heading(r *aggregate.IntervalSnapshot) string {
	c := r.Total()
	return fmt.Sprintf("%s  %s: %s calls/s, %s failed/s, read %s/s, wrote %s/s, %s",
		o.Clock.Text(r.At, wallclock.TimeDay), r.Elapsed.Round(time.Millisecond),
		report.Count(uint64(r.Rate(c.Calls)+0.5)),
		report.Count(uint64(r.Rate(c.Failed)+0.5)),
		report.Bytes(uint64(r.Rate(c.Read))), report.Bytes(uint64(r.Rate(c.Written))),
		report.Plural(uint64(r.Len()), "row", "rows"))
}
