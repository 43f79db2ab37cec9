// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/plan"
)

// kept are the capabilities that root's calls on files need.
var kept = []int{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_MKNOD,
	unix.CAP_SETFCAP, unix.CAP_LINUX_IMMUTABLE, unix.CAP_SYS_RESOURCE, unix.CAP_LEASE,
	unix.CAP_SETUID, unix.CAP_SETGID, // for setfsuid and setfsgid
}

// capabilities are those of a thread.
type capabilities [2]unix.CapUserData

func (c *capabilities) get() error {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capget(&h, &c[0])
}

func (c *capabilities) set() error {
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&h, &c[0])
}

// dropCapabilities takes from the calling thread, which makes recorded calls, the capabilities that
// these do not need, and any way to get some by executing a program.
func dropCapabilities(root, requests bool) error {
	var c capabilities
	if err := c.get(); err != nil {
		return err
	}
	var effective, permitted [2]uint32
	if root {
		for _, n := range kept {
			effective[n/32] |= 1 << (n % 32)
		}
		if requests {
			effective[unix.CAP_IPC_LOCK/32] |= 1 << (unix.CAP_IPC_LOCK % 32) // io_uring's memory
		}
		permitted = effective
		permitted[0] |= 1 << unix.CAP_SYS_ADMIN // see withAttributes
	}
	for i := range c {
		c[i].Effective &= effective[i]
		c[i].Permitted &= permitted[i]
		c[i].Inheritable = 0
	}
	if err := c.set(); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// raise gives the calling thread those capabilities of root's calls on files that it lost by becoming
// another user.
func raise() {
	var c capabilities
	if c.get() != nil {
		return
	}
	for _, n := range kept {
		c[n/32].Effective |= c[n/32].Permitted & (1 << (n % 32))
	}
	_ = c.set()
}

// withAttributes gives the calling thread CAP_SYS_ADMIN while make runs, for extended attributes:
// root sees those that begin with "trusted." by it. It has it for no other call.
func withAttributes(t *plan.Task, make func()) {
	var c capabilities
	const admin = 1 << unix.CAP_SYS_ADMIN
	ev := &t.Event
	if !t.Root || !handlesAttributes(ev) || c.get() != nil || c[0].Permitted&admin == 0 {
		make()
		return
	}
	before := c
	c[0].Effective |= admin
	_ = c.set()
	make()
	_ = before.set()
}

// handlesAttributes reports whether a call is about extended attributes.
func handlesAttributes(ev *event.Event) bool {
	switch ev.Effect() {
	case event.EffectSetXattr, event.EffectGetXattr, event.EffectListXattr, event.EffectRemoveXattr:
		return true
	}
	return false
}
