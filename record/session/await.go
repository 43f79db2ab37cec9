// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/record/capture"
)

// awaitCommand waits for a command whose recording has ended before it, and puts its end into the result. Until then it
// forwards the signals that the recorder forwards while it records. A back end may have seen the end.
func awaitCommand(pid int, res *capture.Result) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(c)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-c:
				_ = unix.Kill(pid, s.(syscall.Signal))
			case <-done:
				return
			}
		}
	}()
	var ws unix.WaitStatus
	for {
		switch got, err := unix.Wait4(pid, &ws, 0, nil); {
		case err == unix.EINTR:
		case err != nil || got != pid: // it is reaped
			return
		case ws.Signaled():
			res.Signal = int(ws.Signal())
			return
		default:
			res.ExitStatus = ws.ExitStatus()
			return
		}
	}
}
