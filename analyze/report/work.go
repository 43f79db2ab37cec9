// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/iotape/iotape/event"

// Work is what sort of work a call is. Reports and pictures tell calls apart by it.
type Work uint8

// The sorts of work.
const (
	OtherWork Work = iota // no input or output: processes, memory, waiting
	Reading               // of files
	Writing
	Metadata // opens, names, attributes, locks
	Syncing
	Network // sockets and pipes
	Works   // how many there are
)

func (k Work) String() string {
	if k >= Works {
		return "?"
	}
	return [Works]string{"other", "read", "write", "metadata", "sync", "network"}[k]
}

// IsIO reports whether a sort of work counts as input or output of files.
func (k Work) IsIO() bool { return k == Reading || k == Writing || k == Metadata || k == Syncing }

// WorkOf returns what sort of work a call is, by what it moved.
func WorkOf(ev *event.Event, io *event.Traffic) Work {
	switch ev.Spec().Class {
	case event.Data:
		switch f := ev.Subject(); {
		case f.Is(event.TypeFIFO) || f.Is(event.TypeSocket):
			return Network
		case io.Writes:
			return Writing
		case io.Reads:
			return Reading
		}
		return Metadata
	case event.Descriptor, event.Meta, event.Namespace, event.Lock:
		return Metadata
	case event.Sync:
		return Syncing
	case event.Socket:
		return Network
	}
	return OtherWork
}
