// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/trace"
)

// chain puts the parts of rotated recordings together, in their order. Every other tape is alone.
func chain(tapes []*trace.Tape) (chains [][]*trace.Tape, err error) {
	of := map[string]int{}
	for _, t := range tapes {
		r := rotationOf(t)
		if r == nil {
			chains = append(chains, []*trace.Tape{t})
			continue
		}
		i, ok := of[r.Recording]
		if !ok {
			i = len(chains)
			of[r.Recording] = i
			chains = append(chains, nil)
		}
		chains[i] = append(chains[i], t)
	}
	for _, parts := range chains {
		slices.SortStableFunc(parts, func(a, b *trace.Tape) int {
			return cmp.Compare(number(a), number(b))
		})
		for i := 1; i < len(parts); i++ {
			a, b := number(parts[i-1]), number(parts[i])
			switch {
			case a == b:
				return nil, fmt.Errorf("%s and %s are the same part of a recording", parts[i-1].Name(), parts[i].Name())
			case b > a+1:
				return nil, hint.With(fmt.Errorf("a part is missing between %s and %s of one recording",
					parts[i-1].Name(), parts[i].Name()),
					"name all parts, or merge those before and those behind it by themselves")
			}
		}
	}
	return chains, nil
}

// rotationOf returns which part of a recording a tape is, nil if it is a whole one.
func rotationOf(t *trace.Tape) *trace.Rotation {
	if hosts := t.Manifest().Hosts; len(hosts) == 1 {
		return hosts[0].Rotation
	}
	return nil
}

// number returns the number of a part, 0 of other tapes.
func number(t *trace.Tape) int {
	if r := rotationOf(t); r != nil {
		return r.Part
	}
	return 0
}

// hostsOf returns the hosts of a chain. From its first part on it is a recording as others.
func hostsOf(parts []*trace.Tape) []trace.Host {
	hosts := slices.Clone(parts[0].Manifest().Hosts)
	if len(parts) > 1 || number(parts[0]) == 1 {
		hosts[0].Rotation = nil
	}
	return hosts
}

// open begins with the present part.
func (s *source) open(tw *trace.TapeWriter) {
	s.tape, s.state = s.parts[s.part], 0
	s.events, s.copier = s.tape.NewEventReader(), trace.NewCopier(s.tape, tw)
	if r := rotationOf(s.tape); r != nil && s.part > 0 {
		s.state = r.StateNS
	}
}

// read reads the next event of all parts.
func (s *source) read(tw *trace.TapeWriter, ev *event.Event) error {
	for {
		err := s.events.Next(ev)
		switch {
		case err == io.EOF && s.part+1 < len(s.parts):
			s.part++
			s.open(tw)
		case err != nil:
			return err
		case s.state != 0 && ev.Kind != event.Call && ev.Exit == s.state: // the part before has what made it
		default:
			s.state = 0
			return nil
		}
	}
}
