// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/replay/hosts"
	"github.com/iotape/iotape/trace"
)

func newReplay(c *cli.Console) *cobra.Command {
	var o replay.Options
	var asJSON, dry bool
	var users, groups string
	var checks, mismatch, pace, mode, data, log, level, mmap, uring, compute, fromScript, html string
	var part cli.Part
	var renames []string
	var team hosts.Options
	var bytes, memory cli.Size
	var copies int
	cmd := &cobra.Command{
		Use:   "replay TAPE --into DIR",
		Short: "Repeat the recorded calls in a directory",
		Long: `Replay makes the files that the recording found before its first event, in DIR, and
repeats the calls there. A path /home/u/x of the recording becomes DIR/home/u/x. Replay
touches nothing outside DIR, whatever the tape contains.

With --verify, replay compares every result with the recorded result: return values,
error numbers, the bytes of every read, and the results of stat and directory listings, as
far as they can be reproduced. At the end it compares the files with those that the
recording left.

Replay models the communication between processes (pipes, sockets, signals) and does not
repeat it. --dry-run lists these calls of a tape, docs/ops.md lists all of them.

If a tape has several machines, each machine has its own directory in DIR. The paths of
--shared are common to all machines.`,
		Example: `  iotape replay git.tape --into again --verify
  iotape replay git.tape --into again --verify --json | jq .different
  iotape replay db.tape --into again --verify=returns,data --on-mismatch abort
  iotape replay db.tape --into again --verify --order resource --log differences.txt
  iotape replay db.tape --into again --filter 'path.startsWith("/db/")' --from 10s --to 20s
  iotape annotate db.tape && iotape replay db.tape --into again --order causal --pace think
  iotape replay db.tape --dry-run --into /mnt/ssd
  iotape replay db.tape --into /mnt/ssd/x --pace recorded --speed 2
  iotape replay db.tape --into /mnt/ssd/x --copies 8 --pace recorded --speed 2
  iotape replay --script db.script --into again --verify
  iotape merge -o all.tape a.tape b.tape && iotape replay all.tape --into again --verify --shared /scratch
  iotape replay app.tape --into /shared/x --order causal --pace think --hosts a,b,c \
    --launch 'ssh {host} {command}' --listen 10.0.0.1:7071 --secret /shared/secret`,
		Args: cobra.MaximumNArgs(1),
		Annotations: cli.Exits("0  replayed; all calls succeeded or failed as recorded; with --verify, all results "+
			"agreed; with --dry-run, the target lacks nothing",
			"1  something differed; with --dry-run, the target lacks something",
			"2  could not be replayed, was interrupted, or would have taken more than a limit allows"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmp.Or(
				cli.ParseFlag(&o.Checks, "verify", checks, replay.ParseChecks),
				cli.ParseFlag(&o.Pace, "pace", pace, replay.ParsePace),
				cli.ParseFlag(&o.Order, "order", mode, replay.ParseOrder),
				cli.ParseFlag(&o.Data, "data", data, replay.ParseData),
				cli.ParseFlag(&o.LogLevel, "log-level", level, replay.ParseLogLevel),
				cli.OneOf(&o.Sleep, "--compute", compute, "spin", "sleep"),
				cli.OneOf(&o.Native.Mmap, "--mmap", mmap, "emulate", "native"),
				cli.OneOf(&o.Native.Requests, "--uring", uring, "sync", "native"),
				cli.ParseFlag(&o.Renames, "map", renames, replay.ParseRenames),
				cli.ParseFlag(&o.Users, "uid-map", users, replay.ParseIDs),
				cli.ParseFlag(&o.Groups, "gid-map", groups, replay.ParseIDs),
				cli.OneOf(&o.Abort, "--on-mismatch", mismatch, "warn", "abort"))
			if err != nil {
				return err
			}
			o.MaxBytes, o.MaxMemory = int64(bytes), int64(memory)
			if o.Speed <= 0 {
				return cli.Usage(errors.New("--speed: the value must be greater than 0"))
			}
			if o.Into == "" && !dry {
				return cli.MissingFlag(cmd, "into")
			}
			t, err := cli.OpenTapeOrScript(cmd.Context(), args, fromScript)
			if err != nil {
				return err
			}
			defer t.Close()
			if part.Picks() {
				if t, err = part.Temporary(cmd.Context(), c, t); err != nil {
					return err
				}
				defer t.Close()
			}
			sayLacks(c, t)
			if log != "" {
				if o.Log, err = os.Create(log); err != nil {
					return fmt.Errorf("make the log: %w", err)
				}
				defer o.Log.Close()
			}
			if len(team.Names) > 0 {
				if o.Log != nil || dry || html != "" {
					return cli.Usage(errors.New("--hosts cannot be used with --log, --html or --dry-run"))
				}
				hub, err := hosts.New(&team)
				if err != nil {
					return cli.Usage(fmt.Errorf("--hosts: %w", err))
				}
				defer hub.Close()
				o.Team = hub
			}
			if dry {
				p, err := replay.DryRun(cmd.Context(), t, &o)
				if err != nil {
					return err
				}
				write := cli.Either(asJSON, replayed.WritePlanJSON, replayed.WritePlan)
				return c.Result(func(w io.Writer) error { return write(w, p) }, !p.Lacking())
			}
			progress := c.Progress(report.Count)
			phases := map[string]string{"plan": "planning", "replay": "replaying", "compare": "comparing"}
			o.Progress = func(phase string, done, total uint64) {
				progress.Update(cmp.Or(phases[phase], phase), int64(done), int64(total))
			}
			o.Different = func(n uint64) { progress.Note(differing(n)) }
			if cmd.Flags().Changed("copies") {
				return replayCopies(cmd.Context(), c, t, &copiesOf{&o, copies, html, asJSON}, progress.Done)
			}
			before := replayed.ChildUsage()
			rep, err := replay.Run(cmd.Context(), t, &o)
			progress.Done()
			if err != nil {
				return replayed.Interrupted(cmd.Context(), err)
			}
			if err := writePage(html, t, rep, &o, before); err != nil {
				return err
			}
			return c.Result(cli.Either(asJSON, func(w io.Writer) error { return replayed.WriteJSON(w, rep) },
				func(w io.Writer) error { return replayed.WriteText(w, rep, &o, c.Style(c.Out)) }), rep.OK())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Into, "into", "",
		"replay into `DIR`; replay creates it if it does not exist, otherwise it must be empty")
	f.StringVar(&checks, "verify", "none",
		"compare with the recording: all (the same as --verify alone), none, or `WHAT` of returns, data, stat, dirs "+
			"and tree, with commas")
	f.Lookup("verify").NoOptDefVal = "all"
	f.StringVar(&mismatch, "on-mismatch", "warn", "`WHAT` to do when a result differs: warn (at the end) or abort")
	f.StringVar(&pace, "pace", "afap",
		"`WHEN` to make calls: afap (as fast as possible), think (with the recorded computing time between them) or "+
			"recorded (at the recorded times)")
	f.StringVar(&mode, "order", "overlap",
		"`HOW` much of the recorded order to keep: recorded (all), overlap (of calls that did not overlap), resource "+
			"(of each thread, and on each file, name and lock) or causal (resource, and the dependencies between "+
			"threads that iotape annotate found)")
	f.Float64Var(&o.Speed, "speed", 1, "with --pace think or recorded: replay `F` times as fast as recorded")
	f.IntVar(&copies, "copies", 0,
		"replay `N` times at once, in DIR/1 to DIR/N, and show the latencies of calls beside the recorded ones")
	f.StringVar(&data, "data", "recorded",
		"the bytes to write: recorded (zeros where the tape has no content), or `WHAT` of zero, random and "+
			"pattern:HEX; then bytes that are read are not compared")
	f.StringVar(&compute, "compute", "spin", "with --pace think: `HOW` to spend computing time: spin or sleep")
	f.StringVar(&mmap, "mmap", "emulate",
		"`HOW` to repeat reads and stores through mappings: emulate (pread and pwrite) or native (mappings)")
	f.StringVar(&uring, "uring", "sync",
		"`HOW` to repeat requests of io_uring and AIO: sync (as calls) or native (as requests, one at a time for "+
			"each thread)")
	f.StringArrayVar(&renames, "map", nil, "replay calls below /OLD in `/NEW` of the target: /OLD=/NEW")
	const ids = "in `OLD:NEW[:COUNT]`, with commas between several"
	f.StringVar(&users, "uid-map", "", "put other users in the place of the recorded ones: "+ids)
	f.StringVar(&groups, "gid-map", "", "put other groups in the place of the recorded ones: "+ids)
	sharedFlag(f, &o.Shared)
	f.StringSliceVar(&team.Names, "hosts", nil,
		"replay with one replayer on each of these `HOSTS`; all must see TAPE and DIR under the same names. The "+
			"processes of a recorded host go to the host of the same name, all others are distributed")
	f.StringVar(&team.Launch, "launch", "",
		"with --hosts: how to run a command on a host, in `WORDS`: 'ssh {host} {command}', or 'mpirun -n {n} "+
			"{command}' for all at once (default: run all on this machine)")
	f.StringVar(&team.Listen, "listen", "",
		"with --hosts: the address at which the hosts reach this machine, `ADDRESS:PORT` (default 127.0.0.1)")
	f.StringVar(&team.Secret, "secret", "",
		"with --hosts: a `FILE` with the same bytes on all hosts, with which they authenticate (default: a generated "+
			"secret, passed on the standard input of the command; with {n} it is passed in memory, and all hosts run "+
			"on this machine)")
	part.Add(f)
	f.StringVar(&log, "log", "", "write all differences, each with its cause, to `FILE`")
	f.StringVar(&level, "log-level", "differences",
		"what to log: differences; skipped (also calls that are not made, and why); or calls (also `ALL` calls)")
	f.StringVar(&fromScript, "script", "", "replay the script in `DIR` (of iotape script) instead of a TAPE")
	f.Var(&bytes, "max-bytes",
		"the most bytes of DIR's file system that the replay may take; it stops before a call that could take more "+
			"(default, if 4 GiB or more are free: half of that, at most 16 GiB and four times what the calls write)")
	f.Uint64Var(&o.MaxFiles, "max-files", 0,
		"let the replay make at most `N` files (default: half of those that DIR's file system has room for, if "+
			"that is a million or more)")
	f.Uint64Var(&o.MaxOpen, "max-open", 0,
		"let the replay have at most `N` descriptors open (default: the user's hard limit)")
	f.Var(&memory, "max-memory",
		"the most memory that the process which makes the calls may have, without pages of files (default: three "+
			"quarters of what is available, and 2G at least)")
	f.DurationVar(&o.MaxTime, "max-time", 0,
		"end the replay if its calls take longer than `TIME`, such as 90s (default: no limit)")
	privilegedFlag(f, &o.PrivilegedFiles)
	f.BoolVar(&o.PrivilegedFiles, "devices", false, "the name of --privileged-files up to version 0.2")
	_ = f.MarkHidden("devices")
	f.BoolVar(&o.Force, "force", false, "replay into a directory that is not empty")
	f.BoolVar(&asJSON, "json", false, "print the report as one JSON object")
	f.StringVar(&html, "html", "", "also write a page that compares the recording with the replay to `FILE`")
	f.BoolVar(&dry, "dry-run", false,
		"only report which calls a replay would make and, with --into, what DIR lacks for it")
	return cmd
}

// privilegedFlag adds what gives rights.
func privilegedFlag(f *pflag.FlagSet, to *bool) {
	f.BoolVar(to, "privileged-files", false,
		"make set-user-id and set-group-id bits of files, capabilities of programs and, as root, the numbers of "+
			"device nodes; without this flag they are left off, and not compared")
}

// sharedFlag adds what the machines of a tape have in common.
func sharedFlag(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "shared", nil,
		"for a tape of several machines: all machines have the same files below `/PATH`, as on a network file "+
			"system; these are in DIR/PATH, the other files of each machine in DIR/HOST")
}

// sayLacks says that a tape is incomplete, before it is replayed.
func sayLacks(c *cli.Console, t *trace.Tape) {
	if lacks := report.Lacks(t.Manifest()); lacks != "" {
		c.Say("the tape is incomplete: %s; the replay may differ because of that", lacks)
	}
}
