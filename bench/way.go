// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type kind int

const (
	baseline kind = iota
	recorder      // what iotape is meant for: at full size
	stage         // recording in part, to see where the time goes: at full size, some workloads
	layered       // a recorder through layers: at full size, only if it is named
	peer          // other tracers and the slow back end: at the smaller size
)

// A Way is a way of recording a command, or of not recording it.
type Way struct {
	Name  string // as in --ways
	Title string // one line for --list
	kind  kind
	tape  bool // it makes a tape, out.tape, and keeps the stream beside it
	// beside: the way records an idle process, and the command runs next to it.
	beside bool
	memory bool // what it writes goes to memory instead of the disk
	// wrap returns the command line that records argv and writes to the directory
	// out; nil is argv itself.
	wrap func(t *tools, out string, argv []string) []string
	// lost says how much the way lost, from what it wrote; nil if it cannot tell.
	lost func(ctx context.Context, out string) (uint64, error)
}

var untraced = &Way{Name: "untraced", Title: "the command alone", kind: baseline}

// Ways returns all ways, the untraced first.
func Ways() []*Way {
	ways := []*Way{
		untraced,
		{Name: "metadata", Title: "iotape with eBPF, no content", kind: recorder, tape: true, wrap: iotape("ebpf", "none")},
		{Name: "full", Title: "iotape with eBPF, all content", kind: recorder, tape: true, wrap: iotape("ebpf", "full")},
		{Name: "attached", Title: "iotape with eBPF records another process: hooks only", kind: stage, tape: true, beside: true, wrap: iotape("ebpf", "full")},
		{Name: "metadata-memory", Title: "as metadata, with the stream in memory", kind: stage, tape: true, memory: true, wrap: iotape("ebpf", "none")},
		{Name: "full-memory", Title: "as full, with the stream in memory", kind: stage, tape: true, memory: true, wrap: iotape("ebpf", "full")},
		{Name: "interpose-metadata", Title: "iotape in the process, no content", kind: recorder, tape: true,
			wrap: iotape("interpose", "none")},
		{Name: "interpose", Title: "iotape in the process, all content", kind: recorder, tape: true,
			wrap: iotape("interpose", "full")},
		{Name: "ptrace", Title: "iotape with ptrace, all content", kind: peer, tape: true, wrap: iotape("ptrace", "full")},
		{Name: "strace", Title: "strace -f", kind: peer, wrap: strace("-f")},
		// Without -e every call is traced, and the filter has nothing to pass by.
		{Name: "strace-seccomp", Title: "strace -f --seccomp-bpf -e trace=%file,%desc", kind: peer, wrap: strace("-f", "--seccomp-bpf", "-e", "trace=%file,%desc")},
		{Name: "perf", Title: "perf record -e raw_syscalls:*", kind: peer, lost: perfLost,
			wrap: func(_ *tools, out string, argv []string) []string {
				return append([]string{"perf", "record", "-q", "-o", filepath.Join(out, "perf.data"), "-e",
					"raw_syscalls:*", "--"}, argv...)
			}},
		{Name: "bpftrace", Title: "bpftrace counting calls by number", kind: peer,
			wrap: func(_ *tools, out string, argv []string) []string {
				// -c wants a path, if two directories of the PATH have the program, and
				// splits at spaces: none of ours has any, see Options.Dir.
				argv = slices.Clone(argv)
				if path, err := exec.LookPath(argv[0]); err == nil {
					argv[0] = path
				}
				return []string{"bpftrace", "-q", "-o", filepath.Join(out, "bpftrace.out"),
					"-e", "tracepoint:raw_syscalls:sys_enter { @[args->id] = count(); }", "-c", strings.Join(argv, " ")}
			}},
		// It records the whole host, so it runs beside the command.
		{Name: "sysdig", Title: "sysdig -w", kind: peer, beside: true,
			wrap: func(_ *tools, out string, argv []string) []string {
				const script = `sysdig -w "$0" & p=$!; sleep 1; kill -0 $p 2>/dev/null || exit 1; "$@"; kill -INT ` +
					`$p; wait $p`
				return append([]string{"sh", "-c", script, filepath.Join(out, "sysdig.scap")}, argv...)
			}},
	}
	return append(ways, layerWays()...)
}

func iotape(backend, content string) func(*tools, string, []string) []string {
	return func(t *tools, out string, argv []string) []string {
		return append([]string{t.iotape, "record", "-o", filepath.Join(out, tapeName), "--keep-stream", "--no-index",
			"--backend", backend, "--content", content, "--"}, argv...)
	}
}

// What an iotape way leaves in its directory.
const (
	tapeName   = "rec.tape"
	streamName = "rec.stream"
)

func strace(flags ...string) func(*tools, string, []string) []string {
	return func(_ *tools, out string, argv []string) []string {
		return slices.Concat([]string{"strace"}, flags, []string{"-o", filepath.Join(out, "strace.out")}, argv)
	}
}

var perfLostEvents = regexp.MustCompile(`LOST(?:_SAMPLES)? events: *([0-9]+)`)

// perfLost asks perf for the records of its file that say that others are missing.
func perfLost(ctx context.Context, out string) (uint64, error) {
	b, err := exec.CommandContext(ctx, "perf", "report", "-i", filepath.Join(out, "perf.data"), "--stats").Output()
	if err != nil {
		return 0, fmt.Errorf("perf report --stats: %w", err)
	}
	var lost uint64
	for _, m := range perfLostEvents.FindAllSubmatch(b, -1) {
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("perf report --stats: %w", err)
		}
		lost += n
	}
	return lost, nil
}
