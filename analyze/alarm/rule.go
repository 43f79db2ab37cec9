// SPDX-License-Identifier: Apache-2.0

package alarm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/aggregate"
	"github.com/iotape/iotape/predicate"
)

// Measure is what a rule looks at.
type Measure string

// The measures. The first six are rates, in a second; the others are latencies.
const (
	MeasureCalls    Measure = "calls"
	MeasureFailures Measure = "failures"
	MeasureBytes    Measure = "bytes"
	MeasureRead     Measure = "read"
	MeasureWritten  Measure = "written"
	MeasureTime     Measure = "time" // spent in calls: 1s in a second is one thread that does nothing else
	MeasureMean     Measure = "mean"
	MeasureP50      Measure = "p50"
	MeasureP90      Measure = "p90"
	MeasureP99      Measure = "p99"
	MeasureMax      Measure = "max"
)

var measures = []Measure{
	MeasureCalls, MeasureFailures, MeasureBytes, MeasureRead, MeasureWritten, MeasureTime,
	MeasureMean, MeasureP50, MeasureP90, MeasureP99, MeasureMax,
}

// isLatency reports whether it is no rate.
func (m Measure) isLatency() bool {
	return slices.Index(measures, m) > slices.Index(measures, MeasureTime)
}

// unit is what the measure is a number of: "", "bytes" or "ns".
func (m Measure) unit() string {
	switch m {
	case MeasureCalls, MeasureFailures:
		return ""
	case MeasureBytes, MeasureRead, MeasureWritten:
		return "bytes"
	}
	return "ns"
}

// Rule says what is abnormal. See ParseRule.
type Rule struct {
	Source  string // as it was written
	Measure Measure
	Ops     []event.Op   // nil: any
	By      aggregate.By // of what each is looked at by itself; 0: all together
	Above   bool         // the measure is abnormal above the limit, else below it
	// Limit is a number of the measure's unit (calls, bytes or ns; of rates: in a second),
	// or, if Sigmas is set, of standard deviations from the moving mean.
	Limit  float64
	Sigmas bool
	For    time.Duration // it has to be abnormal for so long; 0: one interval
}

// Needs returns the dimensions that a table must have for the rule.
func (r *Rule) Needs() aggregate.By {
	if r.Ops != nil {
		return r.By | aggregate.ByOp
	}
	return r.By
}

// Limits of a rule's text.
const (
	MaxRule    = 4096 // bytes
	MaxRuleFor = time.Hour
)

// ParseRule reads a rule. The error, if any, is a *predicate.Error.
//
//	rule    = [ measure "of" ] what [ "by" dimension { "," dimension } ] compare limit [ "for" TIME ]
//	measure = "calls" | "failures" | "bytes" | "read" | "written" | "time"
//	        | "mean" | "p50" | "p90" | "p99" | "max"
//	what    = "any" | "class" CLASS | OP { "," OP }
//	compare = ">" | "above" | "<" | "below"
//	limit   = NUMBER [UNIT] [ "/" "s" ] | NUMBER "sigma"
//
// Without a measure, calls are meant. Numbers have the units of filters; rates need "/s".
func ParseRule(src string) (*Rule, error) {
	if len(src) > MaxRule {
		text := fmt.Sprintf("the alarm has %d bytes, at most %d", len(src), MaxRule)
		return nil, &predicate.Error{What: "alarm", Source: src[:64], Message: text}
	}
	p := ruleParser{predicate.NewScanner("alarm", src)}
	r := &Rule{Source: strings.TrimSpace(src)}
	for _, part := range []func(*Rule) error{p.measure, p.what, p.by, p.limit, p.duration} {
		if err := part(r); err != nil {
			return nil, err
		}
	}
	if !p.AtEnd() {
		return nil, p.Unexpected(`"for" and a time, or the end`)
	}
	return r, nil
}

type ruleParser struct{ *predicate.Scanner }

// word takes a word, and returns where it stands.
func (p ruleParser) word() (w string, pos, end int) {
	pos = p.Pos()
	w = p.Word()
	return w, pos, pos + len(w)
}

// measure reads "MEASURE of". "read" and "time" can be operations, too: the "of" tells.
func (p ruleParser) measure(r *Rule) error {
	r.Measure = MeasureCalls
	before := *p.Scanner
	w, pos, end := p.word()
	if !p.TakeWord("of") {
		*p.Scanner = before
		return nil
	}
	r.Measure = Measure(strings.ToLower(w))
	if !slices.Contains(measures, r.Measure) {
		var names []string
		for _, m := range measures {
			names = append(names, string(m))
		}
		return p.Fail(pos, end, predicate.Suggest(w, names), "there is no measure %s", predicate.Quote(w))
	}
	return nil
}

