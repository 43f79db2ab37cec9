// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
)

// Numbers of the pieces of a record (trace.RecProcess), and of the buffers of an event: the latter has
// the first three only.
const (
	PartFacts  = 0 // text, see Process.Append
	PartEnv    = 1 // the environment: strings, each with a NUL
	PartArgs   = 2 // the arguments of a process that ran before the recording, likewise
	PartKernel = 3 // what the eBPF programs read, see FromKernel
	PartCgroup = 4 // names of the control group and of those above it but the root, the last first, each with a NUL
	PartExe    = 5 // the file that the process executes, see Executed
)

// Namespaces are the names of the namespaces in Process.Namespaces, in their order there
// (/proc/PID/ns/).
var Namespaces = [...]string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

// IDs are four numbers of a user or group.
type IDs struct{ Real, Effective, Saved, FS uint32 }

// Process says where a process runs, and with what. What is not known is empty.
type Process struct {
	Exe    string // program, without symbolic links
	Cwd    string // working directory
	Root   string // root directory, if it is not the recorder's
	Cgroup string // path of the version 2 control group, below the hierarchy's root

	UID, GID   *IDs
	Groups     []uint32 // supplementary; nil: not known
	Caps       *uint64  // effective capabilities, a bit each
	Namespaces [len(Namespaces)]uint64
}

// The keys of the text.
const (
	keyExe    = "exe"
	keyCwd    = "cwd"
	keyRoot   = "root"
	keyCgroup = "cgroup"
	keyUID    = "uid"
	keyGID    = "gid"
	keyGroups = "groups"
	keyCaps   = "caps"
	keyNS     = "ns:"
)

// Append appends the text of the facts: lines of a key, "=" and a value, each with a NUL.
func (f *Process) Append(b []byte) []byte {
	put := func(key, value string) {
		if value != "" {
			b = append(append(append(append(b, key...), '='), value...), 0)
		}
	}
	put(keyExe, f.Exe)
	put(keyCwd, f.Cwd)
	put(keyRoot, f.Root)
	put(keyCgroup, f.Cgroup)
	put(keyUID, f.UID.String())
	put(keyGID, f.GID.String())
	if f.Groups != nil {
		b = append(append(append(b, keyGroups...), '='), joinNumbers(f.Groups)...)
		b = append(b, 0)
	}
	if f.Caps != nil {
		put(keyCaps, strconv.FormatUint(*f.Caps, 16))
	}
	for i, n := range f.Namespaces {
		if n != 0 {
			put(keyNS+Namespaces[i], strconv.FormatUint(n, 10))
		}
	}
	return b
}

func joinNumbers(list []uint32) []byte {
	var b []byte
	for i, n := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendUint(b, uint64(n), 10)
	}
	return b
}

// String returns the numbers with blanks between them, "" for nil.
func (i *IDs) String() string {
	if i == nil {
		return ""
	}
	return string(joinNumbers([]uint32{i.Real, i.Effective, i.Saved, i.FS}))
}

// maxGroups bounds the groups that are read (NGROUPS_MAX, linux/limits.h).
const maxGroups = 1 << 16

// Parse reads the text of facts. Keys that it does not know, and values that are none, are left out.
func Parse(text []byte) *Process {
	f := new(Process)
	for line := range bytes.SplitSeq(text, []byte{0}) {
		key, value, ok := strings.Cut(string(line), "=")
		if !ok {
			continue
		}
		switch key {
		case keyExe:
			f.Exe = value
		case keyCwd:
			f.Cwd = value
		case keyRoot:
			f.Root = value
		case keyCgroup:
			f.Cgroup = value
		case keyUID:
			f.UID = parseIDs(value)
		case keyGID:
			f.GID = parseIDs(value)
		case keyGroups:
			f.Groups = parseNumbers(value)
		case keyCaps:
			if n, err := strconv.ParseUint(value, 16, 64); err == nil {
				f.Caps = &n
			}
		default:
			i := slices.Index(Namespaces[:], strings.TrimPrefix(key, keyNS))
			if n, err := strconv.ParseUint(value, 10, 64); err == nil && i >= 0 && strings.HasPrefix(key, keyNS) {
				f.Namespaces[i] = n
			}
		}
	}
	return f
}

func parseNumbers(text string) []uint32 {
	list := []uint32{}
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil || len(list) >= maxGroups {
			break
		}
		list = append(list, uint32(n))
	}
	return list
}

func parseIDs(text string) *IDs {
	n := parseNumbers(text)
	if len(n) != 4 {
		return nil
	}
	return &IDs{n[0], n[1], n[2], n[3]}
}

