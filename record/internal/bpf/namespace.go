// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Namespace is a pid namespace (pid_namespaces(7)): that of the recorder, by whose numbers programs call
// processes and threads.
type Namespace struct {
	Level uint32 // how deep it is below that of the machine, which is 0
	ID    uint32 // its number, as /proc/PID/ns/pid shows it
}

// firstNamespace is the number of the machine's pid namespace (PROC_PID_INIT_INO in linux/proc_ns.h).
const firstNamespace = 0xeffffffc

// OwnNamespace returns the namespace of this process.
func OwnNamespace() (Namespace, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return Namespace{}, Unsupported("to see its own pid namespace in /proc",
			&os.PathError{Op: "look at", Path: "/proc/self/ns/pid", Err: err})
	}
	if st.Ino == firstNamespace {
		return Namespace{ID: firstNamespace}, nil
	}
	level, err := ownLevel()
	if err != nil {
		return Namespace{}, fmt.Errorf("find the level of the pid namespace: %w", err)
	}
	return Namespace{Level: level, ID: uint32(st.Ino)}, nil
}

// ownLevel has a program look how deep the calling process's namespace is: user space cannot see it.
func ownLevel() (uint32, error) {
	spec, err := loadShared()
	if err != nil {
		return 0, err
	}
	kernel, err := KernelTypes()
	if err != nil {
		return 0, err
	}
	p, err := ebpf.NewProgramWithOptions(spec.Programs["own_level"], ebpf.ProgramOptions{KernelTypes: kernel})
	if err != nil {
		return 0, Rejected(err)
	}
	defer p.Close()
	level, err := p.Run(&ebpf.RunOptions{})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return 0, Unsupported("to run programs on demand (Linux 5.10)", err)
	}
	return level, err
}

// SetNamespace tells programs by whose numbers to call processes.
func SetNamespace(programs *ebpf.CollectionSpec, own Namespace) error {
	for name, v := range map[string]uint32{"pid_level": own.Level, "pid_ns": own.ID} {
		if err := programs.Variables[name].Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
