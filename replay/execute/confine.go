// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/sysmon"
	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/order"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
	"github.com/iotape/iotape/trace"
)

// stubEnv marks the child process.
const stubEnv = "IOTAPE_REPLAY_CHILD"

// mountsEnv tells the child which mount namespace its parent has.
const mountsEnv = "IOTAPE_REPLAY_PARENT_MOUNTS"

// stopTime is how long a replay that is to end may take until its calls return; then it is killed.
const stopTime = 700 * time.Millisecond

// Descriptors of the child.
const (
	configFD = 3
	answerFD = 4
	logFD    = 5
	linkFD   = 5 // a member of a team has no log
)

// message is what the child writes, one JSON object a line: how far it is, and at last an
// answer or an error.
type message struct {
	Progress
	Error string `json:"error,omitempty"`
	Answer
}

// Progress is how far a replay is.
type Progress struct {
	Done      uint64 `json:"done,omitempty"`      // events planned
	Different uint64 `json:"different,omitempty"` // results, so far
}

// Run runs a tape's events in a child process that can see nothing but the target. progress
// is called now and then. The answer is never nil.
func Run(ctx context.Context, c *Config, log *os.File, progress func(Progress)) (*Answer, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return new(Answer), err
	}
	configR, configW, err := os.Pipe()
	if err != nil {
		return new(Answer), err
	}
	answerR, answerW, err := os.Pipe()
	if err != nil {
		return new(Answer), err
	}
	defer answerR.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	files := []*os.File{configR, answerW}
	switch {
	case c.Part != nil:
		files = append(files, c.Part.Link)
	case log != nil:
		files = append(files, log)
	}
	cmd, confinement, err := startConfined(func(spaces uintptr) (*exec.Cmd, error) {
		cmd := childCommand(ctx, spaces)
		cmd.ExtraFiles = files
		return cmd, cmd.Start()
	})
	if err != nil {
		configR.Close()
		configW.Close()
		answerW.Close()
		return new(Answer), fmt.Errorf("start the confined replay (namespaces): %w", err)
	}
	if c.Limits.Memory > 0 {
		go watchMemory(ctx, cmd.Process.Pid, c.Limits.Memory, func() { cancel(c.Limits.errMemory()) })
	}
	if c.Limits.Time > 0 { // the child stops by itself, unless it is in a call that takes long
		defer time.AfterFunc(c.Limits.Time+stopTime, func() { cancel(c.Limits.errTime()) }).Stop()
	}
	configR.Close()
	answerW.Close()
	_, werr := configW.Write(config)
	configW.Close()
	m, err := readAnswer(answerR, progress)
	waitErr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return &m.Answer, context.Cause(ctx)
	case err != nil:
		return &m.Answer, err
	case m.Report == nil:
		return &m.Answer, fmt.Errorf("the confined replay ended without a report: %w", errors.Join(waitErr, werr))
	}
	m.Report.Confinement.Add(confinement)
	return &m.Answer, nil
}

// childCommand returns the command of the child process, in namespaces of its own.
func childCommand(ctx context.Context, spaces uintptr) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	mounts, _ := os.Readlink("/proc/self/ns/mnt")
	cmd.Env = append(os.Environ(), stubEnv+"=1", mountsEnv+"="+mounts)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: spaces, Pdeathsig: syscall.SIGKILL}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		// The same user inside, so that permissions mean what they meant, with just
		// the two rights that the confinement itself needs, and that of sysmon.Calm.
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SYS_NICE}
	}
	return cmd
}

// readAnswer reads messages up to the one with the report; an empty one stands for
// an end without.
func readAnswer(r io.Reader, progress func(Progress)) (*message, error) {
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		m := new(message)
		if err := dec.Decode(m); err != nil {
			return new(message), nil // the caller says what that means
		}
		switch {
		case m.Error != "":
			return m, errors.New(m.Error)
		case m.Report != nil:
			return m, nil
		}
		progress(m.Progress)
	}
}

