// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/running"
	"github.com/iotape/iotape/record/redact"
	"github.com/iotape/iotape/record/session"
)

// capturing is what iotape record and iotape trace capture, and how: their flags into one plan.
type capturing struct {
	plan                                   session.Plan
	cmd                                    *cobra.Command
	backend, content, overflow, mmap, user string
	env                                    string
	target                                 cli.TargetFlags
	filter                                 cli.FilterFlags
	ring, maxSize                          cli.Size
	maxEvents                              uint64
	holdMax                                time.Duration
	until, redact                          string
	stacks                                 stackFlags
}

// add adds the flags; verb is what the command does. content and mmap are the defaults of --content and --mmap.
func (r *capturing) add(cmd *cobra.Command, verb, content, mmap string) {
	f, p := cmd.Flags(), &r.plan
	r.cmd = cmd
	f.SetInterspersed(false) // flags after the command are the command's
	r.target.Add(cmd, verb)
	r.target.AddWait(f)
	f.StringVarP(&r.user, "user", "u", "",
		"as root: run the command as `USER`, who then owns the tape (default under sudo: the user who called sudo)")
	f.BoolVar(&p.Capture.Wakeups, "wakeups", false, "also record which thread woke which; needs eBPF")
	f.BoolVar(&p.Capture.BlockRequests, "block-requests", false,
		"also record the requests to block devices, of the whole machine, with their files; needs eBPF")
	f.StringVar(&r.backend, "backend", "auto",
		"the back end, `HOW` to record: auto, ebpf, interpose or ptrace; for --pid auto takes no interpose, which "+
			"changes the processes while it records them")
	f.BoolVar(&p.Capture.EveryCall, "every-call", false,
		"with ptrace and interpose: also record frequent calls that do not concern storage (waits, clocks, …); "+
			"eBPF always records them")
	f.BoolVar(&p.Capture.Survive, "survive", false,
		"with ptrace: let the command continue if the recorder is killed; this is slower. With eBPF the command "+
			"always continues")
	f.StringVar(&r.content, "content", content,
		"`WHICH` content (bytes that calls move) to keep: full, head:N, signature, hash or none; read=WHICH and "+
			"write=WHICH for one direction")
	f.StringVar(&r.mmap, "mmap", mmap,
		"`WHAT` to record of mapped files: data (reads and stores; of programs and libraries only the use of a "+
			"page), full (programs and libraries like other files), written (stores only) or off")
	f.StringVar(&r.env, "env", "names",
		"`WHAT` to record of environments: names (of the variables), all (values, too, which are often secret) or none")
	r.filter.Add(f)
	r.stacks.add(f)
	f.StringVar(&r.overflow, "on-overflow", "block",
		"`WHAT` to do when the command is faster than the recorder: block the command, or drop events and count "+
			"them; drop is the default with --all")
	f.StringVar(&r.redact, "redact", "",
		"mask what looks secret before it is written: `PATTERNS` is a file of regular expressions, or builtin for "+
			"private keys, tokens and passwords")
	f.DurationVar(&r.holdMax, "hold-max", session.DefaultHoldMax,
		"let the command go on when it has waited for `TIME` for a recorder that is stopped, or whose output accepts "+
			"nothing; 0 means never")
	f.Var(&r.ring, "ring", "size of the buffers between kernel and recorder; 0 means 128M")
	r.target.AddMaxTime(f)
	f.Uint64Var(&r.maxEvents, "max-events", 0, "stop after `N` calls and signals that match the filter; 0 means never")
	f.Var(&r.maxSize, "max-size", "stop when the recording has this size; 0 means never")
	f.StringVar(&r.until, "until", "", "stop after the first event that matches `EXPR`, and the filter if there is one")
}

// resolve puts the flags, but for those of filters, into the plan.
func (r *capturing) resolve(c *cli.Console, cmd *cobra.Command, args []string) error {
	var full capture.Overflow
	p := &r.plan
	err := cmp.Or(
		cli.ParseValue(&p.Backends, r.backend, session.ParseBackends),
		cli.ParseValue(&p.Capture.Content, r.content, capture.ParseContent),
		cli.ParseValue(&full, r.overflow, capture.ParseOverflow),
		cli.ParseValue(&p.Capture.Mmap, r.mmap, capture.ParseMmap),
		cli.ParseValue(&p.Capture.Environ, r.env, running.ParseEnv))
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("on-overflow") {
		p.Capture.Overflow = full
	}
	if err = r.target.Plan(p, args); err != nil {
		return cli.Usage(err)
	}
	if p.Owner, err = session.FindOwner(r.user); err != nil {
		return cli.Usage(err)
	}
	p.Owner.Apply(&p.Capture)
	if p.Capture.All && full == capture.OverflowBlock && cmd.Flags().Changed("on-overflow") {
		c.Say("--on-overflow block with --all can stop the machine: the recorder may wait for a process that " +
			"it holds")
	}
	if r.redact != "" {
		if p.Redact, err = redact.Load(r.redact); err != nil {
			return cli.Usage(fmt.Errorf("--redact: %w", err))
		}
	}
	switch {
	case r.holdMax < 0:
		return cli.Usage(fmt.Errorf("--hold-max %s is less than nothing", r.holdMax))
	case r.holdMax == 0:
		p.HoldMax = -1
	case cmd.Flags().Changed("hold-max"):
		p.HoldMax = r.holdMax
	}
	p.Capture.RingBytes, p.MaxBytes = int(r.ring), uint64(r.maxSize)
	return nil
}

// resolveFilter puts the filter into the plan.
func (r *capturing) resolveFilter(c *cli.Console, cmd *cobra.Command) (err error) {
	p := &r.plan
	if p.Filter, err = r.filter.Expr(); err != nil {
		return err
	}
	if err = r.stacks.plan(c, p); err != nil || p.Filter == nil {
		return err
	}
	g, err := cli.RecordFilter(c, p.Filter)
	if err == nil && p.Flight == nil { // its conditions look at all calls
		p.Prefilter(g, cmd.Flags().Changed("mmap"))
	}
	return err
}

// untilExpr returns the expression of --until, nil if there is none.
func (r *capturing) untilExpr(c *cli.Console) (*predicate.Expr, error) {
	if r.until == "" {
		return nil, nil
	}
	x, err := source.All([]string{r.until}, "")
	if err != nil {
		return nil, cli.UsageIf[*source.Error](fmt.Errorf("--until: %w", err))
	}
	_, err = cli.RecordFilter(c, x)
	return x, err
}
