// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ebpf"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// Source records with eBPF, or makes events up if it is told to. It is an agent.Source.
type Source struct {
	Program     string // name and version, for streams' heads
	MemoryBytes int64  // of the agent; a quarter is for the buffers in the kernel
	Block       bool   // programs wait for the recorder
	Note        func(line string)
}

var _ agent.Source = (*Source)(nil)

// Check says what is wrong with what is to be recorded.
func (s *Source) Check(r *agent.Record) error {
	if r.Synthetic != "" {
		_, err := parseSynthetic(r.Synthetic)
		return err
	}
	_, err := s.options(r, agent.Content)
	return err
}

// Probe says whether this machine can record what r says: nil, or a *capture.UnsupportedError.
func (s *Source) Probe(r *agent.Record) error {
	if r.Synthetic != "" {
		return nil
	}
	o, err := s.options(r, agent.Content)
	if err != nil {
		return err
	}
	return ebpf.Probe(o)
}

// latency is how long an event may wait in the kernel's buffers. Nobody looks at it at once,
// and on a host that is not busy looking often is most of what an agent does.
const latency = 50 * time.Millisecond

// options turns the configuration into the capture's.
func (s *Source) options(r *agent.Record, level agent.Level) (*capture.Options, error) {
	o := &capture.Options{All: r.All, Cgroup: r.Cgroup, PIDs: r.PIDs, Command: r.Command,
		Overflow: capture.OverflowDrop, Latency: latency, Note: s.Note}
	o.Keep = []syscall.Signal{syscall.SIGHUP} // the agent reads its configuration again
	if s.Block {
		if r.All {
			return nil, errors.New(
				"overflow block with all can stop the machine: whoever waits may be whom the agent waits for")
		}
		o.Overflow = capture.OverflowBlock
	}
	o.RingBytes = int(cmp.Or(s.MemoryBytes, 64<<20) / 4)
	var err error
	if o.Content, err = capture.ParseContent(cmp.Or(r.Content, "none")); err != nil {
		return nil, err
	}
	switch level {
	case agent.Hashes: // never more than what is configured
		for _, k := range []*capture.Policy{&o.Content.Read, &o.Content.Write} {
			if k.Rule != capture.KeepNone {
				*k = capture.Policy{Rule: capture.KeepHash}
			}
		}
	case agent.Metadata, agent.Counters:
		o.Content = capture.Everywhere(capture.KeepNone)
	}
	if o.Mmap, err = capture.ParseMmap(cmp.Or(r.Mmap, "off")); err != nil {
		return nil, err
	}
	if r.Cgroup != "" {
		if o.Cgroup, err = filepath.EvalSymlinks(r.Cgroup); err != nil {
			return nil, fmt.Errorf("cgroup: %w", err)
		}
		var fs unix.Statfs_t
		if err := unix.Statfs(o.Cgroup, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			return nil, fmt.Errorf("cgroup: %s is not the directory of a control group of version 2", r.Cgroup)
		}
	}
	if err := notItself(o); err != nil {
		return nil, err
	}
	if r.Filter != "" {
		x, err := predicate.Parse(r.Filter)
		if err != nil {
			return nil, fmt.Errorf("filter: %w", err)
		}
		host, _ := os.Hostname()
		arch, _ := event.ParseArch(runtime.GOARCH)
		clock, wall := capture.Clocks()
		g, err := predicate.Compile(x,
			&predicate.Options{Hosts: []predicate.Host{{Name: host, Arch: arch, WallNS: wall - clock}}, StartNS: wall})
		if err != nil {
			return nil, fmt.Errorf("filter: %w", err)
		}
		o.Prefilter = g.Prefilter(func(op event.Op) bool {
			return op == event.OpMmapPread || op == event.OpMmapPwrite || slice.MayLeaveOut(op)
		})
	}
	return o, nil
}

// notItself refuses what would record the agent: each event would make others, for ever.
func notItself(o *capture.Options) error {
	self := os.Getpid()
	for _, pid := range o.PIDs {
		if pid == self {
			return fmt.Errorf("process %d is this agent: it would record its own recording", pid)
		}
	}
	if o.Cgroup != "" {
		own, err := ownCgroup()
		if err == nil && within(own, o.Cgroup) {
			return fmt.Errorf(
				"cgroup %s has this agent in it: it would record its own recording; give the agent a group of its own",
				o.Cgroup)
		}
	}
	if len(o.Command) > 0 {
		path, err := filepath.EvalSymlinks(o.Command[0])
		exe, exeErr := os.Executable()
		if err == nil && exeErr == nil && path == exe {
			return fmt.Errorf("command %s is this agent: it would record its own recording", o.Command[0])
		}
	}
	return nil
}

// ownCgroup returns the agent's control group of version 2, as a path below the root of
// the hierarchy.
func ownCgroup() (string, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("no control group of version 2")
}

// within reports whether the agent, whose group is own, is in the group of a directory or
// below it, wherever the hierarchy is mounted.
func within(own, dir string) bool {
	self := strconv.Itoa(os.Getpid())
	parts := strings.Split(strings.Trim(own, "/"), "/")
	for i := range len(parts) + 1 {
		b, err := os.ReadFile(filepath.Join(dir, filepath.Join(parts[i:]...), "cgroup.procs"))
		if err == nil && slices.Contains(strings.Fields(string(b)), self) {
			return true
		}
	}
	return false
}

// Record records one stream.
func (s *Source) Record(ctx context.Context, r *agent.Record, level agent.Level, out agent.Sink) error {
	f := newFrames(ctx, out, level)
	if r.Synthetic != "" {
		return synthesize(ctx, r.Synthetic, s.Program, f)
	}
	o, err := s.options(r, level)
	if err != nil {
		return err
	}
	src := ebpf.Backend{}
	h := head(s.Program, src.Name(), o)
	h.Shards, h.Filter = ebpf.Shards(o), r.Filter
	switch {
	case o.All:
		h.Target = "all processes"
	case o.Cgroup != "":
		h.Target = "cgroup " + o.Cgroup
	case len(o.PIDs) > 0:
		h.Target = fmt.Sprintf("processes %v", o.PIDs)
	}
	sw, err := trace.NewStreamWriterTo(f, trace.NewStreamID(), h)
	if err != nil {
		return err
	}
	res, err := src.Run(ctx, o, sw)
	if err != nil {
		return err
	}
	if n := res.Lost - min(res.Lost, f.rings); n > 0 {
		out.Lost("the capture's other losses", n)
	}
	clock, wall := capture.Clocks()
	return sw.Close(&trace.End{Lost: f.lost, ExitStatus: res.ExitStatus, Signal: res.Signal,
		ClockNS: clock, WallNS: wall})
}

// head describes a recording.
func head(program, backend string, o *capture.Options) *trace.Head {
	h := &trace.Head{
		Program: program, Arch: runtime.GOARCH, Backend: backend, Command: o.Command,
		UID: os.Getuid(), GID: os.Getgid(),
		Content: o.Content.String(), Overflow: string(o.Overflow), Shards: 1, Ops: len(event.Specs()),
	}
	capture.DescribeHost(h)
	return h
}
