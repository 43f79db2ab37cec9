// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/trace"
)

// DescribeHost fills in what a stream's head says of the machine, the recorder's
// directory and the clocks.
func DescribeHost(h *trace.Head) {
	h.ClockNS, h.WallNS = Clocks()
	h.Host, _ = os.Hostname()
	h.Dir, _ = os.Getwd()
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	h.Addresses = addresses()
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		h.BootID = strings.TrimSpace(string(id))
	}
}

// maxAddresses bounds the addresses that a head has: hosts of containers can have thousands.
const maxAddresses = 1024

// addresses returns those of the interfaces of the recorder's network namespace.
func addresses() (list []string) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil // pairing does without
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && len(list) < maxAddresses {
			list = append(list, n.IP.String())
		}
	}
	return list
}

// Clocks reads the monotonic clock and the wall clock at one moment, in ns.
func Clocks() (clock, wall int64) {
	var m, w unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &m)
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &w)
	return m.Nano(), w.Nano()
}
