// SPDX-License-Identifier: Apache-2.0

package sysmon

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/testenv"
)

// The monitor is the only thread of a Go program that sleeps for a time (nanosleep(2)):
// others wait for a word, or for descriptors.
func TestThread(t *testing.T) {
	tid := thread()
	if tid == "" {
		t.Fatal("no thread was found")
	}
	var b []byte
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		var err error
		if b, err = os.ReadFile("/proc/" + tid + "/syscall"); err != nil {
			t.Fatal(err)
		}
		if nr, _, _ := strings.Cut(string(b), " "); nr == fmt.Sprint(unix.SYS_NANOSLEEP) {
			return
		}
	}
	t.Errorf("thread %s never slept for a time; last: %s", tid, b)
}

// The monitor is calm until the last who asked for it is done, and then as before; places
// go with those who needed them.
func TestCalm(t *testing.T) {
	testenv.NeedRoot(t)
	slack := func() string {
		b, err := os.ReadFile("/proc/" + thread() + "/timerslack_ns")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before, places := slack(), runtime.GOMAXPROCS(0)
	first, second := Calm(2), Calm(3)
	first()
	first() // once more is nothing
	if got := runtime.GOMAXPROCS(0); got != places+3 {
		t.Errorf("%d places, with 3 more than %d", got, places)
	}
	if got := slack(); got != fmt.Sprint(slackNS) {
		t.Errorf("while one needs it calm: %s ns", got)
	}
	second()
	if got := runtime.GOMAXPROCS(0); got != places {
		t.Errorf("%d places after all, before %d", got, places)
	}
	if got := slack(); got != before {
		t.Errorf("after all: %s ns, before %s", got, before)
	}
}
