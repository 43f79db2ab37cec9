// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Two hosts, and a network between them that the test carries packet by packet.
var (
	spaces = [2]string{"iotape-flow-a", "iotape-flow-b"}
	addrs  = [2]string{"10.213.7.1", "10.213.7.2"}
)

// between makes two network name spaces and a network between them, in which change may
// change the payload of what goes from the first to port 4002 of the second; at is where
// in the connection it stands. The checksums are put right.
func between(t *testing.T, change func(payload []byte, at int)) {
	t.Helper()
	run := func(argv ...string) {
		t.Helper()
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	var ends [2]*os.File
	for i, name := range spaces {
		_ = exec.Command("ip", "netns", "del", name).Run() // of a run that was killed
		run("ip", "netns", "add", name)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
		ends[i] = tunnel(t, name)
		run("ip", "-n", name, "addr", "add", addrs[i]+"/24", "dev", "tun0")
		run("ip", "-n", name, "link", "set", "tun0", "up")
		run("ip", "-n", name, "link", "set", "lo", "up")
	}
	done := make(chan bool, 2)
	carry := func(from, to *os.File, change func([]byte, int)) {
		defer func() { done <- true }()
		first := map[uint16]uint32{} // sequence number of the first byte, by the sender's port
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			alter(buf[:n], first, change)
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go carry(ends[0], ends[1], change)
	go carry(ends[1], ends[0], nil)
	t.Cleanup(func() {
		ends[0].Close()
		ends[1].Close()
		<-done
		<-done
	})
}

// tunnel makes a network device of a name space, and returns its other side.
func tunnel(t *testing.T, space string) *os.File {
	t.Helper()
	type result struct {
		f   *os.File
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // and never let go: the thread stays in the name space
		made <- func() (r result) {
			var ns, fd int
			if ns, r.err = unix.Open("/run/netns/"+space, unix.O_RDONLY|unix.O_CLOEXEC, 0); r.err != nil {
				return r
			}
			defer unix.Close(ns)
			if r.err = unix.Setns(ns, unix.CLONE_NEWNET); r.err != nil {
				return r
			}
			if fd, r.err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); r.err != nil {
				return r
			}
			var req [40]byte // struct ifreq
			copy(req[:], "tun0")
			binary.LittleEndian.PutUint16(req[16:], unix.IFF_TUN|unix.IFF_NO_PI)
			if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TUNSETIFF,
				uintptr(unsafe.Pointer(&req))); e != 0 {
				r.err = e
				return r
			}
			r.f = os.NewFile(uintptr(fd), "tun")
			return r
		}()
	}()
	r := <-made
	if r.err != nil {
		t.Fatalf("tunnel: %v", r.err)
	}
	return r.f
}

// alter lets change change a packet's payload, and puts its checksum right (RFC 9293,
// 3.1).
func alter(p []byte, first map[uint16]uint32, change func([]byte, int)) {
	if change == nil || len(p) < 40 || p[0]>>4 != 4 || p[9] != unix.IPPROTO_TCP {
		return
	}
	tcp := p[int(p[0]&15)*4:]
	if len(tcp) < 20 || binary.BigEndian.Uint16(tcp[2:]) != 4002 {
		return
	}
	port, seq := binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint32(tcp[4:])
	if tcp[13]&2 != 0 { // SYN
		first[port] = seq + 1
		return
	}
	payload := tcp[int(tcp[12]>>4)*4:]
	change(payload, int(seq-first[port]))
	tcp[16], tcp[17] = 0, 0
	sum := uint32(unix.IPPROTO_TCP) + uint32(len(tcp))
	add := func(b []byte) {
		for i := 0; i+1 < len(b); i += 2 {
			sum += uint32(binary.BigEndian.Uint16(b[i:]))
		}
		if len(b)%2 == 1 {
			sum += uint32(b[len(b)-1]) << 8
		}
	}
	add(p[12:20])
	add(tcp)
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(tcp[16:], ^uint16(sum))
}
