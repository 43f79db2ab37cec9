package main

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
	"github.com/iotape/iotape/analyze/report/compare"
	"github.com/iotape/iotape/internal/term"
	"github.com/iotape/iotape/internal/wholefile"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/replay/hosts"
)

func newReplay(c *console) *cobra.Command {
	var o replay.Options
	var asJSON, dry bool
	var checks, mismatch, pace, mode, data, log, level, mmap, uring, compute, fromScript, html string
	var part slicing
	var renames []string
	var team hosts.Options
	cmd := &cobra.Command{
		Use:   "replay TAPE --into DIR",
		Short: "Repeat the recorded calls inside a directory",
		Long: `Replay makes in DIR what the recording found before its first event, repeats its
calls there, and touches nothing outside DIR, whatever the tape says: a path
/home/u/x of the recording is DIR/home/u/x.

With --verify it compares every result with the recorded one: return values and
error numbers, the bytes of every read, what stat and directory listings said as
far as it can be reproduced; and in the end the files with those that the
recording left. What processes do with each other (pipes, sockets, signals) is
modelled and not repeated; --dry-run says which calls of a tape these are, docs/ops.md
which there are.

Of a tape of several machines, each has a directory of its own in DIR, but for what
--shared says that all have in common.`,
		Example: `  iotape replay git.tape --into again --verify
  iotape replay git.tape --into again --verify --json | jq .different
  iotape replay db.tape --into again --verify=returns,data --on-mismatch abort
  iotape replay db.tape --into again --verify --order resource --log differences.txt
  iotape replay db.tape --into again --filter 'path.startsWith("/db/")' --from 10s --to 20s
  iotape annotate db.tape && iotape replay db.tape --into again --order causal --pace think
  iotape replay db.tape --dry-run --into /mnt/ssd
  iotape replay db.tape --into /mnt/ssd/x --pace recorded --speed 2
  iotape replay --script db.script --into again --verify
  iotape merge -o all.tape a.tape b.tape && iotape replay all.tape --into again --verify --shared /scratch
  iotape replay app.tape --into /shared/x --order causal --pace think --hosts a,b,c \
    --launch 'ssh {host} {command}' --listen 10.0.0.1:7071 --secret /shared/secret`,
		Args:        cobra.MaximumNArgs(1),
		Annotations: exits("0  replayed; all calls succeeded or failed as recorded and, with --verify, everything agreed; with --dry-run, nothing is lacking", "1  something differed; with --dry-run, the target lacks something", "2  could not be replayed, or was interrupted"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cmp.Or(
				parseFlag(&o.Checks, "verify", checks, replay.ParseChecks),
				parseFlag(&o.Pace, "pace", pace, replay.ParsePace),
				parseFlag(&o.Order, "order", mode, replay.ParseOrder),
				parseFlag(&o.Data, "data", data, replay.ParseData),
				parseFlag(&o.LogLevel, "log-level", level, replay.ParseLogLevel),
				oneOf(&o.Sleep, "--compute", compute, "spin", "sleep"),
				oneOf(&o.Native.Mmap, "--mmap", mmap, "emulate", "native"),
				oneOf(&o.Native.Requests, "--uring", uring, "sync", "native"),
				parseFlag(&o.Renames, "map", renames, replay.ParseRenames),
				oneOf(&o.Abort, "--on-mismatch", mismatch, "warn", "abort"))
			if err != nil {
				return err
			}
			if o.Speed <= 0 {
				return usageError{errors.New("--speed: it is to be greater than 0")}
			}
			if o.Into == "" && !dry {
				return usageError{errors.New(`required flag(s) "into" not set`)}
			}
			t, err := openTapeOrScript(cmd.Context(), args, fromScript)
			if err != nil {
				return err
			}
			defer t.Close()
			if part.picks() {
				if t, err = part.temporary(cmd.Context(), c, t); err != nil {
					return err
				}
				defer t.Close()
			}
			if log != "" {
				if o.Log, err = os.Create(log); err != nil {
					return fmt.Errorf("make the log: %w", err)
				}
				defer o.Log.Close()
			}
			if len(team.Names) > 0 {
				if o.Log != nil || dry || html != "" {
					return usageError{errors.New("--hosts: there is no --log, no --html and no --dry-run of several hosts")}
				}
				hub, err := hosts.New(&team)
				if err != nil {
					return usageError{fmt.Errorf("--hosts: %w", err)}
				}
				defer hub.Close()
				o.Team = hub
			}
			if dry {
				return dryRun(cmd.Context(), c, t, &o, asJSON)
			}
			progress := c.progress(report.Count)
			phases := map[string]string{"plan": "planning", "replay": "replaying", "compare": "comparing"}
			o.Progress = func(phase string, done, total uint64) {
				progress.Update(cmp.Or(phases[phase], phase), int64(done), int64(total))
			}
			before := replayed.ChildUsage()
			rep, err := replay.Run(cmd.Context(), t, &o)
			progress.Done()
			if err != nil {
				return replayed.Interrupted(cmd.Context(), err)
			}
			if html != "" {
				r := replayed.NewComparison(t)
				var run compare.Run
				run, r.Recorded = replayed.RunOf(rep, &o, before)
				r.Targets = []compare.Target{{Name: "replayed", Runs: []compare.Run{run}}}
				if err := wholefile.Write(html, func(w io.Writer) error { return r.Page().HTML(w, nil) }); err != nil {
					return err
				}
			}
			return c.result(either(asJSON, func(w io.Writer) error { return replayed.WriteJSON(w, rep) }, func(w io.Writer) error { return replayed.WriteText(w, rep, &o, term.StyleOf(c.out)) }), rep.OK())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Into, "into", "", "the `DIR` to replay into; made if it does not exist, else it must be empty")
	f.StringVar(&checks, "verify", "none", "compare with the recording: all, which is what --verify alone means, or `WHAT` of returns, data, stat, dirs and tree, with commas")
	f.Lookup("verify").NoOptDefVal = "all"
	f.StringVar(&mismatch, "on-mismatch", "warn", "`WHAT` to do when a result differs: warn in the end, or abort")
	f.StringVar(&pace, "pace", "afap", "`WHEN` to make calls: afap (as fast as possible), think (with the computing between them) or recorded (at their times)")
	f.StringVar(&mode, "order", "overlap", "`HOW` much of the recorded order to keep: recorded (all), overlap (of calls that did not overlap), resource (of each thread, and on each file, name and lock) or causal (and as iotape annotate found that threads waited for each other)")
	f.Float64Var(&o.Speed, "speed", 1, "with --pace think or recorded: `F` times as fast as recorded")
	f.StringVar(&data, "data", "recorded", "what to write: recorded (zeros for what the tape does not have), or `WHAT` of zero, random and pattern:HEX; then what is read is not compared")
	f.StringVar(&compute, "compute", "spin", "with --pace think: `HOW` to let the time pass in which threads computed: spin or sleep")
	f.StringVar(&mmap, "mmap", "emulate", "`HOW` to repeat what was read and stored through mappings: emulate (pread and pwrite) or native (mappings)")
	f.StringVar(&uring, "uring", "sync", "`HOW` to repeat requests of io_uring and AIO: sync (as calls) or native (as requests, one at a time for each thread)")
	f.StringArrayVar(&renames, "map", nil, "replay what was done below /OLD below `/NEW` of the target: /OLD=/NEW")
	sharedFlag(f, &o.Shared)
	f.StringSliceVar(&team.Names, "hosts", nil, "have the calls made by a replayer on each of these `HOSTS`, of which all see TAPE and DIR by the same names; the processes of the recording are divided among them: those of one of its hosts are the host's of that name")
	f.StringVar(&team.Launch, "launch", "", "with --hosts: how to run a command on a host, in `WORDS`: 'ssh {host} {command}'; 'mpirun -n {n} {command}' for all at once; if not given, all run here")
	f.StringVar(&team.Listen, "listen", "", "with --hosts: where the hosts reach this one, `ADDRESS:PORT`; 127.0.0.1 if not given")
	f.StringVar(&team.Secret, "secret", "", "with --hosts: a `FILE` with the same bytes on all hosts, by which they know each other; if not given, one is made up and passed on the standard input of the command, or, with {n}, in memory: then all run on this machine")
	part.add(f)
	f.StringVar(&log, "log", "", "write differences, each with what it follows from, to `FILE`")
	f.StringVar(&level, "log-level", "differences", "and more: skipped (calls that are not made, and why) or calls (`ALL` of them)")
	f.StringVar(&fromScript, "script", "", "in place of TAPE: replay the script in `DIR` (iotape script)")
	f.BoolVar(&o.Devices, "devices", false, "as root, make device nodes with their numbers; else they lead to no device")
	f.BoolVar(&o.Force, "force", false, "replay into a directory that is not empty")
	f.BoolVar(&asJSON, "json", false, "the report as one JSON object")
	f.StringVar(&html, "html", "", "write a page that has the recording and the replay side by side to `FILE`, too")
	f.BoolVar(&dry, "dry-run", false, "only say which calls would be made, and what of it DIR lacks, if --into names one")
	return cmd
}

// sharedFlag adds what the machines of a tape have in common.
func sharedFlag(f *pflag.FlagSet, to *[]string) {
	f.StringArrayVar(to, "shared", nil, "of a tape of several machines: all have the same files below `/PATH`, as on a network's file system; DIR/PATH has them, and DIR/HOST what each has for itself")
}