// The layout of PartKernel (struct process_facts in record/capture/ebpf/bpf/process.h).
const (
	kernelIDs    = 0 // 8 numbers of users and groups, 4 bytes each
	kernelCaps   = 32
	kernelNS     = 40 // of Namespaces, 4 bytes each
	kernelGroups = 68 // how many there are
	kernelList   = 72 // the first of them, 4 bytes each
)

// FromKernel reads PartKernel and PartCgroup of a record, nil if it has none. It returns nil if the former is damaged.
func FromKernel(b, cgroup []byte) *Process {
	if len(b) < kernelList {
		return nil
	}
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	ids := func(at int) *IDs { return &IDs{number(at), number(at + 4), number(at + 8), number(at + 12)} }
	caps := binary.LittleEndian.Uint64(b[kernelCaps:])
	f := &Process{UID: ids(kernelIDs), GID: ids(kernelIDs + 16), Caps: &caps, Groups: []uint32{}}
	for i := range f.Namespaces {
		f.Namespaces[i] = uint64(number(kernelNS + 4*i))
	}
	total := number(kernelGroups)
	for at := kernelList; at+4 <= len(b) && uint32(len(f.Groups)) < total; at += 4 {
		f.Groups = append(f.Groups, number(at))
	}
	if uint32(len(f.Groups)) < total {
		f.Groups = nil // more than the programs read
	}
	f.Cgroup = joinParts(cgroup)
	return f
}

// Executed reads PartExe of a record: device (as the kernel has it), inode number and name in its directory of the
// file that the process executes, which is the interpreter of a script. ok is false if there is none.
func Executed(b []byte) (dev uint32, ino uint64, name string, ok bool) {
	const devAt, nameAt = 8, 16
	if len(b) <= nameAt {
		return 0, 0, "", false
	}
	text, _, _ := bytes.Cut(b[nameAt:], []byte{0})
	return binary.LittleEndian.Uint32(b[devAt:]), binary.LittleEndian.Uint64(b), string(text), len(text) > 0
}

// joinParts makes a path of the names in PartCgroup, "" of nil.
func joinParts(b []byte) string {
	if b == nil {
		return ""
	}
	parts := Strings(b)
	slices.Reverse(parts)
	return "/" + strings.Join(parts, "/")
}

// Describe makes an event one of kind Described. env and args are nil if they are not known.
func Describe(ev *event.Event, p *Process, env, args []byte) {
	ev.Kind, ev.Op = event.Described, event.OpUnknown
	ev.Files, ev.Paths = nil, nil
	ev.Offset, ev.Count = -1, -1
	text := p.Append(nil)
	ev.Bufs = []event.Buf{{Arg: PartFacts, Kind: event.KindText, Len: int64(len(text)), Inline: text}}
	for part, b := range [...][]byte{PartEnv: env, PartArgs: args} {
		if b != nil {
			ev.Bufs = append(ev.Bufs,
				event.Buf{Arg: int8(part), Kind: event.KindStrings, Len: int64(len(b)), Inline: b})
		}
	}
}

// Of returns the facts of an event of kind Described; nil of others.
func Of(ev *event.Event) *Process {
	if ev.Kind != event.Described {
		return nil
	}
	return Parse(inline(ev, PartFacts))
}

// Env returns the environment of an event of kind Described: names, or names and values with "=" between them.
// known is false if it was not recorded.
func Env(ev *event.Event) (list []string, known bool) {
	if ev.Kind != event.Described || ev.BufArg(PartEnv) == nil {
		return nil, false
	}
	return Strings(inline(ev, PartEnv)), true
}

// Args returns the arguments of an event of kind Described, nil if it has none.
func Args(ev *event.Event) []string {
	if ev.Kind != event.Described {
		return nil
	}
	return Strings(inline(ev, PartArgs))
}

func inline(ev *event.Event, part int) []byte {
	if b := ev.BufArg(part); b != nil {
		return b.Inline
	}
	return nil
}

// Strings splits what has a NUL behind each string.
func Strings(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// EnvNames returns an environment without its values.
func EnvNames(env []byte) []byte {
	names := make([]byte, 0, len(env)/4)
	for len(env) > 0 {
		one, rest, _ := bytes.Cut(env, []byte{0})
		name, _, ok := bytes.Cut(one, []byte{'='})
		if ok && len(name) > 0 { // a string without "=" may be a part of a value
			names = append(append(names, name...), 0)
		}
		env = rest
	}
	return names
}
