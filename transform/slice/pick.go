// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// Pick says in words which events of a tape are wanted, as the flags of iotape slice do.
// The zero value picks all. Errors name the flags.
type Pick struct {
	// From and To are the first and the last event: the number of an event, a duration
	// since the recording's start, a time of RFC 3339, or "note:" and the text of a note,
	// of which the first one counts; "" is the tape's end.
	From, To string
	// Notes, "FIRST,LAST", are the texts of two notes: From the first of them, To the next
	// one with the second text.
	Notes   string
	Host    string   // the name of the one host to keep, or its number from 0
	PIDs    []uint   // calls of these processes
	Tree    bool     // and of their descendants
	Paths   []string // calls on files whose names fit one of these globs
	Ops     []string // these calls, by name
	Classes []string // calls of these classes, by name
}

// All reports whether nothing is left out by time, process or host.
func (p *Pick) All() bool {
	return p.From == "" && p.To == "" && p.Notes == "" && p.Host == "" && len(p.PIDs) == 0 && !p.Tree
}

// Filters returns expressions of the filter language that pick the calls; all of them have
// to hold.
func (p *Pick) Filters() ([]string, error) {
	if p.Tree && len(p.PIDs) == 0 {
		return nil, errors.New("--tree is for the processes of --pid")
	}
	for _, glob := range p.Paths {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("--path %s: %w", glob, err)
		}
	}
	for _, name := range p.Ops {
		if event.ByName(name) == event.OpUnknown {
			return nil, fmt.Errorf("--op %s: there is no such call; iotape ops lists them", name)
		}
	}
	for _, name := range p.Classes {
		if _, ok := event.ClassByName(name); !ok {
			return nil, fmt.Errorf("--class %s: there is no such class", name)
		}
	}
	var filters, pids, paths []string
	for _, pid := range p.PIDs {
		pids = append(pids, strconv.FormatUint(uint64(pid), 10))
	}
	if p.Tree {
		filters = append(filters, "descendant of "+strings.Join(pids, " or descendant of "))
		pids = nil
	}
	for _, glob := range p.Paths {
		paths = append(paths, predicate.Quote(glob))
	}
	for _, pick := range []struct {
		test   string
		values []string
	}{{"pid in", pids}, {"path glob", paths}, {"op in", p.Ops}, {"class in", p.Classes}} {
		if len(pick.values) > 0 {
			filters = append(filters, pick.test+" {"+strings.Join(pick.values, ", ")+"}")
		}
	}
	return filters, nil
}

// Apply puts what is picked by time and by host into the options of Tape.
func (p *Pick) Apply(t *trace.Tape, o *Options) error {
	if err := p.between(t, o); err != nil {
		return err
	}
	if err := bound(t, "from", p.From, 0, &o.From, &o.FromNS); err != nil {
		return err
	}
	if err := bound(t, "to", p.To, 1, &o.To, &o.ToNS); err != nil {
		return err
	}
	if p.Host == "" {
		return nil
	}
	var err error
	o.Host, err = findHost(t, p.Host)
	o.OneHost = err == nil
	return err
}

// bound reads --from or --to. past is added to the number of an event: To is behind the last.
func bound(t *trace.Tape, flag, text string, past uint64, seq *uint64, ns *int64) error {
	if text == "" {
		return nil
	}
	if note, ok := strings.CutPrefix(text, notePrefix); ok {
		n, err := findNote(t, note, 0)
		if err != nil {
			return fmt.Errorf("--%s %s: %w", flag, text, err)
		}
		*seq = n + past
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 63); err == nil {
		*seq = n + past
		return nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		*ns = t.Host(0).Wall(t.Manifest().FirstNS) + d.Nanoseconds()
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("--%s %s: neither the number of an event, nor 2.5s, nor a time as 2026-05-01T12:00:00Z, nor "+
			"note:TEXT", flag, text)
	}
	*ns = at.UnixNano()
	return nil
}

// findHost reads --host.
func findHost(t *trace.Tape, host string) (uint32, error) {
	var found []int
	var names []string
	for i := range t.Manifest().Hosts {
		name := t.Host(uint32(i)).Host
		names = append(names, name)
		if name == host || strconv.Itoa(i) == host {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("--host %s: the tape is of %s", host, strings.Join(names, ", "))
	case 1:
		return uint32(found[0]), nil
	}
	return 0, fmt.Errorf("--host %s: several recordings in the tape are of it; give one of the numbers %v", host, found)
}
