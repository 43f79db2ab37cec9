// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// Namespace is a pid namespace (pid_namespaces(7)): that of the recorder, by whose numbers programs call
// processes and threads.
type Namespace struct {
	Level  uint32 // how deep it is below that of the machine, which is 0
	ID     uint32 // its number, as /proc/PID/ns/pid shows it
	Number uint32 // of this process in that of the machine
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
		return Namespace{ID: firstNamespace, Number: uint32(os.Getpid())}, nil
	}
	n, err := ownNumber()
	if err != nil {
		return Namespace{}, fmt.Errorf("find the level of the pid namespace: %w", err)
	}
	const pidBits = 23 // PID_BITS in include/shared.c
	return Namespace{Level: n >> pidBits, ID: uint32(st.Ino), Number: n & (1<<pidBits - 1)}, nil
}

// ownNumber has a program look how deep the calling process's namespace is, and what number it has outside: user
// space cannot see it.
func ownNumber() (uint32, error) {
	spec, err := loadShared()
	if err != nil {
		return 0, err
	}
	kernel, err := KernelTypes()
	if err != nil {
		return 0, err
	}
	p, err := ebpf.NewProgramWithOptions(spec.Programs["own_number"], ebpf.ProgramOptions{KernelTypes: kernel})
	if err != nil {
		return 0, Rejected(err)
	}
	defer p.Close()
	n, err := p.Run(&ebpf.RunOptions{})
	if errors.Is(err, ebpf.ErrNotSupported) {
		return 0, Unsupported("to run programs on demand (Linux 5.10)", err)
	}
	return n, err
}

// Adapt tells programs what the kernel has, and by whose numbers to call processes.
func Adapt(programs *ebpf.CollectionSpec, kernel *btf.Spec) (Features, Namespace, error) {
	own, err := OwnNamespace()
	if err != nil {
		return Features{}, own, err
	}
	has := ProbeFeatures(kernel)
	has.SignalsTasks = has.SignalsTasks && own.Level == 0 // bpf_task_from_pid takes the machine's numbers
	return has, own, cmp.Or(setFeatures(programs, has), SetNamespace(programs, own))
}

// SetNamespace tells programs by whose numbers to call processes, and which is the recorder.
func SetNamespace(programs *ebpf.CollectionSpec, own Namespace) error {
	for name, v := range map[string]uint32{"pid_level": own.Level, "pid_ns": own.ID, "recorder": own.Number} {
		if err := programs.Variables[name].Set(v); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}
