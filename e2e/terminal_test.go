// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// terminal returns a terminal of its own for a command's output. output closes it and returns what was written to it.
func terminal(t *testing.T) (tty *os.File, output func() []byte) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testenv.Lacks(t, "needs terminals: "+err.Error())
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 200})
	}
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	var read sync.WaitGroup
	read.Go(func() { _, _ = b.ReadFrom(master) }) // ends with EIO when nobody has the terminal open
	var once sync.Once
	output = func() []byte {
		once.Do(func() {
			tty.Close()
			read.Wait()
			master.Close()
		})
		return b.Bytes()
	}
	t.Cleanup(func() { output() })
	return tty, output
}
