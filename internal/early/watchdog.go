// SPDX-License-Identifier: Apache-2.0

package early

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// A recorder that is stopped (SIGSTOP) holds its programs: a thread that stops for its tracer, for a signal, a new
// process, or a full ring, waits until the tracer goes on. No other process can let it go. Therefore each recording
// has a watchdog, which looks whether the recorder is stopped, and continues it (SIGCONT) when programs have waited
// for it for so long as its argument says. Nothing is lost then.
//
// A recorder that is stopped together with its command, by Ctrl-Z, is left so: it tells the watchdog before.
const (
	// What the recorder writes to the watchdog.
	DogSuspends = 's' // it is about to stop, with its command
	DogEnds     = 'e'

	dogHears = 3 // descriptors of the watchdog
	dogSays  = 4
)

// watch is the watchdog.
func watch() int {
	pid, err := strconv.Atoi(os.Args[1])
	most, err2 := time.ParseDuration(os.Args[2])
	if err != nil || err2 != nil {
		return 1
	}
	setProcessName(Watchdog)
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	watchRecorder(pid, most, os.NewFile(dogHears, "recorder"), os.NewFile(dogSays, "recorder"))
	return 0
}

// watchRecorder continues a recorder that is stopped while programs wait for it, until from ends.
func watchRecorder(pid int, most time.Duration, from, to *os.File) {
	said := make(chan byte)
	go func() {
		defer close(said)
		for b := make([]byte, 1); ; {
			if n, _ := from.Read(b); n == 0 {
				return
			}
			said <- b[0]
		}
	}()
	each := min(max(most/10, 10*time.Millisecond), time.Second)
	tick := time.NewTicker(each)
	defer tick.Stop()
	stopped := time.Duration(0)    // looks are counted: the machine may have slept between two
	together, seen := false, false // it stops with its command, and has done so
	for {
		select {
		case b, ok := <-said:
			if !ok || b == DogEnds {
				return
			}
			together, seen, stopped = b == DogSuspends, false, 0
		case <-tick.C:
			status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
			is := err == nil && isStopped(status)
			if together && is {
				seen = true
				continue
			}
			together = together && !seen // it goes on
			if !is {
				stopped = 0
				continue
			}
			if stopped += each; stopped >= most && holdsThreads(pid) {
				if syscall.Kill(pid, syscall.SIGCONT) == nil {
					_, _ = to.WriteString(stopped.Round(time.Second/10).String() + "\n")
				}
				stopped = 0
			}
		}
	}
}

// holdsThreads reports whether a thread that a process traces waits for it.
func holdsThreads(pid int) bool {
	tracers := map[string]bool{}
	for _, tid := range numbers("/proc/" + strconv.Itoa(pid) + "/task") {
		tracers[tid] = true
	}
	for _, p := range numbers("/proc") {
		tasks := "/proc/" + p + "/task/"
		for _, tid := range numbers(tasks) {
			b, err := os.ReadFile(tasks + tid + "/status")
			if err == nil && len(field(b, "State:")) > 0 && field(b, "State:")[0] == 't' &&
				tracers[string(field(b, "TracerPid:"))] {
				return true
			}
		}
	}
	return false
}
