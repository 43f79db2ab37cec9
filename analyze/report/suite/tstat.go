// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/event"
)

// tstat is DFSTrace's first summary: how often each operation was called, how often it
// failed, and on which file system.
type tstat struct {
	systems map[systemKey]*system
	list    []*system
	dirs    map[fileKey]uint64 // devices by directory: where calls by name are that do not show it
	by      map[string]*tstatRow
	calls   uint64
	failed  uint64
}

type tstatRow struct {
	Op     string   `json:"op"`
	Calls  uint64   `json:"calls"`
	Share  float64  `json:"share"` // of all calls
	Failed uint64   `json:"failed"`
	On     []uint64 `json:"on"` // calls by file system, in the order of file_systems
}

// system is a file system: a device, and where its names begin.
type system struct {
	// Major:minor as stat has it; or what calls are about that are of no file system.
	Device string `json:"device"`
	Under  string `json:"under"`          // the directory that all names seen on it are in; "" if there were none
	Host   string `json:"host,omitempty"` // if the tape has several
	Calls  uint64 `json:"calls"`
	Failed uint64 `json:"failed"`

	number int
	named  bool
}

type systemKey struct {
	host uint32
	dev  uint64
	kind systemKind
}

// systemKind tells devices from what is none.
type systemKind uint8

const (
	onDevice systemKind = iota
	onPipe              // a socket, a pipe, or another file without a name
	onNone              // the call is about no file, or the tape does not show where that is
	onOthers            // beyond maxSystems
)

var systemNames = [...]string{onPipe: "sockets, pipes", onNone: "none known", onOthers: "others"}

// Limits of what is told apart, and of the columns that a table has.
const (
	maxSystems    = 256
	maxDirs       = 1 << 16
	systemColumns = 6
)

func newTstat(*collector) view {
	return &tstat{systems: map[systemKey]*system{}, dirs: map[fileKey]uint64{}, by: map[string]*tstatRow{}}
}

func (v *tstat) see(s *seen) {
	if s.Kind != event.Call {
		return
	}
	r := v.by[s.name]
	if r == nil {
		r = &tstatRow{Op: s.name}
		v.by[s.name] = r
	}
	fs := v.on(s)
	for len(r.On) <= fs.number {
		r.On = append(r.On, 0)
	}
	v.calls++
	r.Calls++
	r.On[fs.number]++
	fs.Calls++
	if s.Errno != 0 {
		v.failed++
		r.Failed++
		fs.Failed++
	}
}

// isPipe reports whether a mode is that of what has no file system: a pipe or FIFO, a
// socket, or something without a type (inode(7)).
func isPipe(mode uint32) bool {
	switch event.FileType(mode) {
	case event.TypeFIFO, event.TypeSocket, 0:
		return true
	}
	return false
}

// on returns the file system that a call is about.
func (v *tstat) on(s *seen) *system {
	key, name := systemKey{host: s.Host, kind: onNone}, ""
	f := s.Subject()
	if f != nil {
		name = f.Reached()
	}
	switch {
	case f != nil && f.Known && (isPipe(f.Mode)):
		key.kind = onPipe
	case f != nil && f.Known:
		key.kind, key.dev = onDevice, f.Dev
		v.learn(s.Host, f)
	default:
		if len(s.Paths) > 0 {
			name = s.Paths[0].Reached()
		}
		if dev, ok := v.deviceOf(s.Host, name); ok {
			key.kind, key.dev = onDevice, dev
		} else if strings.HasPrefix(name, "pipe:") || strings.HasPrefix(name, "socket:") {
			key.kind = onPipe
		}
	}
	fs := v.systems[key]
	if fs == nil {
		if len(v.list) >= maxSystems {
			key = systemKey{kind: onOthers}
			fs = v.systems[key]
		}
		if fs == nil {
			fs = &system{number: len(v.list)}
			v.systems[key] = fs
			v.list = append(v.list, fs)
		}
	}
	if strings.HasPrefix(name, "/") && fs.Under != "/" {
		fs.within(name)
	}
	return fs
}

// learn notes which device a directory is on.
func (v *tstat) learn(host uint32, f *event.File) {
	name := f.Reached()
	if !strings.HasPrefix(name, "/") {
		return
	}
	key := fileKey{host: host, path: name}
	if event.FileType(f.Mode) != event.TypeDir {
		key.path = path.Dir(name)
	}
	if _, ok := v.dirs[key]; ok || len(v.dirs) < maxDirs {
		v.dirs[key] = f.Dev
	}
}

// deviceOf returns the device of the nearest directory above a name whose device is known.
func (v *tstat) deviceOf(host uint32, name string) (dev uint64, ok bool) {
	for strings.HasPrefix(name, "/") {
		if dev, ok = v.dirs[fileKey{host: host, path: name}]; ok || name == "/" {
			return dev, ok
		}
		name = path.Dir(name)
	}
	return 0, false
}

// within widens the directory that all names are in.
func (fs *system) within(name string) {
	if !fs.named {
		fs.named, fs.Under = true, path.Dir(name)
	}
	for fs.Under != "/" && name != fs.Under && !strings.HasPrefix(name, fs.Under+"/") {
		fs.Under = path.Dir(fs.Under)
	}
}

func (v *tstat) section(c *collector) page.Section {
	hosts := len(c.tape.Manifest().Hosts)
	for key, fs := range v.systems {
		if key.kind == onDevice {
			fs.Device = fmt.Sprintf("%d:%d", major(key.dev), minor(key.dev))
		} else {
			fs.Device = systemNames[key.kind]
		}
		if hosts > 1 && key.kind != onOthers {
			fs.Host = c.tape.Host(key.host).Head.Host
		}
	}
	order := slices.Clone(v.list)
	slices.SortFunc(order, func(a, b *system) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Host, b.Host))
	})
	list := []tstatRow{}
	for _, r := range v.by {
		on := make([]uint64, len(order))
		for i, fs := range order {
			if fs.number < len(r.On) {
				on[i] = r.On[fs.number]
			}
		}
		r.On, r.Share = on, share(float64(r.Calls), float64(v.calls))
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b tstatRow) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Op, b.Op))
	})
	systems := []system{}
	for _, fs := range order {
		systems = append(systems, *fs)
	}
	head := []string{"operation", "calls", "of all", "failed", "of its calls"}
	columns := min(len(systems), systemColumns)
	for _, fs := range systems[:columns] {
		head = append(head, fs.Device)
	}
	return page.Section{ID: "tstat", Title: "Calls by file system",
		Note: "How often each operation was called and how often it failed, in all and by the device of the file " +
			"that it is about. A file system is told by its number (major:minor) and by the directory that all names " +
			"seen on it are in. Where a call does not show the device, as a lookup by name, it is that of the " +
			"nearest directory above that another call has shown.",
		Data: map[string]any{"calls": v.calls, "failed": v.failed, "file_systems": systems, "ops": list},
		Blocks: []page.Block{
			tableOf("", head, 1, list, 0, func(r *tstatRow) []string {
				cells := []string{r.Op, Count(r.Calls), Percent(r.Share, 1), Count(r.Failed),
					Percent(float64(r.Failed), float64(r.Calls))}
				for _, n := range r.On[:columns] {
					cells = append(cells, Count(n))
				}
				return cells
			}),
			tableOf("File systems", []string{"calls", "failed", "device", "names under"}, 2, systems, 2*c.o.Top, func(fs *system) []string {
				device := fs.Device
				if fs.Host != "" {
					device += " of " + fs.Host
				}
				return []string{report.Count(fs.Calls), Count(fs.Failed), device, fs.Under}
			}),
		}}
}
