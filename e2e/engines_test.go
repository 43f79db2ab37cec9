// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// unifiedNamespace makes a mount namespace in which the control groups are those of version 2 alone, which crun and
// systemd need; more is done in it. It returns the process that keeps it.
func (e *env) unifiedNamespace(t *testing.T, more string) (pid string) {
	t.Helper()
	holder := exec.Command("unshare", "-m", "sh", "-ec", "umount -l /sys/fs/cgroup || true\n"+
		"mount -t cgroup2 none /sys/fs/cgroup\n"+more+"\necho ready\nexec sleep 1h")
	holder.Dir = e.dir
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	holder.Stderr = &said
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill(); _ = holder.Wait() })
	if n, _ := out.Read(make([]byte, 16)); n == 0 {
		t.Fatalf("no namespace: %v\n%s", holder.Wait(), &said)
	}
	return strconv.Itoa(holder.Process.Pid)
}

// ownGroup makes a control group, and returns its path below the hierarchy's root, too. What is in it ends with the
// test.
func ownGroup(t *testing.T) (dir, path string) {
	t.Helper()
	dir = testenv.Cgroup(t)
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		waitFor(t, "the control groups to be empty", func() bool {
			_ = exec.Command("find", dir, "-mindepth", "1", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
			left, err := filepath.Glob(dir + "/*/cgroup.procs")
			return err == nil && len(left) == 0
		})
	})
	return dir, "/" + filepath.Base(dir)
}

// TestPodman records a container of Podman by its name and by what is known of its ID.
func TestPodman(t *testing.T) {
	testenv.Short(t, "it starts a container")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "podman", "crun", "busybox", "unshare", "nsenter")
	e := runEnv(t)
	root := filepath.Join(e.dir, "root")
	e.run(t, "mkdir", "-p", root+"/bin", root+"/tmp")
	e.run(t, "sh", "-c", "cp $(command -v busybox) "+root+"/bin && ln -s busybox "+root+"/bin/sh")
	holder := e.unifiedNamespace(t,
		"for d in /var/lib/containers /run/containers /run/libpod; do mkdir -p $d; mount -t tmpfs none $d; done")
	in := []string{"nsenter", "-m", "-t", holder, "--wd=" + e.dir}
	podman := func(args ...string) string {
		out, _ := e.run(t, append(append(in[:len(in):len(in)], "podman", "--storage-driver=vfs",
			"--cgroup-manager=cgroupfs", "--events-backend=file"), args...)...)
		return strings.TrimSpace(out)
	}
	name := fmt.Sprintf("iotape-%d", os.Getpid())
	_, group := ownGroup(t)
	// Without limits: they need controllers of version 2, and rights that the machine's root may lack.
	id := podman("run", "--detach", "--name", name, "--network=none", "--privileged", "--pids-limit=-1",
		"--cgroup-parent="+group, "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--rootfs", root,
		"sh", "-c", "while :; do echo from the container >/tmp/f; busybox sleep 0.05; done")
	for i, by := range []string{name, id, id[:12], id[:6]} {
		tape := fmt.Sprintf("%d.tape", i)
		e.run(t, append(in[:len(in):len(in)], e.iotape, "record", "--no-index", "-o", tape, "--container", by,
			"--until", "op = write and container = "+id)...)
		if text := strings.Join(e.linesOf(t, tape), "\n"); !strings.Contains(text, `"from the container\n"`) {
			t.Errorf("%s: the tape lacks what the container did\n%s", by, text)
		}
	}
}

// TestSystemd records a unit of a systemd that was booted: as it runs, and from its next start on.
func TestSystemd(t *testing.T) {
	testenv.Short(t, "it boots systemd")
	t.Parallel()
	testenv.NeedRoot(t)
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "systemd-nspawn", "unshare", "nsenter")
	e := runEnv(t)
	name := fmt.Sprintf("iotape-%d", os.Getpid())
	// The machine's own tree, with no other units than the test's.
	holder := e.unifiedNamespace(t, fmt.Sprintf(`mkdir m && mount -t tmpfs none m && mkdir m/up m/work m/root
mount -t overlay none -o lowerdir=/,upperdir=m/up,workdir=m/work m/root
cd m/root && cp %[2]s iotape && rm -rf etc/systemd/system && mkdir etc/systemd/system
printf '[Unit]\nDefaultDependencies=no\nWants=%[1]s.service\n' >etc/systemd/system/t.target
printf '[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/bin/sh /loop\n' >etc/systemd/system/%[1]s.service
echo 'while :; do echo from the unit >/dev/shm/f; sleep 0.05; done' >loop`, name, e.iotape))
	group, _ := ownGroup(t)
	machine := exec.Command("sh", "-ec", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, "nsenter", "-m",
		"-t", holder, "systemd-nspawn", "--boot", "--register=no", "--keep-unit", "--console=pipe", "--machine="+name,
		"-D", filepath.Join(e.dir, "m/root"), "systemd.unit=t.target")
	if err := machine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = machine.Process.Kill(); _ = machine.Wait() })
	var inside []string
	waitFor(t, "systemd and its unit", func() bool {
		pid := strconv.Itoa(machine.Process.Pid)
		children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		inside = []string{"nsenter", "-t", strings.TrimSpace(string(children)), "-m", "-p", "-C", "env",
			"XDG_RUNTIME_DIR=/run", "TMPDIR=/run"}
		_, _, err := e.try(t, append(inside, "systemctl", "is-active", name)...)
		return err == nil
	})
	const does = `"from the unit\n"`
	const until = `--until "op = write and unit = $0.service"`
	e.run(t, "sh", "-ec", e.iotape+" record --no-index -o host.tape --unit $0 "+until, name)
	text := strings.Join(e.linesOf(t, "host.tape"), "\n")
	if !strings.Contains(text, does) {
		t.Errorf("the tape lacks what the unit did\n%s", text)
	}
	in := func(script string) string {
		out, _ := e.run(t, append(inside[:len(inside):len(inside)], "sh", "-ec", "cd /run\n"+script, name)...)
		return out
	}
	text = in("/iotape record --no-index -o in.tape --unit $0 " + until + "; /iotape print in.tape")
	if !strings.Contains(text, does) {
		t.Errorf("the tape made in the machine lacks what the unit did\n%s", text)
	}
	// It starts a while after the recording: the duration is its own.
	text = in(`systemctl stop $0; /iotape record --no-index -o next.tape --unit $0 --wait --duration 300ms 2>said &
until grep -q '0 processes' said; do sleep 0.05; done
sleep 0.5; systemctl start $0; wait; /iotape print next.tape --filter 'op = execve or op = write'`)
	start, loop := strings.Index(text, `execve("/bin/sh", ["/bin/sh", "/loop"]`), strings.Index(text, does)
	if start < 0 || loop < start {
		t.Errorf("the tape of the next start lacks the first program, or what it did\n%s", text)
	}
	// Without a duration, the recording ends with the unit.
	text = in(`systemctl stop $0; /iotape record --no-index -o whole.tape --unit $0 --wait 2>said &
until grep -q '0 processes' said; do sleep 0.05; done
systemctl start $0; sleep 0.3; systemctl stop $0; wait; /iotape print whole.tape`)
	if !strings.Contains(text, does) || !strings.Contains(text, "SIGTERM") {
		t.Errorf("the tape of a whole run lacks what the unit did, or its end\n%s", text)
	}
}
