// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound what a replay takes of the machine. 0 is no limit, but for Open.
type Limits struct {
	Bytes  int64         // of the target's file system
	Files  int64         // made in the target
	Open   uint64        // descriptors; 0: as many as the user may have
	Memory int64         // bytes of the process that makes the calls
	Time   time.Duration // of the calls
}

func (l *Limits) errTime() error {
	return fmt.Errorf("the calls would take more than %v: --max-time allows more", l.Time)
}

func (l *Limits) errMemory() error {
	return fmt.Errorf("the replay would take more than %d bytes of memory: --max-memory allows more", l.Memory)
}

// setLimits lets the replay have as many files open as all recorded processes had together,
// as far as that is allowed.
func setLimits(c *Limits) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return
	}
	l.Cur = l.Max
	if c.Open > 0 && c.Open < l.Max {
		l.Cur, l.Max = c.Open, c.Open
	}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
}

// watchMemory calls over when a process has more memory than the limit, until ctx ends. Calls
// can take at most some hundred megabytes between two looks.
func watchMemory(ctx context.Context, pid int, most int64, over func()) {
	status := "/proc/" + strconv.Itoa(pid) + "/status"
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		text, err := os.ReadFile(status)
		if err != nil {
			return
		}
		if residentBytes(string(text)) > most {
			over()
			return
		}
	}
}

// residentBytes returns how much memory a process has that is no file's, by its status
// (proc_pid_status(5)).
func residentBytes(status string) (n int64) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		if f := strings.Fields(value); len(f) > 0 {
			kib, _ := strconv.ParseInt(f[0], 10, 64)
			n += kib << 10
		}
	}
	return n
}
