// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/bytesize"
	"github.com/iotape/iotape/record/flight"
)

// ParseFlight reads what the flags --last and --dump-on of iotape record say. It returns nil
// if neither is given.
func ParseFlight(last string, dumpOn []string) (*Flight, error) {
	if last == "" {
		if len(dumpOn) > 0 {
			return nil, errors.New("--dump-on goes with --last")
		}
		return nil, nil
	}
	p := &Flight{}
	for item := range strings.SplitSeq(last, ",") {
		if d, err := time.ParseDuration(item); err == nil && d > 0 && p.Options.Age == 0 {
			p.Options.Age = d
		} else if size, err := bytesize.Parse(item); err == nil && size > 0 && p.Options.Bytes == 0 {
			p.Options.Bytes = size
		} else {
			return nil, fmt.Errorf("last %q is neither a time such as 30s, nor a size such as 512M, "+
				"nor both with a comma", last)
		}
	}
	if b := p.Options.Bytes; b != 0 && b < flight.MinBytes {
		return nil, fmt.Errorf("last %s: a flight recorder keeps %s or more", last, report.Bytes(flight.MinBytes))
	}
	for _, on := range dumpOn {
		switch on {
		case "exit!=0":
			p.OnExit = true
		case "end":
			p.OnEnd = true
		default:
			t, err := flight.ParseTrigger(on)
			if err != nil {
				return nil, fmt.Errorf("dump-on %s: %w", on, err)
			}
			p.Options.Triggers = append(p.Options.Triggers, t)
		}
	}
	return p, nil
}

// CheckFlight returns what of the plan does not go with a flight recorder, if it has one.
func (p *Plan) CheckFlight() error {
	switch {
	case p.Flight == nil:
	case len(p.Snapshots) > 0:
		return errors.New("--snapshot cannot be used with --last, which does not keep the first event")
	case p.Seal != SealAfter && p.Seal != "":
		return errors.New("--seal cannot be used with --last, which keeps the recording in memory")
	}
	return nil
}
