// SPDX-License-Identifier: Apache-2.0

package alarm

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/iotape/iotape/model/aggregate"
)

// Alarm says that a measure became abnormal, or normal again.
type Alarm struct {
	Rule  *Rule
	Key   aggregate.Key
	On    bool // it became abnormal
	Value float64
	// Limit is what Value was compared with, in the same unit: for rules in sigmas what
	// the moving mean and deviation made it.
	Limit float64
	At    time.Time
	Since time.Time // it is abnormal
}

// Limits of a Watch.
const (
	maxWatched = 8192 // keys of a rule; others are not looked at, and counted
	forget     = 60   // read-outs after which a key without calls is forgotten

	// Of the moving mean and deviation: how much the newest read-out counts, and how many
	// have to be there.
	newest = 0.1
	warm   = 10
)

// Watch holds read-outs against a rule. It belongs to one goroutine.
type Watch struct {
	Rule      *Rule
	Unwatched uint64 // values that were not looked at because too many keys are watched
	keys      map[aggregate.Key]*watched
}

// watched is what is known of a key.
type watched struct {
	mean, variance float64
	seen           int       // read-outs
	absent         int       // the last so many had no call of it
	since          time.Time // it is abnormal; zero: it is not
	on             bool      // an alarm was raised
}

// NewWatch returns the watch of a rule.
func NewWatch(r *Rule) *Watch { return &Watch{Rule: r, keys: map[aggregate.Key]*watched{}} }

// Look holds a read-out, of at least the dimensions that the rule needs, against the rule,
// and returns the alarms that it raises or ends, the highest value first.
//
// An alarm is raised once for a key, when its measure has been abnormal in all read-outs
// for as long as the rule says; it ends with the first read-out in which it is not. A key
// has a rate of 0, and no latency, in a read-out without its calls. The row for the rest
// is looked at only if the rule looks at all together.
func (w *Watch) Look(r *aggregate.IntervalSnapshot) []Alarm {
	sums := aggregate.NewTable(w.Rule.By, maxWatched)
	for k, c := range r.Rows() {
		if w.Rule.Ops != nil && (k.Other || !slices.Contains(w.Rule.Ops, k.Op)) {
			continue
		}
		if k.Other && w.Rule.By == 0 {
			k = aggregate.Key{}
		}
		sums.Add(k, c)
	}
	if other := sums.Row(aggregate.Key{Other: true}); other != nil {
		w.Unwatched++
	}
	if w.Rule.By == 0 {
		sums.Add(aggregate.Key{}, &aggregate.Counts{})
	}
	var alarms []Alarm
	for k, c := range sums.Rows() {
		if k.Other {
			continue
		}
		s := w.keys[k]
		if s == nil {
			if len(w.keys) >= maxWatched {
				w.Unwatched++
				continue
			}
			s = &watched{}
			w.keys[k] = s
		}
		s.absent = 0
		alarms = w.look(alarms, k, s, c, r)
	}
	for k, s := range w.keys {
		if sums.Row(k) != nil {
			continue
		}
		alarms = w.look(alarms, k, s, &aggregate.Counts{}, r)
		if s.absent++; s.absent > forget && !s.on {
			delete(w.keys, k)
		}
	}
	slices.SortFunc(alarms, func(a, b Alarm) int {
		if a.Value != b.Value {
			if a.Value > b.Value {
				return -1
			}
			return 1
		}
		return a.Key.Compare(b.Key)
	})
	return alarms
}

// look takes the value of one key.
func (w *Watch) look(alarms []Alarm, k aggregate.Key, s *watched, c *aggregate.Counts,
	r *aggregate.IntervalSnapshot) []Alarm {
	value, ok := w.Rule.value(c, r.Elapsed)
	limit, known := w.limit(s)
	abnormal := ok && known && (w.Rule.Above && value > limit || !w.Rule.Above && value < limit)
	if ok && !abnormal { // what is abnormal is not to become the norm
		s.learn(value)
	}
	a := Alarm{Rule: w.Rule, Key: k, Value: value, Limit: limit, At: r.At}
	switch {
	case abnormal:
		if s.since.IsZero() {
			s.since = r.At.Add(-r.Elapsed)
		}
		if s.on || r.At.Sub(s.since) < w.Rule.For {
			return alarms
		}
		s.on, a.On = true, true
	case s.on:
		s.on = false
	default:
		s.since = time.Time{}
		return alarms
	}
	a.Since = s.since
	if !a.On {
		s.since = time.Time{}
	}
	return append(alarms, a)
}

