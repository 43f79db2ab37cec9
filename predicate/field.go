// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"math"
	"slices"
)

// fieldID numbers what a test can look at.
type fieldID uint8

const (
	fieldOp fieldID = iota
	fieldClass
	fieldKind
	fieldNR
	fieldPID
	fieldTID
	fieldPPID
	fieldPGRP
	fieldSID
	fieldUID
	fieldGID
	fieldHost
	fieldSeq
	fieldTime
	fieldWall // time compared with a wall-clock time
	fieldLatency
	fieldDelayBefore
	fieldDelayWithin
	fieldResult
	fieldErrno
	fieldOffset
	fieldCount
	fieldBytes
	fieldFD
	fieldDev
	fieldIno
	fieldSize
	fieldFileType
	fieldFlags
	fieldComm
	fieldExe
	fieldPath
	fieldName
	fieldExt
	fieldSignal
	fieldAddr
	fieldPort
	fieldLocal
	fieldLocalPort
	fieldPeer
	fieldPeerPort
	fieldStack
	fieldFailed
	fieldInterrupted
	fieldIncomplete
	fieldCompat
	fieldMissed
	fieldCgroup
	fieldContainer
	fieldPod
	fieldUnit
	numFields
)

// fieldType says what a field is compared with.
type fieldType uint8

const (
	typeNumber fieldType = iota
	typeBytes            // number with units of bytes
	typeSpan             // number of ns, with units of time
	typeTime             // since the start, or a wall-clock time
	typeErrno
	typeSignal
	typeDevice
	typeFlags
	typeFile  // type of a file
	typeOp    // name of an operation
	typeClass // name of a class
	typeKind  // kind of an event
	typeHost
	typeText
	typeAddress
	typeBool
)

// field is a row of the language's table.
type field struct {
	id      fieldID
	name    string
	aliases []string
	typ     fieldType
	every   bool // every event has exactly one value
	several bool // an event can have several values
	lo, hi  int64
	cost    int // of a test, in ns, about
	about   string
}

const (
	maxU32 = math.MaxUint32
	maxI64 = math.MaxInt64
	minI64 = math.MinInt64
)