// Stub runs the confined part of a replay and exits, if this process is the child of one;
// else it returns at once. Programs that replay call it first in their main function.
func Stub() {
	if os.Getenv(stubEnv) == "" {
		return
	}
	os.Unsetenv(stubEnv)
	answer := os.NewFile(answerFD, "answer")
	enc := json.NewEncoder(answer)
	m, err := child(func(p Progress) { _ = enc.Encode(message{Progress: p}) })
	if err != nil {
		m.Error = err.Error()
	}
	if enc.Encode(m) != nil || err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// child confines itself and replays.
func child(progress func(Progress)) (m message, err error) {
	config := os.NewFile(configFD, "config")
	var c Config
	if err := json.NewDecoder(config).Decode(&c); err != nil {
		return m, fmt.Errorf("read the configuration: %w", err)
	}
	config.Close()
	tape, err := trace.Open(c.Tape)
	if err != nil {
		return m, err
	}
	defer tape.Close()
	var in inside
	if c.Order == order.Causal { // while the tape's directory can be reached
		if in.annotations, err = plan.ReadAnnotations(tape); err != nil {
			return m, err
		}
	}
	if c.OrderKey != "" {
		in.found = eventsource.StoredOrder(tape, c.OrderKey)
	}
	if c.Part != nil {
		c.Part.Link = os.NewFile(linkFD, "link")
	}
	if c.Group != 0 {
		if err := joinGroup(c.Group); err != nil {
			return m, fmt.Errorf("join the target's group: %w", err)
		}
	}
	_ = sysmon.Calm(0) // while /proc can be reached; to the end of this process
	if err := in.confine(c.Into, c.Privileged); err != nil {
		return m, err
	}
	// The terminal's interrupt reaches the whole foreground group; the parent says
	// when to stop.
	signal.Ignore(syscall.SIGINT)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	setLimits(&c.Limits)
	if err := in.filter(c.Native.Requests); err != nil {
		return m, err
	}
	if c.LogLevel != "" {
		in.log = result.NewLog(os.NewFile(logFD, "log"), c.LogLevel)
	}
	m.Answer, err = run(ctx, tape, &c, &in, progress)
	return m, errors.Join(err, in.log.Close())
}

// joinGroup lets this process into what a group has.
func joinGroup(group uint32) error {
	groups, err := syscall.Getgroups()
	if err != nil {
		return err
	}
	return syscall.Setgroups(append(groups, int(group)))
}

// confine makes dir the root of this process, in the best way that it may.
func (in *inside) confine(dir string, privileged bool) (err error) {
	own, err := ownMounts()
	if err != nil {
		return fmt.Errorf("look at the mounts: %w", err)
	}
	if in.bare = !own; in.bare && privileged {
		return errors.New("--privileged-files needs a mount namespace, which the machine refuses: run without it")
	} else if in.bare {
		if in.procFD, err = unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("open /proc/self/fd: %w", err)
		}
		in.namesFD = -1
		in.ruleset = newRuleset(dir, &in.confinement)
		return enterWithoutMounts(dir, &in.confinement)
	}
	// A mount of its own that nothing is above: a name that begins here, or a thread that
	// is here, could else leave by way of "..", which stops only at the root directory.
	in.procFD, err = unix.OpenTree(unix.AT_FDCWD, "/proc/self/fd", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("mount /proc/self/fd apart: %w", err)
	}
	in.namesFD, in.ruleset = in.procFD, -1
	return confine(dir, &in.confinement)
}

// filter leaves this process only the calls of a replay.
func (in *inside) filter(requests bool) error {
	const name = "seccomp"
	err := filterCalls(requests)
	switch {
	case err == nil:
		in.confinement.InForce = append(in.confinement.InForce, name)
		return nil
	case in.bare:
		return fmt.Errorf("a replay needs a mount namespace or a filter of calls; the machine refuses both: %w", err)
	}
	in.confinement.Missing = append(in.confinement.Missing, fmt.Sprintf("%s (%v)", name, err))
	return nil
}

// confine makes dir the root of this process, without devices or set-id programs,
// in a mount namespace that nothing comes out of.
func confine(dir string, in *result.Confinement) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the target: %w", err)
	}
	const flags = unix.MS_REMOUNT | unix.MS_BIND | unix.MS_NODEV | unix.MS_NOSUID
	if err := unix.Mount("", dir, "", flags, ""); err != nil {
		return fmt.Errorf("mount the target without devices: %w", err)
	}
	return enterTarget(dir, in)
}
