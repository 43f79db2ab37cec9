// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxMemory is the most that the test program may have taken of memory, in bytes. With the race detector
	// everything takes several times as much.
	maxMemory = 4 << 30
	// maxTime is the most that one command may take for a sample of a few KiB, on a machine that does other things
	// beside.
	maxTime = 30 * time.Second
	// hung is when a command is taken for one that never ends.
	hung = 2 * maxTime
)

// TestMain gives the tests a directory in memory, because they make millions of small files, and a watchdog. The
// collector has less to do if it waits for more: the tests allocate much and keep little.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		if dir := memoryDir(); dir != "" {
			defer os.RemoveAll(dir)
			os.Setenv("TMPDIR", dir)
		}
		debug.SetGCPercent(800)
		debug.SetMemoryLimit(maxMemory / 4)
		go watch()
		return m.Run()
	}())
}

// memoryDir makes a directory in memory; "" if there is no room.
func memoryDir() string {
	const parent, room = "/dev/shm", 1 << 30
	var st unix.Statfs_t
	if unix.Statfs(parent, &st) != nil || st.Type != unix.TMPFS_MAGIC || st.Bavail*uint64(st.Bsize) < room {
		return ""
	}
	dir, err := os.MkdirTemp(parent, "iotape-hostile")
	if err != nil {
		return ""
	}
	return dir
}

// running are the commands that run now, by their test.
var running sync.Map

// command is one of them.
type command struct {
	what  string
	began time.Time
}

// watch ends the test program, with all stacks, when a command hangs or it has taken too much memory. Its temporary
// directory has the inputs then.
func watch() {
	for range time.Tick(time.Second) {
		excess := ""
		if n := memory(); n > maxMemory {
			excess = fmt.Sprintf("%d MiB of memory, more than %d", n>>20, maxMemory>>20)
		}
		var list []string
		running.Range(func(_, v any) bool {
			c := v.(command)
			took := time.Since(c.began).Round(time.Second)
			if took > hung {
				excess = c.what + " does not end"
			}
			list = append(list, fmt.Sprintf("%s, for %v", c.what, took))
			return true
		})
		if excess != "" {
			debug.SetTraceback("all")
			panic(fmt.Sprintf("%s; there run, with inputs in %s:\n%s", excess, os.TempDir(), strings.Join(list, "\n")))
		}
	}
}

// try reports a panic of f.
func try(t *testing.T, what, doing string, f func() error) {
	t.Helper()
	began := time.Now()
	running.Store(t, command{what + ": " + doing, began})
	defer func() {
		running.Delete(t)
		if p := recover(); p != nil {
			t.Errorf("%s: %s panics: %v\n%s", what, doing, p, debug.Stack())
		}
	}()
	_ = f()
	if took := time.Since(began); took > maxTime {
		t.Errorf("%s: %s took %v, want at most %v", what, doing, took, maxTime)
	}
}

// memory returns the most memory that the test program ever had, in bytes; 0 if that is not known.
func memory() uint64 {
	b, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(b)) {
		if size, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}
