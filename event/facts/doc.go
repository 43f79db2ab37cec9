// SPDX-License-Identifier: Apache-2.0

// Package facts has what a recording says of where a process runs and with what: its
// program, directories, control group, namespaces, users, capabilities, environment and
// arguments. An event of kind Described has them (Process, Describe, Of); the recorder writes one
// for each process that runs at the start of a recording, and one after each successful execve.
//
// What follows from these facts is derived when they are read: the systemd unit and the
// container of a control group (Units, Container, Pod). Tracker says of each process of a tape
// which facts hold, since children have those of their parents.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package facts
