// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// top ranks files, directories, kinds of files, processes, hosts, containers and systemd units by what they moved
// and how long that took.
type top struct {
	by     [7]map[string]*topRow
	facts  facts.Tracker
	places map[string]facts.Place // by control group
}

var topNames = [7]string{"files", "directories", "extensions", "processes", "hosts", "containers", "units"}

type topRow struct {
	Name   string `json:"name"`
	Bytes  uint64 `json:"bytes"`
	Calls  uint64 `json:"calls"`
	TimeNS int64  `json:"time_ns"`
	Errors uint64 `json:"errors"`
	Opens  uint64 `json:"opens"`
}

// maxTop limits the names of each kind; what is beyond is under otherNames.
const (
	maxTop     = 128 << 10
	otherNames = "(others)"
)

func newTop(*collector) view {
	v := &top{}
	for i := range v.by {
		v.by[i] = map[string]*topRow{}
	}
	return v
}

// place returns where the process of an event runs.
func (v *top) place(ev *event.Event) (p facts.Place) {
	d := v.facts.Of(ev.Host, ev.PID)
	if d == nil {
		return p
	}
	p, known := v.places[d.Cgroup]
	if !known {
		if v.places == nil || len(v.places) >= maxTop {
			v.places = map[string]facts.Place{}
		}
		p = facts.PlaceIn(d.Cgroup)
		v.places[d.Cgroup] = p
	}
	return p
}

func (v *top) see(s *seen) {
	v.facts.See(s.Event)
	if s.Kind != event.Call || s.kind == report.OtherWork {
		return
	}
	name := ""
	if s.file != nil {
		name = s.file.path
	} else if len(s.Paths) > 0 {
		name = s.Paths[0].Reached()
	}
	v.count(3, s.proc.name(), s)
	v.count(4, fmt.Sprint(s.Host), s)
	at := v.place(s.Event)
	for i, name := range [...]string{5: at.Container, 6: at.Unit} {
		if name != "" {
			v.count(i, name, s)
		}
	}
	if name == "" {
		return
	}
	v.count(0, name, s)
	if name[0] != '/' {
		return // a file whose name is not known
	}
	v.count(1, directory(name), s)
	if s.file != nil {
		v.count(2, extension(name), s)
	}
}

func (v *top) count(i int, name string, s *seen) {
	m := v.by[i]
	r := m[name]
	if r == nil {
		if len(m) >= maxTop {
			name = otherNames
			r = m[name]
		}
		if r == nil {
			r = &topRow{Name: name}
			m[name] = r
		}
	}
	r.Calls++
	r.Bytes += uint64(s.io.Bytes())
	r.TimeNS += s.took
	if s.Errno != 0 {
		r.Errors++
	}
	if opensByName(s) {
		r.Opens++
	}
}

func (v *top) section(c *collector) page.Section {
	s := page.Section{ID: "top", Title: "The most of everything",
		Note: "Calls of files, sockets and pipes. Shares are of all that is of the same kind."}
	data := map[string]any{}
	orders := []struct {
		name  string
		value func(*topRow) float64
	}{
		{"bytes", func(r *topRow) float64 { return float64(r.Bytes) }}, {"time", func(r *topRow) float64 { return float64(r.TimeNS) }}, {"calls", func(r *topRow) float64 { return float64(r.Calls) }},
		{"errors", func(r *topRow) float64 { return float64(r.Errors) }}, {"opens", func(r *topRow) float64 { return float64(r.Opens) }},
	}
	for i, kind := range topNames {
		list := []topRow{}
		for _, r := range v.by[i] {
			x := *r
			switch {
			case i == 2 && x.Name == "":
				x.Name = "(none)"
			case i == 4 && x.Name != otherNames:
				var n uint32
				fmt.Sscan(x.Name, &n)
				x.Name = c.tape.Host(n).Head.Host
			}
			list = append(list, x)
		}
		if i == 4 && len(list) < 2 || i > 4 && len(list) == 0 {
			continue
		}
		ranks := map[string][]topRow{}
		for _, order := range orders {
			total := 0.0
			for j := range list {
				total += order.value(&list[j])
			}
			slices.SortFunc(list, func(a, b topRow) int {
				return cmp.Or(cmp.Compare(order.value(&b), order.value(&a)), cmp.Compare(a.Name, b.Name))
			})
			first := []topRow{}
			for _, r := range list[:min(len(list), c.o.Top)] {
				if order.value(&r) > 0 {
					first = append(first, r)
				}
			}
			ranks[order.name] = first
			if len(first) == 0 || i > 0 && order.name != "bytes" && order.name != "time" {
				continue
			}
			t := tableOf(fmt.Sprintf("%s by %s", title(kind), order.name),
				[]string{"share", "bytes", "time", "calls", "errors", "opens", "name"}, 0,
				first, 0, func(r *topRow) []string {
					return []string{Percent(order.value(r), total), Size(r.Bytes), span(r.TimeNS), Count(r.Calls),
						Count(r.Errors), Count(r.Opens), r.Name}
				})
			t.Of = len(list)
			s.Blocks = append(s.Blocks, t)
		}
		data[kind] = ranks
	}
	s.Data = data
	return s
}