// fields is the table. Its order is that of fieldID.
var fields = [numFields]field{
	fieldOp:          {name: "op", aliases: []string{"call", "syscall"}, typ: typeOp, every: true, cost: 1, about: "operation, by its name in the operation table (iotape ops); signal for delivered signals"},
	fieldClass:       {name: "class", typ: typeClass, every: true, cost: 1, about: "data, descriptor, meta, namespace, sync, lock, memory, process, socket, wait or raw"},
	fieldKind:        {name: "kind", typ: typeKind, every: true, cost: 1, about: "call, exited, loss, note, forked, started, inherited, woken, signal or described"},
	fieldNR:          {name: "nr", typ: typeNumber, hi: maxU32, cost: 1, about: "system-call number on the recorded architecture"},
	fieldPID:         {name: "pid", typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "process"},
	fieldTID:         {name: "tid", typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "thread"},
	fieldPPID:        {name: "ppid", typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "parent process"},
	fieldPGRP:        {name: "pgrp", aliases: []string{"pgid"}, typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "process group"},
	fieldSID:         {name: "sid", aliases: []string{"session"}, typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "session"},
	fieldUID:         {name: "uid", aliases: []string{"user"}, typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "user as whom files are accessed, by number or by its name on this machine"},
	fieldGID:         {name: "gid", aliases: []string{"group"}, typ: typeNumber, every: true, hi: maxU32, cost: 1, about: "group as which files are accessed, by number or name"},
	fieldHost:        {name: "host", typ: typeHost, every: true, hi: maxU32, cost: 1, about: "machine, by its name or its number from 0"},
	fieldSeq:         {name: "seq", typ: typeNumber, every: true, hi: maxI64, cost: 1, about: "number of the event in the tape, from 0"},
	fieldTime:        {name: "time", typ: typeTime, every: true, lo: minI64, hi: maxI64, cost: 2, about: "entry, since the recording's start (2.5s) or by the wall clock (\"2026-05-01T12:00:00Z\")"},
	fieldWall:        {name: "time", typ: typeTime, every: true, lo: minI64, hi: maxI64, cost: 2},
	fieldLatency:     {name: "latency", aliases: []string{"duration"}, typ: typeSpan, hi: maxI64, cost: 1, about: "from entry to return"},
	fieldDelayBefore: {name: "delay_before", typ: typeSpan, hi: maxU32, cost: 1, about: "how long the thread waited for a processor since its call before, or a request to a block device was queued; known with eBPF only"},
	fieldDelayWithin: {name: "delay_within", typ: typeSpan, hi: maxU32, cost: 1, about: "and during the call"},
	fieldResult:      {name: "result", aliases: []string{"ret"}, typ: typeBytes, lo: minI64, hi: maxI64, cost: 1, about: "what the call returned; -1 if it failed"},
	fieldErrno:       {name: "errno", aliases: []string{"error"}, typ: typeErrno, hi: 4095, cost: 1, about: "error, by name or number; 0 if the call succeeded"},
	fieldOffset:      {name: "offset", typ: typeBytes, hi: maxI64, cost: 1, about: "effective file offset of a call that moves data"},
	fieldCount:       {name: "count", typ: typeBytes, hi: maxI64, cost: 1, about: "bytes asked for"},
	fieldBytes:       {name: "bytes", typ: typeBytes, hi: maxI64, cost: 12, about: "bytes of content that the call moved"},
	fieldFD:          {name: "fd", typ: typeNumber, several: true, lo: math.MinInt32, hi: math.MaxInt32, cost: 3, about: "descriptors that the event used or made"},
	fieldDev:         {name: "dev", aliases: []string{"device"}, typ: typeDevice, several: true, lo: minI64, hi: maxI64, cost: 3, about: "device of the files, as 8:1 or a number"},
	fieldIno:         {name: "ino", aliases: []string{"inode"}, typ: typeNumber, several: true, lo: minI64, hi: maxI64, cost: 3, about: "inode of the files"},
	fieldSize:        {name: "size", typ: typeBytes, several: true, hi: maxI64, cost: 3, about: "size of the files after the call"},
	fieldFileType:    {name: "type", typ: typeFile, several: true, hi: 15, cost: 3, about: "type of the files: file, dir, link, char, block, pipe, socket or anon"},
	fieldFlags:       {name: "flags", typ: typeFlags, several: true, cost: 5, about: "open flags: of the files, and those that open was given"},
	fieldComm:        {name: "comm", aliases: []string{"process"}, typ: typeText, cost: 3, about: "the kernel's name of the thread, at most 15 bytes"},
	fieldExe:         {name: "exe", aliases: []string{"executable"}, typ: typeText, cost: 20, about: "program that the process runs, as it was given to execve; of one that ran before the recording, its file"},
	fieldPath:        {name: "path", aliases: []string{"file"}, typ: typeText, several: true, cost: 8, about: "names of the files and of path arguments, absolute"},
	fieldName:        {name: "name", typ: typeText, several: true, cost: 10, about: "last part of these"},
	fieldExt:         {name: "ext", aliases: []string{"extension"}, typ: typeText, several: true, cost: 10, about: "what stands behind the last dot of that"},
	fieldSignal:      {name: "signal", aliases: []string{"sig"}, typ: typeSignal, hi: 64, cost: 1, about: "signal that was delivered, or that ended the thread, by name (SIGTERM, TERM) or number"},
	fieldAddr:        {name: "addr", aliases: []string{"address"}, typ: typeAddress, several: true, cost: 25, about: "addresses of sockets: 10.0.0.7, 10.0.0.0/8, ::1, or the path of a local one"},
	fieldPort:        {name: "port", typ: typeNumber, several: true, hi: 65535, cost: 25, about: "ports of sockets, by number or by the service's name on this machine"},
	fieldLocal:       {name: "local", typ: typeAddress, several: true, cost: 25, about: "addresses of the sockets' own ends, as addr"},
	fieldLocalPort:   {name: "local_port", typ: typeNumber, several: true, hi: 65535, cost: 25, about: "ports of these"},
	fieldPeer:        {name: "peer", typ: typeAddress, several: true, cost: 25, about: "addresses of what the sockets are connected to, as addr"},
	fieldPeerPort:    {name: "peer_port", typ: typeNumber, several: true, hi: 65535, cost: 25, about: "ports of these"},
	fieldStack:       {name: "stack", typ: typeText, several: true, cost: 30, about: "functions of the call's stack, and the files that they are in, if it was recorded (iotape record --stacks)"},
	fieldFailed:      {name: "failed", typ: typeBool, cost: 1, about: "the call returned an error"},
	fieldInterrupted: {name: "interrupted", typ: typeBool, cost: 1, about: "its return was not seen"},
	fieldIncomplete:  {name: "incomplete", typ: typeBool, cost: 1, about: "some of its bytes could not be recorded"},
	fieldCompat:      {name: "compat", typ: typeBool, cost: 1, about: "made by a 32-bit program"},
	fieldMissed:      {name: "missed", typ: typeBool, cost: 1, about: "a page that it read was not in the page cache; known with --block-requests only"},
	fieldCgroup:      {name: "cgroup", typ: typeText, cost: 20, about: "path of the process's control group (version 2), below the hierarchy's root"},
	fieldContainer:   {name: "container", typ: typeText, several: true, cost: 20, about: "container of the process, by its ID or the first 12 digits of that; LXC's and systemd-nspawn's by their names"},
	fieldPod:         {name: "pod", typ: typeText, cost: 20, about: "UID of the process's Kubernetes pod"},
	fieldUnit:        {name: "unit", aliases: []string{"service"}, typ: typeText, several: true, cost: 20, about: "systemd unit of the process, with or without its ending: ssh.service, ssh"},
}

// fieldNames holds the numbers of fields by all their names.
var fieldNames = func() map[string]fieldID {
	m := map[string]fieldID{}
	for i := range fields {
		f := &fields[i]
		f.id = fieldID(i)
		if f.id == fieldWall {
			continue
		}
		m[f.name] = f.id
		for _, a := range f.aliases {
			m[a] = f.id
		}
	}
	return m
}()

// knownNames lists all names of fields, for suggestions.
var knownNames = func() []string {
	var names []string
	for n := range fieldNames {
		names = append(names, n)
	}
	slices.Sort(names)
	return append(names, "descendant", "true", "false", "not")
}()

// Field describes a field, for documentation.
type Field struct {
	Name    string
	Aliases []string
	About   string // what it is
}

// Fields returns all fields of the language, in the order of its documentation.
func Fields() []Field {
	var list []Field
	for i := range fields {
		if f := &fields[i]; f.id != fieldWall {
			list = append(list, Field{f.name, slices.Clone(f.aliases), f.about})
		}
	}
	return list
}
