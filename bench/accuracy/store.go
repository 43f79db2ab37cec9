// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Store is a storage system to measure on.
type Store struct {
	Name  string
	About string
	open  func(ctx context.Context, s *study) (*mounted, error)
}

// mounted is a storage system that is there.
type mounted struct {
	dir   string
	wrap  []string // before a command that is to use it
	close func() error
	// server is the process that makes it slow, if there is one.
	server *exec.Cmd
}

// Stores are the storage systems.
var Stores = []Store{
	{"disk", "the disk of the directory, without the page cache", openDisk},
	{"throttled", "the same, 1000 reads and 500 writes a second (cgroup v1)", openThrottled},
	{"arm", "a modelled disk: one arm, 3 ms to seek, 0.3 ms for 64 KiB", slowfs("-arms", "1", "-seek", "3ms", "-transfer", "300us")},
	{"channels", "a modelled drive: 8 channels, 1.2 ms a request", slowfs("-arms", "8", "-seek", "1ms", "-transfer", "200us")},
}

func openDisk(_ context.Context, s *study) (*mounted, error) {
	dir := filepath.Join(s.o.Dir, "disk")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &mounted{dir: dir, close: func() error { return os.RemoveAll(dir) }}, nil
}

const throttleGroup = "/sys/fs/cgroup/blkio/iotape-accuracy"

func openThrottled(_ context.Context, s *study) (*mounted, error) {
	device, err := wholeDisk(s.o.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(throttleGroup, 0o755); err != nil && !os.IsExist(err) {
		return nil, fmt.Errorf("a limit of requests needs cgroup v1's blkio, as root: %w", err)
	}
	for name, limit := range map[string]int{"read": 1000, "write": 500} {
		file := filepath.Join(throttleGroup, "blkio.throttle."+name+"_iops_device")
		if err := os.WriteFile(file, fmt.Appendf(nil, "%s %d\n", device, limit), 0o644); err != nil {
			return nil, fmt.Errorf("limit requests: %w", err)
		}
	}
	dir := filepath.Join(s.o.Dir, "throttled")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &mounted{
		dir:   dir,
		wrap:  []string{"sh", "-c", "echo $$ > " + throttleGroup + `/cgroup.procs && exec "$@"`, "sh"},
		close: func() error { return errors.Join(os.Remove(throttleGroup), os.RemoveAll(dir)) },
	}, nil
}

// wholeDisk returns the number of the disk that a directory is on, as MAJOR:MINOR.
func wholeDisk(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	link, err := filepath.EvalSymlinks("/sys/dev/block/" + number)
	if err != nil {
		return "", fmt.Errorf("%s is on no disk: %w", dir, err)
	}
	if _, err := os.Stat(filepath.Join(link, "partition")); err == nil {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(link), "dev"))
		return strings.TrimSpace(string(b)), err
	}
	return number, nil
}

// slowfs returns how to open a modelled device.
func slowfs(flags ...string) func(context.Context, *study) (*mounted, error) {
	return func(ctx context.Context, s *study) (*mounted, error) {
		backing, err := os.MkdirTemp(s.o.Memory, "accuracy-*")
		if err != nil {
			return nil, err
		}
		if err := os.Chmod(backing, 0o755); err != nil { // a database's server has another user
			return nil, err
		}
		dir, err := os.MkdirTemp(s.o.Dir, "slowfs-*")
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(s.slowfs, append(flags, "-input", backing, dir)...)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us
		// It ends when this pipe does: so also if this process is killed.
		if _, err := cmd.StdinPipe(); err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, err
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return nil, fmt.Errorf("slowfs was not mounted (it needs root and /dev/fuse): %w", cmd.Wait())
		}
		return &mounted{dir: dir, server: cmd, close: func() error {
			err := end(cmd, dir)
			return errors.Join(err, os.Remove(dir), os.RemoveAll(backing))
		}}, nil
	}
}

// limit is how long a run may take.
const limit = 5 * time.Minute

// command runs a command on a storage system and returns what it wrote.
func (m *mounted) command(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args = append(append([]string(nil), m.wrap...), args...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	// An interrupt of the terminal is for us; who has a group of his own is swept.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		said := ""
		for line := range strings.Lines(errOut.String()) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "hint:") {
				said = line
			}
		}
		return out, fmt.Errorf("%.200s: %w: %s", strings.Join(args[len(m.wrap):], " "), err, said)
	}
	return out, nil
}
