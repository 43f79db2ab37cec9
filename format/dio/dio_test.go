// SPDX-License-Identifier: Apache-2.0

package dio

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/formattest"
)

func TestGoldens(t *testing.T) {
	for _, name := range []string{"network.json", "ransomware.json"} {
		t.Run(name, func(t *testing.T) {
			tape, done := formattest.One(t, &Format, filepath.Join("testdata", name))
			text := formattest.Text(t, tape)
			for _, what := range slices.Sorted(maps.Keys(done.Left)) {
				text += fmt.Sprintf("left out: %d %s\n", done.Left[what], what)
			}
			formattest.Golden(t, filepath.Join("testdata", name+".golden"), text)
		})
	}
}

// TestEveryCall wants the names of all calls that DIO traces in the operation table.
func TestEveryCall(t *testing.T) {
	const calls = `accept accept4 bind close connect creat fdatasync fgetxattr flistxattr fremovexattr fsetxattr fstat fstatfs fsync
		ftruncate getsockopt getxattr lgetxattr listen listxattr llistxattr lremovexattr lseek lsetxattr lstat mknod mknodat open openat
		pread64 pwrite64 read readahead readlink readlinkat readv recvfrom recvmsg removexattr rename renameat renameat2 sendmsg sendto
		setsockopt setxattr socket socketpair stat newfstatat truncate unlink unlinkat write writev`
	for _, name := range strings.Fields(calls) {
		if event.ByName(name) == event.OpUnknown {
			t.Errorf("%s is not in the operation table", name)
		}
	}
}

// TestPublishedSample imports the beginning of a trace that DIO's authors published.
func TestPublishedSample(t *testing.T) {
	path := "../../../shared/eventlogs/dio-head.json"
	if _, err := os.Stat(path); err != nil {
		t.Skip("skipped: the published sample is not kept with the source")
	}
	tape, done := formattest.One(t, &Format, path)
	if done.Records != 370 {
		t.Errorf("%d records, the file has 370 events and 30 paths", done.Records)
	}
	calls, named, withoutName := 0, 0, map[string]int{}
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call {
			continue
		}
		calls++
		if ev.Name() != "" {
			named++
		} else {
			withoutName[ev.Spec().Name]++
		}
	}
	if calls != 370 || named < 300 {
		t.Errorf("%d calls, %d with a file's name; without: %v", calls, named, withoutName)
	}
}

func FuzzRead(f *testing.F) {
	list, _ := filepath.Glob("testdata/*.json")
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.SplitAfter(string(b), "\n") {
			f.Add([]byte(line))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		done, err := formattest.Read(t, Read, b)
		if err != nil && done.Records > 0 {
			t.Errorf("%d records, and %v", done.Records, err)
		}
	})
}
