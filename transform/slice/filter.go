// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// FilterOptions says what a filter can know of a tape.
func FilterOptions(t *trace.Tape) *predicate.Options {
	m := t.Manifest()
	o := &predicate.Options{StartNS: t.Host(0).Wall(m.FirstNS)}
	for i := range m.Hosts {
		o.Hosts = append(o.Hosts, filterHost(&m.Hosts[i]))
	}
	return o
}

// StreamFilter compiles a filter for the events of a stream: the conjunction of x, if it is
// not nil, and the recording's own, of which a recorder does only a part. It is nil if both
// want all events.
func StreamFilter(h *trace.Head, x *predicate.Expr) (*predicate.Graph, error) {
	if h.Filter != "" {
		own, err := predicate.Parse(h.Filter)
		if err != nil {
			return nil, err
		}
		x = predicate.And(x, own)
	}
	if x == nil {
		return nil, nil
	}
	return predicate.Compile(x,
		&predicate.Options{StartNS: h.WallNS, Hosts: []predicate.Host{filterHost(&trace.Host{Head: *h})}})
}

func filterHost(h *trace.Host) predicate.Host {
	arch, _ := event.ParseArch(h.Arch)
	return predicate.Host{Name: h.Host, Arch: arch, WallNS: h.Wall(0)}
}
