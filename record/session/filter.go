// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"runtime"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/transform/slice"
)

// FilterOptions says what filters can know of a recording that begins here and now.
func FilterOptions() *predicate.Options {
	host, _ := os.Hostname()
	arch, _ := event.ParseArch(runtime.GOARCH)
	clock, wall := capture.Clocks()
	return &predicate.Options{Hosts: []predicate.Host{{Name: host, Arch: arch, WallNS: wall - clock}}, StartNS: wall}
}

// Prefilter leaves out of a recording what the filter never picks. What programs do with
// files through mappings of them is left out as a whole, or not at all; keepMmap leaves
// that as it is.
func (p *Plan) Prefilter(g *predicate.Graph, keepMmap bool) {
	s := PrefilterOf(g)
	never := func(op event.Op) bool { return s.Entries[op] == predicate.PrefilterDrop }
	p.Capture.Prefilter = s
	switch {
	case keepMmap || p.Capture.Running() || !never(event.OpMmapPread):
	case never(event.OpMmapPwrite):
		p.Capture.Mmap = capture.MmapOff
	case p.Capture.Mmap == capture.MmapData:
		p.Capture.Mmap = capture.MmapWritten
	}
}

// PrefilterOf is what of a filter can be decided where calls are recorded.
func PrefilterOf(g *predicate.Graph) *predicate.Prefilter {
	return g.Prefilter(func(op event.Op) bool {
		return op == event.OpMmapPread || op == event.OpMmapPwrite || slice.MayLeaveOut(op) && !event.CarriesNote(op)
	})
}
