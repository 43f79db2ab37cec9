// SPDX-License-Identifier: Apache-2.0

package aggregate

import (
	"fmt"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// By is a set of dimensions: what rows are told apart by.
type By uint16

// The dimensions. Their numbers are those of the kernel's programs, too.
const (
	ByOp        By = 1 << iota // operation
	ByUser                     // user id that files are accessed as
	ByProcess                  // process id and the name of the calling thread
	ByExtension                // what stands behind the last dot of a name
	ByLatency                  // power of two of the latency
	ByFile                     // name of the file
	ByDir                      // directory that the file is in
	ByContainer                // container of the process
	ByCgroup                   // control group of the process
	ByUnit                     // systemd unit of the process
	ByPod                      // pod of the process
	BySignal                   // signal that is delivered; rows are of signals, and not of calls
)

// ByPlace are the dimensions that follow from a process's control group.
const ByPlace = ByContainer | ByCgroup | ByUnit | ByPod

// Recorded are the dimensions that the kernel's programs do not know: calls have to be
// recorded to be told apart by them.
const Recorded = ByFile | ByDir | ByPlace | BySignal

// onlyOfCalls are the dimensions that signals have not.
const onlyOfCalls = ByOp | ByExtension | ByLatency | ByFile | ByDir

// dimensions are their names, in the order in which tables show them.
var dimensions = []struct {
	by   By
	name string
}{
	{ByPod, "pod"}, {ByContainer, "container"}, {ByUnit, "unit"}, {ByCgroup, "cgroup"}, {ByProcess, "process"}, {ByUser, "user"}, {BySignal, "signal"}, {ByOp, "op"},
	{ByDir, "dir"}, {ByFile, "file"}, {ByExtension, "extension"}, {ByLatency, "latency"},
}

// ParseBy reads names of dimensions with commas between them; "ext" is extension, "path" is file.
func ParseBy(text string) (By, error) {
	var by By
	for name := range strings.SplitSeq(text, ",") {
		one := Dimension(strings.TrimSpace(name))
		if one == 0 {
			return 0, fmt.Errorf("%q is none of op, user, process, container, pod, unit, cgroup, signal, file, dir, "+
				"extension and latency", strings.TrimSpace(name))
		}
		by |= one
	}
	if calls := by & onlyOfCalls; by&BySignal != 0 && calls != 0 {
		return 0, fmt.Errorf("signal cannot be combined with %s: signals are counted, and no calls", calls)
	}
	return by, nil
}

// Dimension returns the dimension of a name, 0 if there is none; "ext" is extension, "path" is file.
func Dimension(name string) By {
	switch name {
	case "ext":
		return ByExtension
	case "path":
		return ByFile
	}
	for _, d := range dimensions {
		if d.name == name {
			return d.by
		}
	}
	return 0
}

// Names returns the names of the dimensions, in the order in which tables show them.
func (b By) Names() []string {
	var names []string
	for _, d := range dimensions {
		if b&d.by != 0 {
			names = append(names, d.name)
		}
	}
	return names
}

// String returns what ParseBy reads.
func (b By) String() string { return strings.Join(b.Names(), ",") }

// Limits of what keys have.
const (
	MaxComm      = 15   // bytes of a thread's name
	MaxExtension = 15   // bytes; longer ones count as none
	MaxName      = 4096 // bytes of the name of a file; of longer ones the first
)

// Key says which calls a row is of. Fields of other dimensions than the table's are zero.
type Key struct {
	Op   event.Op // 0: not in the operation table
	UID  uint32
	PID  uint32
	Comm string // hostile: programs choose it
	Ext  string // hostile; "" if the name has none, or is not known
	// Names of a file and of its directory, as a program gave them; hostile. "" if the call is about no file.
	File, Dir string
	Place     facts.Place // hostile; the fields of a place that a process is in none of, or that is not known, are ""
	Signal    uint8       // number
	Octave    uint8       // 1 + the power of two of the latency in ns; 0: it is not known, or the call did not return
	Other     bool        // not one row but all calls that found no room; no other field is set
}

// In returns the key with the fields of the given dimensions alone.
func (k Key) In(by By) Key {
	if k.Other {
		return k
	}
	var p Key
	if by&ByOp != 0 {
		p.Op = k.Op
	}
	if by&ByUser != 0 {
		p.UID = k.UID
	}
	if by&ByProcess != 0 {
		p.PID, p.Comm = k.PID, k.Comm
	}
	if by&ByExtension != 0 {
		p.Ext = k.Ext
	}
	if by&ByFile != 0 {
		p.File = k.File
	}
	if by&ByDir != 0 {
		p.Dir = k.Dir
	}
	if by&ByContainer != 0 {
		p.Place.Container = k.Place.Container
	}
	if by&ByCgroup != 0 {
		p.Place.Cgroup = k.Place.Cgroup
	}
	if by&ByUnit != 0 {
		p.Place.Unit = k.Place.Unit
	}
	if by&ByPod != 0 {
		p.Place.Pod = k.Place.Pod
	}
	if by&BySignal != 0 {
		p.Signal = k.Signal
	}
	if by&ByLatency != 0 {
		p.Octave = k.Octave
	}
	return p
}

// Octave returns Key.Octave of a latency in ns.
func Octave(ns uint64) uint8 { return 1 + uint8(log2(ns)) }

// OctaveRange returns the latencies of an octave, from low to before high, in ns.
func OctaveRange(octave uint8) (low, high uint64) {
	if octave <= 1 {
		return 0, 2
	}
	o := min(octave, 64) - 1
	if o == 63 {
		return 1 << 63, 1<<64 - 1
	}
	return 1 << o, 2 << o
}