func (p ruleParser) what(r *Rule) error {
	switch {
	case p.TakeWord("any"):
		return nil
	case p.TakeWord("class"):
		return p.class(r)
	}
	for {
		w, pos, end := p.word()
		if w == "" {
			return p.Unexpected(`an operation, "any" or "class"`)
		}
		op := event.ByName(strings.ToLower(w))
		if !event.Lookup(op).IsCall() {
			names := []string{"any", "class"}
			for _, s := range event.Specs() {
				if s.IsCall() {
					names = append(names, s.Name)
				}
			}
			return p.Fail(pos, end, predicate.Suggest(w, names), "there is no op %s", predicate.Quote(w))
		}
		r.Ops = append(r.Ops, op)
		if !p.Take(",") {
			return nil
		}
	}
}

func (p ruleParser) class(r *Rule) error {
	w, pos, end := p.word()
	if w == "" {
		return p.Unexpected("a class (such as data)")
	}
	var names []string
	for _, s := range event.Specs() {
		names = append(names, s.Class.String())
		if strings.EqualFold(s.Class.String(), w) && s.IsCall() {
			r.Ops = append(r.Ops, s.Op)
		}
	}
	if r.Ops == nil {
		return p.Fail(pos, end, predicate.Suggest(w, names), "there is no class %s of calls", predicate.Quote(w))
	}
	return nil
}

func (p ruleParser) by(r *Rule) error {
	if !p.TakeWord("by") {
		return nil
	}
	for {
		w, pos, end := p.word()
		one := aggregate.Dimension(strings.ToLower(w))
		if w == "" || one == 0 {
			if w == "" {
				return p.Unexpected("op, user, process or extension")
			}
			hint := predicate.Suggest(w, []string{"op", "user", "process", "extension"})
			return p.Fail(pos, end, hint, "%s is none of op, user, process and extension", predicate.Quote(w))
		}
		if one == aggregate.ByLatency {
			return p.Fail(pos, end, "ask for p99 or max", "an alarm cannot tell calls apart by latency")
		}
		if one == aggregate.BySignal {
			return p.Fail(pos, end, "", "an alarm counts calls, and no signals")
		}
		r.By |= one
		if !p.Take(",") {
			return nil
		}
	}
}

func (p ruleParser) limit(r *Rule) error {
	switch {
	case p.Take(">") || p.TakeWord("above"):
		r.Above = true
	case p.Take("<") || p.TakeWord("below"):
	default:
		if r.By == 0 {
			return p.Unexpected(`"by", ">" or "<"`)
		}
		return p.Unexpected(`">" or "<"`)
	}
	pos := p.Pos()
	v, unit, ok := p.Number()
	if !ok {
		return p.Unexpected("a number")
	}
	end := p.Pos()
	if strings.EqualFold(unit, "sigma") || strings.EqualFold(unit, "sigmas") {
		r.Limit, r.Sigmas = v, true
		return nil
	}
	scale, hint, ok := scaleOf(r.Measure, unit)
	switch {
	case !ok && hint == "":
		return p.Fail(pos, end, "", "%s is a plain number: %s cannot stand behind it", r.Measure, predicate.Quote(unit))
	case !ok:
		return p.Fail(pos, end, "", "%s needs one of the units %s", r.Measure, hint)
	}
	r.Limit = v * float64(scale)
	perSecond := p.Take("/")
	if perSecond {
		if w, pos, end := p.word(); w != "s" {
			return p.Fail(pos, max(end, pos), "", `rates are in a second: "/s"`)
		}
	}
	switch {
	case r.Measure.isLatency() && perSecond:
		return p.Fail(pos, p.Pos(), "", "%s is a time, no rate: without \"/s\"", r.Measure)
	case !r.Measure.isLatency() && !perSecond:
		return p.Fail(pos, end, `write "/s" behind the number`, "%s is a rate", r.Measure)
	}
	return nil
}

// scaleOf returns how much one of a unit is, in the unit of a measure. ok is false if the
// measure has no such unit; hint then names those that it has, "" if it is a plain number.
func scaleOf(m Measure, unit string) (scale int64, hint string, ok bool) {
	scale, ok = 1, unit == ""
	switch m.unit() {
	case "bytes":
		hint = "B, KiB, MiB, GiB, kB, MB, …"
		if unit != "" {
			scale, ok = predicate.ByteUnit(unit)
		}
	case "ns":
		hint = "ns, us, ms, s, m or h"
		scale, ok = predicate.TimeUnit(unit)
	}
	return scale, hint, ok
}

func (p ruleParser) duration(r *Rule) error {
	if !p.TakeWord("for") {
		return nil
	}
	pos := p.Pos()
	v, unit, ok := p.Number()
	if !ok {
		return p.Unexpected("a time (such as 3s)")
	}
	scale, ok := predicate.TimeUnit(unit)
	if !ok {
		return p.Fail(pos, p.Pos(), "ns, us, ms, s, m or h", "a time needs a unit")
	}
	if v *= float64(scale); v > float64(MaxRuleFor) {
		return p.Fail(pos, p.Pos(), "", "at most %s", MaxRuleFor)
	}
	r.For = time.Duration(v)
	return nil
}