// value returns the measure; false if there is none: no call, no latency.
func (r *Rule) value(c *aggregate.Counts, elapsed time.Duration) (float64, bool) {
	rate := func(n uint64) (float64, bool) { return float64(n) / elapsed.Seconds(), true }
	switch r.Measure {
	case MeasureCalls:
		return rate(c.Calls)
	case MeasureFailures:
		return rate(c.Failed)
	case MeasureBytes:
		return rate(c.Bytes())
	case MeasureRead:
		return rate(c.Read)
	case MeasureWritten:
		return rate(c.Written)
	case MeasureTime:
		return rate(c.NS)
	}
	if c.Timed() == 0 {
		return 0, false
	}
	switch r.Measure {
	case MeasureMean:
		return float64(c.MeanNS()), true
	case MeasureP50:
		return float64(c.Quantile(0.5)), true
	case MeasureP90:
		return float64(c.Quantile(0.9)), true
	case MeasureP99:
		return float64(c.Quantile(0.99)), true
	}
	return float64(c.MaxNS), true
}

// limit returns what values are compared with; false if that is not known yet.
func (w *Watch) limit(s *watched) (float64, bool) {
	if !w.Rule.Sigmas {
		return w.Rule.Limit, true
	}
	// What never varied would raise an alarm for nothing: a tenth of the mean, and one,
	// always count as ordinary.
	deviation := max(math.Sqrt(s.variance), s.mean/10, 1)
	if w.Rule.Above {
		return s.mean + w.Rule.Limit*deviation, s.seen >= warm
	}
	return s.mean - w.Rule.Limit*deviation, s.seen >= warm
}

// learn moves the mean and the deviation: exponentially weighted, the first read-outs
// more, so that the start does not count for long.
func (s *watched) learn(v float64) {
	s.seen++
	weight := max(newest, 1/float64(s.seen))
	diff := v - s.mean
	s.mean += weight * diff
	s.variance = (1 - weight) * (s.variance + weight*diff*diff)
}

// Env returns what a command that an alarm runs is told, as NAME=VALUE. Keys of programs'
// choosing have no NUL in them.
func (a *Alarm) Env() []string {
	state := "over"
	if a.On {
		state = "on"
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	env := []string{
		"IOTAPE_ALARM=" + state, "IOTAPE_ALARM_RULE=" + a.Rule.Source,
		"IOTAPE_ALARM_VALUE=" + number(a.Value), "IOTAPE_ALARM_LIMIT=" + number(a.Limit),
		"IOTAPE_ALARM_UNIT=" + a.Rule.Measure.unit(),
		"IOTAPE_ALARM_TIME=" + a.At.UTC().Format(time.RFC3339Nano),
		"IOTAPE_ALARM_SINCE=" + a.Since.UTC().Format(time.RFC3339Nano),
	}
	if a.Rule.By&aggregate.ByProcess != 0 {
		env = append(env, "IOTAPE_ALARM_PID="+strconv.FormatUint(uint64(a.Key.PID), 10),
			"IOTAPE_ALARM_COMM="+a.Key.Comm)
	}
	if a.Rule.By&aggregate.ByUser != 0 {
		env = append(env, "IOTAPE_ALARM_UID="+strconv.FormatUint(uint64(a.Key.UID), 10))
	}
	if a.Rule.By&aggregate.ByOp != 0 {
		env = append(env, "IOTAPE_ALARM_OP="+a.Key.Op.String())
	}
	if a.Rule.By&aggregate.ByExtension != 0 {
		env = append(env, "IOTAPE_ALARM_EXTENSION="+a.Key.Ext)
	}
	return env
}
