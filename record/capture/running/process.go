// SPDX-License-Identifier: Apache-2.0

package running

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/trace"
)

// Env is what is recorded of the environments of processes.
type Env string

// The choices.
const (
	EnvNames Env = "names" // of the variables, without their values
	EnvAll   Env = "all"
	EnvNone  Env = "none"
)

// ParseEnv checks a choice's name.
func ParseEnv(s string) (Env, error) {
	switch e := Env(s); e {
	case EnvNames, EnvAll, EnvNone:
		return e, nil
	}
	return "", fmt.Errorf("--env %s: it is names, all or none", s)
}

// AppendProcess appends, with time at, the record that says where a process runs and with what, as far as the
// recorder may read it.
func AppendProcess(b []byte, pid int, at uint64, env Env, what Occasion) []byte {
	r := ProcessRecord(pid, at, env, what)
	return trace.AppendRecord(b, &r)
}

// Occasion is why a process is described.
type Occasion int

// The occasions. What calls say of a process is left out where they were recorded.
const (
	Running  Occasion = iota // it ran before the recording
	Executed                 // it has just executed a program
	Changed                  // its control group, users, capabilities or namespaces may be others now
)

// ProcessRecord returns the record of AppendProcess.
func ProcessRecord(pid int, at uint64, env Env, what Occasion) trace.Record {
	d := dir(pid, pid)
	f := facts.Process{Cgroup: cgroupOf(d)}
	status, _ := os.ReadFile(d + "status")
	f.UID, f.GID, f.Groups = ids(status, "Uid:"), ids(status, "Gid:"), groups(status)
	if caps, err := strconv.ParseUint(string(Field(status, "CapEff:")), 16, 64); err == nil {
		f.Caps = &caps
	}
	for i, name := range facts.Namespaces {
		f.Namespaces[i] = namespace(d + "ns/" + name)
	}
	r := trace.Record{Type: trace.RecProcess, PID: uint32(pid), TID: uint32(pid), Exit: at}
	var args []byte
	if what == Running {
		f.Exe, f.Cwd, f.Root = target(d+"exe"), target(d+"cwd"), target(d+"root")
		if f.Root == "/" {
			f.Root = ""
		}
		args, _ = os.ReadFile(d + "cmdline")
	}
	put := func(part uint8, b []byte) {
		r.Pieces = append(r.Pieces, trace.Piece{Arg: part, Len: uint32(len(b)), Data: b})
	}
	put(facts.PartFacts, f.Append(nil))
	if what == Changed {
		r.Flags = trace.ProcessChanged
		return r
	}
	if env != EnvNone {
		if b, err := os.ReadFile(d + "environ"); err == nil {
			put(facts.PartEnv, env.of(b))
		}
	}
	if len(args) > 0 {
		put(facts.PartArgs, args)
	}
	return r
}

// of returns what is recorded of an environment.
func (e Env) of(b []byte) []byte {
	if e == EnvAll {
		return b
	}
	return facts.EnvNames(b)
}

// Keep returns records with what is recorded of the environments in them: a copy, if that is less than they have.
// eBPF programs copy the values of variables, too, since they cannot cut text cheaply.
func (e Env) Keep(records []byte) []byte {
	if e == EnvAll {
		return records
	}
	out := make([]byte, 0, len(records))
	var r trace.Record
	for body, err := range trace.Records(records) {
		if err != nil {
			break // the programs write no such
		}
		if trace.TypeOf(body) != trace.RecProcess || r.Decode(body) != nil {
			out = binary.LittleEndian.AppendUint64(out, uint64(len(body)))
			out = append(out, body...)
			for len(out)%8 != 0 {
				out = append(out, 0)
			}
			continue
		}
		for i := range r.Pieces {
			if p := &r.Pieces[i]; p.Arg == facts.PartEnv && p.Data != nil {
				p.Data = facts.EnvNames(p.Data)
				p.Len = uint32(len(p.Data))
			}
		}
		out = trace.AppendRecord(out, &r)
	}
	return out
}

// cgroupOf returns the path of the version 2 control group, "" if the kernel does not say.
func cgroupOf(dir string) string {
	b, _ := os.ReadFile(dir + "cgroup")
	return facts.CgroupIn(b)
}

// CgroupOf returns the path of a process's control group, "" if it is not known.
func CgroupOf(pid int) string { return cgroupOf(dir(pid, pid)) }

// CgroupDevice returns the device of the files of version 2 control groups, as Object.Dev has it; 0 if they are not
// mounted.
func CgroupDevice() uint32 {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range bytes.Lines(mounts) {
		f := bytes.Fields(line)
		if dash := slices.IndexFunc(f, func(w []byte) bool { return string(w) == "-" }); dash < 3 || dash+1 == len(f) ||
			string(f[dash+1]) != "cgroup2" {
			continue
		}
		major, minor, _ := bytes.Cut(f[2], []byte{':'})
		return number(major)<<20 | number(minor)
	}
	return 0
}

func ids(status []byte, name string) *facts.IDs {
	f := bytes.Fields(Field(status, name))
	if len(f) != 4 {
		return nil
	}
	return &facts.IDs{Real: number(f[0]), Effective: number(f[1]), Saved: number(f[2]), FS: number(f[3])}
}

func groups(status []byte) []uint32 {
	if status == nil {
		return nil
	}
	list := []uint32{}
	for _, f := range bytes.Fields(Field(status, "Groups:")) {
		list = append(list, number(f))
	}
	return list
}

// namespace returns the inode number of a namespace, 0 if it may not be seen.
func namespace(name string) uint64 {
	var st syscall.Stat_t
	if syscall.Stat(name, &st) != nil {
		return 0
	}
	return st.Ino
}

// target returns what a symbolic link says, "" if it may not be read.
func target(name string) string {
	s, _ := os.Readlink(name)
	return s
}
