// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// Row is what the catalogue says of a tape.
type Row struct {
	ID       string // of the tape: the first 128 bits of the BLAKE3 of its manifest, hexadecimal
	Tape     string // its name
	Location string // where it is: an absolute path, or s3://BUCKET/KEY
	Host     string // that was recorded, the first of several
	Hosts    []string
	Start    time.Time // of the first event, UTC
	End      time.Time // of the last one

	Bytes      uint64 // of the tape's files
	Events     uint64
	Processes  uint64
	Threads    uint64
	Moved      uint64 // bytes of content that calls moved
	Unique     uint64 // of these, different ones
	Lost       uint64 // records
	Losses     map[string]uint64
	Incomplete bool
	Reason     string // why, if Incomplete

	Begins, Ends string // why it begins and ends there; "" if it is no part of a longer recording
	Level        string // what was kept, of such a part
	BootID       string
	Backend      string
	Kernel       string
	Arch         string
	Program      string // that sealed it
	Command      string
	Content      string // what was kept of content
	Anonymised   bool

	suite.Summary
}

// Limits of what a row holds of a tape's words, whoever wrote them.
const (
	maxText    = 4096 // bytes
	maxEntries = 1024 // of a list or map
)

// OfTape makes the row of a tape. It reads all its events.
func OfTape(ctx context.Context, t *trace.Tape, location string, o *suite.Options) (*Row, error) {
	id, err := IDOf(t.Dir())
	if err != nil {
		return nil, err
	}
	m := t.Manifest()
	h := t.Host(0)
	r := &Row{
		ID: id, Tape: nameOf(location), Location: location, Host: h.Head.Host,
		Start: wallTime(h.Wall(m.FirstNS)), End: wallTime(h.Wall(m.LastNS)),
		Events: m.Counts.Events, Processes: m.Counts.Processes, Threads: m.Counts.Threads,
		Moved: m.Content.MovedBytes, Unique: m.Content.UniqueBytes, Losses: map[string]uint64{},
		Incomplete: m.Incomplete, Reason: m.Reason, Anonymised: m.Anonymised != nil,
		BootID: h.BootID, Backend: h.Backend, Kernel: h.Kernel, Arch: h.Arch, Program: m.Program,
		Command: cmp.Or(strings.Join(h.Command, " "), h.Target), Content: h.Content,
	}
	if r.End.Before(r.Start) {
		r.End = r.Start
	}
	for i := range m.Hosts {
		if name := m.Hosts[i].Head.Host; !slices.Contains(r.Hosts, name) && len(r.Hosts) < suite.MaxNames {
			r.Hosts = append(r.Hosts, name)
		}
	}
	for _, f := range m.Files {
		r.Bytes += uint64(f.Bytes)
	}
	losses := m.Losses
	if a := m.Assembly; a != nil {
		r.Host, r.Hosts = a.Host, []string{a.Host}
		r.Begins, r.Ends, r.Level = a.Begins.Reason, a.Ends.Reason, a.Level
		losses = append(losses[:len(losses):len(losses)], a.Losses...)
	}
	for _, l := range losses { // the recorder and its agent give one loss the same reason
		r.Losses[l.Reason] = max(r.Losses[l.Reason], l.Records)
	}
	for _, n := range r.Losses {
		r.Lost += n
	}
	s, err := suite.Summarise(ctx, t, o)
	if err != nil {
		return nil, fmt.Errorf("summarise %s: %w", t.Name(), err)
	}
	r.Summary = *s
	return r, nil
}

// IDOf returns the ID of the tape in a directory.
func IDOf(dir string) (string, error) {
	f, err := wholefile.Open(dir, trace.ManifestName)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := blake3.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

func nameOf(location string) string {
	return location[strings.LastIndexByte(strings.TrimRight(location, "/"), '/')+1:]
}

// wallTime is a time that every engine can hold, whatever a tape claims.
func wallTime(ns int64) time.Time {
	return time.Unix(0, max(ns, 0)).UTC()
}

// cut shortens a text.
func cut(s string) string {
	if len(s) > maxText {
		return s[:maxText-3] + "..."
	}
	return s
}

// largest keeps the entries with the largest numbers.
func largest(m map[string]uint64) map[string]uint64 {
	if len(m) <= maxEntries {
		return m
	}
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	out := make(map[string]uint64, maxEntries)
	for _, name := range names[:maxEntries] {
		out[cut(name)] = m[name]
	}
	return out
}