func title(s string) string { return string(s[0]-'a'+'A') + s[1:] }

// failures are the calls that failed, by error, name and process: search storms.
type failures struct {
	by   map[failureKey]*failureRow
	more uint64
	errs map[string]uint64
}

type failureKey struct {
	op, err, name string
	proc          int
}

type failureRow struct {
	Error   string `json:"error"`
	Op      string `json:"op"`
	Process string `json:"process"`
	Name    string `json:"name"`
	Count   uint64 `json:"count"`
	TimeNS  int64  `json:"time_ns"`
}

func newFailures(*collector) view {
	return &failures{by: map[failureKey]*failureRow{}, errs: map[string]uint64{}}
}

func (v *failures) see(s *seen) {
	if s.Kind != event.Call || s.Errno == 0 {
		return
	}
	name := event.ErrnoName(s.Errno)
	v.errs[name]++
	key := failureKey{s.name, name, s.Name(), s.proc.id}
	r := v.by[key]
	if r == nil {
		if len(v.by) >= maxTop {
			v.more++
			return
		}
		r = &failureRow{Error: name, Op: s.name, Process: s.proc.name(), Name: s.Name()}
		v.by[key] = r
	}
	r.Count++
	r.TimeNS += s.took
}

// stormRow are the failed searches of a process for one last name.
type stormRow struct {
	Process string `json:"process"`
	Name    string `json:"name"` // the last part
	Places  int    `json:"places"`
	Count   uint64 `json:"count"`
}

func (v *failures) section(c *collector) page.Section {
	list, storms := []failureRow{}, map[[2]string]*stormRow{}
	for _, r := range v.by {
		list = append(list, *r)
		if r.Error == "ENOENT" && r.Name != "" {
			key := [2]string{r.Process, baseOf(r.Name)}
			if storms[key] == nil {
				storms[key] = &stormRow{Process: key[0], Name: key[1]}
			}
			storms[key].Places++
			storms[key].Count += r.Count
		}
	}
	slices.SortFunc(list, func(a, b failureRow) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Op, b.Op), cmp.Compare(a.Process, b.Process))
	})
	searched := []stormRow{}
	for _, r := range storms {
		if r.Count > 1 {
			searched = append(searched, *r)
		}
	}
	slices.SortFunc(searched, func(a, b stormRow) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Process, b.Process))
	})
	s := page.Section{ID: "failures", Title: "Failed calls",
		Note: "By error, operation, name and process. A search is for one name in several directories, or again and " +
			"again.",
		Data: map[string]any{"errors": v.errs, "calls": list[:min(len(list), 1000)],
			"searches": searched[:min(len(searched), 1000)], "not_told_apart": v.more}}
	s.Blocks = []page.Block{page.Line("errors: " + errorsText(v.errs)),
		tableOf("Calls", []string{"count", "time", "error", "operation", "process", "name"}, 0, list, 2*c.o.Top, func(r *failureRow) []string {
			return []string{Count(r.Count), span(r.TimeNS), r.Error, r.Op, r.Process, r.Name}
		}),
		tableOf("Searches for what is not there", []string{"failures", "places", "process", "name"}, 0, searched, c.o.Top, func(r *stormRow) []string {
			return []string{Count(r.Count), Count(uint64(r.Places)), r.Process, r.Name}
		})}
	return s
}

func baseOf(name string) string {
	for i := len(name) - 1; i > 0; i-- {
		if name[i-1] == '/' {
			return name[i:]
		}
	}
	return name
}
