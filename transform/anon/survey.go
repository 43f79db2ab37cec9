// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"path"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Survey counts what still tells things apart in a tape, whatever was replaced. It is also
// the JSON that `iotape anonymise --json` prints; fields are only ever added.
type Survey struct {
	Version int      `json:"version"` // 1
	Opened  []string `json:"as_recorded"`
	// Content says what became of it.
	Content trace.AnonymisedContent `json:"content"`
	Kernels []string                `json:"kernels"` // never replaced

	Files      uint64 `json:"files"` // regular ones that calls used
	BySize     Groups `json:"by_size"`
	ByShape    Groups `json:"by_shape"` // size, depth, length of the name, links
	ByUse      Groups `json:"by_use"`   // bytes read and written
	Extensions Groups `json:"extensions"`
	Rare       []Rare `json:"rare_extensions,omitempty"` // of fewer than RareBelow files

	Processes   uint64 `json:"processes"`
	ByCalls     Groups `json:"processes_by_calls"` // how many calls, and of how many kinds
	Users       int    `json:"users"`
	DurationNS  int64  `json:"duration_ns"`
	Distinct    uint64 `json:"distinct_ns"`  // durations of calls that occur once
	Calls       uint64 `json:"calls"`        // of which
	KeptNames   int    `json:"kept_names"`   // well-known names that paths hold, such as tmp
	Truncated   bool   `json:"truncated"`    // there was more than could be counted
	ChunksEqual bool   `json:"chunks_equal"` // equal chunks of content can be seen to be equal
}

// Groups says how many things share what can be seen of them (k-anonymity): one that is
// alone is known by it.
type Groups struct {
	Groups uint64 `json:"groups"`
	Alone  uint64 `json:"alone"`
	Few    uint64 `json:"few"` // in groups below RareBelow, those alone included
}

// RareBelow is the size below which a group is small.
const RareBelow = 5

// Rare is an extension of few files.
type Rare struct {
	Extension string `json:"extension"`
	Files     uint64 `json:"files"`
}

const (
	maxSurveyed = 1 << 20
	maxRare     = 100
)

type surveyedFile struct {
	size          int64
	read, written int64
	name          string
	nlink         uint32
}

type fileKey struct {
	host     uint32
	dev, ino uint64
}

type processKey struct{ host, pid uint32 }

type surveyedProcess struct {
	calls uint64
	ops   map[event.Op]bool
}

// Look surveys a tape.
func Look(t *trace.Tape) (*Survey, error) {
	m := t.Manifest()
	s := &Survey{Version: 1, Opened: []string{}, Kernels: []string{}, Content: trace.ContentKept}
	var sealed Fields
	if a := m.Anonymised; a != nil {
		s.Content = a.Content
		for name := range a.Fields {
			if f, ok := fieldByName(name); ok {
				sealed |= 1 << f
			}
		}
	}
	if s.Content != trace.ContentKept {
		sealed |= 1 << Content
	}
	for _, f := range (AllFields &^ sealed).List() {
		s.Opened = append(s.Opened, f.String())
	}
	for i := range m.Hosts {
		s.Kernels = append(s.Kernels, m.Hosts[i].Kernel+" "+m.Hosts[i].Arch)
	}
	s.ChunksEqual = s.Content != trace.ContentRemoved && m.Content.Chunks > 0
	s.DurationNS = m.LastNS - m.FirstNS
	return s, s.count(t)
}

func (s *Survey) count(t *trace.Tape) error {
	files, processes := map[fileKey]*surveyedFile{}, map[processKey]*surveyedProcess{}
	users, durations, words := map[uint32]bool{}, map[int64]uint64{}, map[string]bool{}
	for ev, err := range t.Events() {
		if err != nil {
			return err
		}
		users[ev.UID] = true
		if len(files) > maxSurveyed || len(processes) > maxSurveyed || len(durations) > maxSurveyed ||
			len(users) > maxSurveyed {
			s.Truncated = true
			break
		}
		for i := range ev.Files {
			s.file(ev, &ev.Files[i], files, words)
		}
		if ev.Kind != event.Call {
			continue
		}
		s.Calls++
		if took, known := ev.Took(); known {
			durations[took]++
		}
		key := processKey{ev.Host, ev.PID}
		p := processes[key]
		if p == nil {
			p = &surveyedProcess{ops: map[event.Op]bool{}}
			processes[key] = p
		}
		p.calls++
		p.ops[ev.Op] = true
		if f := ev.Subject(); f != nil {
			if known := files[fileKey{ev.Host, f.Dev, f.Ino}]; known != nil {
				moved := ev.Traffic()
				known.read += moved.Read
				known.written += moved.Written
			}
		}
	}
	s.Users, s.Files, s.Processes, s.KeptNames = len(users), uint64(len(files)), uint64(len(processes)), len(words)
	for _, n := range durations {
		if n == 1 {
			s.Distinct++
		}
	}
	s.groups(files, processes)
	return nil
}

// file notes what there is to see of a file.
func (s *Survey) file(ev *event.Event, f *event.File, files map[fileKey]*surveyedFile, words map[string]bool) {
	if !f.Is(event.TypeRegular) {
		return
	}
	key := fileKey{ev.Host, f.Dev, f.Ino}
	known := files[key]
	if known == nil {
		known = &surveyedFile{}
		files[key] = known
	}
	known.size, known.nlink = f.Size, f.Nlink
	if f.Path == "" || known.name == f.Path {
		return
	}
	known.name = f.Path
	for word := range strings.SplitSeq(f.Path, "/") {
		if kept[word] {
			words[word] = true
		}
	}
}

func (s *Survey) groups(files map[fileKey]*surveyedFile, processes map[processKey]*surveyedProcess) {
	type shape struct {
		size          int64
		depth, length int
		links         uint32
	}
	sizes, shapes, uses, extensions := map[int64]uint64{}, map[shape]uint64{},
		map[[2]int64]uint64{}, map[string]uint64{}
	for _, f := range files {
		name := path.Base(f.name)
		sizes[f.size]++
		shapes[shape{f.size, strings.Count(f.name, "/"), len(name), f.nlink}]++
		uses[[2]int64{f.read, f.written}]++
		if n := extension([]byte(name)); n > 0 {
			extensions[name[len(name)-n:]]++
		}
	}
	calls := map[[2]uint64]uint64{}
	for _, p := range processes {
		calls[[2]uint64{p.calls, uint64(len(p.ops))}]++
	}
	s.BySize, s.ByShape, s.ByUse, s.Extensions, s.ByCalls = group(sizes), group(shapes), group(uses),
		group(extensions), group(calls)
	s.rare(extensions)
}

func group[K comparable](counts map[K]uint64) (g Groups) {
	for _, n := range counts {
		g.Groups++
		if n == 1 {
			g.Alone++
		}
		if n < RareBelow {
			g.Few += n
		}
	}
	return g
}
