// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"fmt"
	"slices"
	"strings"
)

// Field is a type of values with a key of its own.
type Field uint8

// The fields.
const (
	Path    Field = iota // names of files, directories, local sockets, message queues; targets of links
	Arg                  // arguments of programs, command lines, texts that people wrote
	Comm                 // names of threads
	Host                 // host names and boot ids
	UID                  // users
	GID                  // groups
	PID                  // processes, threads, groups, sessions
	Inode                // inode numbers, file handles, ids of file systems
	Address              // addresses of sockets and network interfaces
	Port                 // of internet addresses
	Xattr                // names and values of extended attributes
	Time                 // wall clocks and the time since boot, moved by a constant
	Content              // what files, sockets and pipes hold, and all that is not understood
	numFields
)

var fieldNames = [numFields]string{"path", "arg", "comm", "host", "uid", "gid", "pid", "inode", "address",
	"port", "xattr", "time", "content"}

func (f Field) String() string {
	if f < numFields {
		return fieldNames[f]
	}
	return "unknown"
}

// Fields is a set of fields.
type Fields uint16

// AllFields is every field.
const AllFields Fields = 1<<numFields - 1

// Has reports whether a field is in the set.
func (s Fields) Has(f Field) bool { return s>>f&1 != 0 }

// List returns the fields in their order.
func (s Fields) List() (list []Field) {
	for f := range numFields {
		if s.Has(f) {
			list = append(list, f)
		}
	}
	return list
}

func (s Fields) String() string {
	var names []string
	for _, f := range s.List() {
		names = append(names, f.String())
	}
	return strings.Join(names, ",")
}

// ParseFields reads names of fields; none, or "all", is every field.
func ParseFields(names []string) (Fields, error) {
	var s Fields
	for _, name := range names {
		f, ok := fieldByName(name)
		switch {
		case ok:
			s |= 1 << f
		case name == "all":
			s = AllFields
		default:
			return 0, fmt.Errorf("there is no field %q; the fields are %s", name, AllFields)
		}
	}
	if s == 0 {
		s = AllFields
	}
	return s, nil
}

func fieldByName(name string) (Field, bool) {
	i := slices.Index(fieldNames[:], name)
	return Field(max(i, 0)), i >= 0
}
