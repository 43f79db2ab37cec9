// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// TestThrottledSpool has 16 threads make calls of one byte and of 1 MiB as fast as they
// can, while what is recorded goes to a slow disk: all of it gets there, the recorder's
// memory stays what it is, and the program sees nothing of it.
func TestThrottledSpool(t *testing.T) {
	testenv.Short(t, "writes to a slow disk")
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	stress := compiled(t, "stress")
	disk := testenv.MountImage(t, "ext4", 1024)
	run := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v: %s", name, args, err, out)
		}
	}
	run("mount", "-o", "remount,sync", disk) // each write goes to the disk
	e := &env{iotape: testenv.Iotape(t), dir: disk}
	files := t.TempDir() // of the program; in memory
	run("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", files)
	defer run("umount", files)

	cmd := exec.Command(e.iotape, "record", "--backend", "ebpf", "--no-index", "-o", "a.tape", "--", stress, files,
		"12", "8000")
	cmd.Dir = disk
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	most := peakKiB(cmd.Process.Pid, func() bool { // while it records: sealing has other limits
		_, err := os.Stat(filepath.Join(disk, "a.tape.partial", "tape"))
		return err != nil
	})
	err := cmd.Wait()
	if exitStatus(err) != 42 || stdout.String() != "fine\n" {
		t.Errorf("%v: it says %q\n%s", err, &stdout, &stderr)
	}
	if !strings.Contains(stderr.String(), "lost 0") {
		out, _ := e.run(t, e.iotape, "stat", "--json", "a.tape")
		t.Errorf("%s%s", &stderr, out)
	}
	const rings = 128 << 10
	if peak := <-most; peak == 0 || peak+rings > 256<<10 {
		t.Errorf("the recorder had %d KiB of memory beside its rings", peak)
	} else {
		t.Logf("%d KiB of memory beside the rings; %s", peak, &stderr)
	}
	e.run(t, e.iotape, "check", "a.tape")
}

// peakKiB watches how much memory of its own a process has, while it runs and as long as
// it is to be watched, and returns the most.
func peakKiB(pid int, watched func() bool) <-chan int {
	most := make(chan int, 1)
	go func() {
		peak := 0
		for watched() {
			kib, ok := ownKiB(pid)
			if !ok {
				break
			}
			peak = max(peak, kib)
			time.Sleep(5 * time.Millisecond)
		}
		most <- peak
	}()
	return most
}

// ownKiB returns how much memory of its own a process has.
func ownKiB(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, rest, ok := strings.Cut(string(b), "RssAnon:")
	if err != nil || !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	return n, err == nil
}

// TestRecordCgroup records what runs in a control group and what enters it later, and
// ends with the group.
func TestRecordCgroup(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	e := newEnv(t, testenv.Iotape(t), "", nil)
	group := testenv.Cgroup(t)
	enter := "echo $$ > " + group + "/cgroup.procs; "
	shell := func(script string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = e.dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	appears := func(name string) {
		t.Helper()
		for range 6000 {
			if _, err := os.Stat(filepath.Join(e.dir, name)); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("%s does not appear", name)
	}
	first := shell(enter + "echo x > there; while [ ! -e go ]; do sleep .1; done; echo first > first.out")
	appears("there")
	rec := exec.Command(e.iotape, "record", "--cgroup", group, "--no-index", "-o", "a.tape")
	rec.Dir = e.dir
	var stderr strings.Builder
	rec.Stderr = &stderr
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // until it records: then the first process has a tracer
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(first.Process.Pid) + "/status")
		if strings.Contains(string(b), "TracerPid:") && !strings.Contains(string(b), "TracerPid:\t0\n") {
			break
		}
		if i > 6000 {
			t.Fatalf("it does not record\n%s", &stderr)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = shell("echo outside > outside.out").Wait()
	second := shell(enter + "exec sh -c 'echo second > second.out'")
	_ = second.Wait()
	_ = shell("touch go").Wait()
	_ = first.Wait()
	if err := os.Remove(group); err != nil {
		t.Fatal(err)
	}
	if err := rec.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	out, _ := e.run(t, e.iotape, "print", "a.tape")
	for name, want := range map[string]bool{"first": true, "second": true, "outside": false} {
		if got := strings.Contains(out, `"`+name+`\n"`); got != want {
			t.Errorf("what %s wrote is in the tape: %v", name, got)
		}
	}
	contains(t, stderr.String(), "lost 0")
}
