// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
)

func newRecord(c *cli.Console) *cobra.Command {
	p := c.Plan()
	var noIndex bool
	var backend, content, overflow, mmap, last, user, sealing string
	var dumpOn []string
	var target cli.TargetFlags
	var out cli.OutputFlags
	var filter cli.FilterFlags
	ring := cli.Size(0)
	cmd := &cobra.Command{
		Use:   "record [-o TAPE] [flags] {[--] COMMAND [ARG...] | --pid PID | --cgroup PATH | --all}",
		Short: "Record a program, or processes that already run",
		Long: `Record runs a command. It records every storage call of the command and of the processes
that it starts, with all bytes, until the last of them ends. The command keeps its own
standard input, output and error, its signals and its exit status. Then iotape seals the
recording to a tape, and prints one line about the result on standard error.

As root, iotape records with eBPF. If that is not possible, it records with ptrace, which
is slower, and prints the reason.

Under sudo, the command runs as the user who called sudo, and the tape belongs to that
user. With --user root, the command runs as root.

With --pid, --cgroup or --all, iotape records processes that already run, with all their
threads, and the processes that they start. It records what they have open, the file
positions, and the calls in progress. The recording ends with the last process of --pid,
with the group of --cgroup, on Ctrl-C, SIGTERM or SIGHUP, or after --duration. The
recorded processes continue undisturbed.

Ctrl-C goes to the command. During sealing, Ctrl-C stops the sealing and keeps the
recording. You can seal it later with iotape seal.

With --filter (docs/filters.md), the tape has the calls that match, and the calls that
explain their descriptors and names. It is the tape that iotape slice --filter makes of a
complete recording. If the back end can decide that a call does not match, it does not
record the call.

If the disk is full, the command continues. iotape counts what it does not record, and the
tape has that number. If iotape is killed, the command continues unharmed, and iotape
repair makes a tape of what was recorded. With ptrace, this is true only with --survive.
Without --survive, the command is killed too.

With --last, iotape is a flight recorder: it keeps only the recent past, in memory. It
writes a tape (NAME-1.tape, NAME-2.tape, …) when iotape dump or SIGUSR1 requests it, when
a program crashes, or when a condition of --dump-on holds. The conditions are errno=EIO,
op=fsync, slow=50ms, or several of these with commas; exit!=0 (of the command); and end.

With --pipe, the recording passes through layers before it is written: compression,
checksums, encryption, a queue. With --to, iotape writes the recording to another place
and makes no tape. See iotape pipe --help and docs/pipes.md. iotape cannot seal an
encrypted recording here. Run iotape seal --identity where the secret key is.`,
		Example: `  iotape record -o git.tape -- git clone --no-hardlinks repo work
  iotape record -o make.tape --snapshot src -- make -C src
  iotape record --content none -- tar -xf big.tar      # the calls without the bytes
  iotape record --content write=full,read=hash -- sqlite3 db .dump
  iotape record --filter 'path under /srv/db and latency > 5ms' -o slow.tape -- ./server
  iotape record --last 30s,512M --dump-on errno=EIO --dump-on op=fsync,slow=50ms -o db.tape -- ./server
  sudo iotape record -o make.tape -- make -j8             # make runs as your user
  iotape record --pid 4711 --duration 30s -o slow.tape    # a process that already runs
  iotape record --cgroup docker-3f5e -o container.tape    # until Ctrl-C
  iotape record --all --last 5m --dump-on errno=EIO -o machine.tape
  iotape record --pipe async,zstd:3,checksum:@sum.key -o make.tape -- make
  iotape record --pipe zstd,encrypt:@recipients --to tls://collector:7070 -- ./server`,
		Annotations: cli.Exits(
			"N    the exit status of the command; 128+N if signal N ended it; 0 with --pid, --cgroup and --all",
			"125  iotape itself failed",
			"126  the command cannot be executed",
			"127  the command was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var full capture.Overflow
			err := cmp.Or(
				cli.ParseValue(&p.Backends, backend, session.ParseBackends),
				cli.ParseValue(&p.Capture.Content, content, capture.ParseContent),
				cli.ParseValue(&full, overflow, capture.ParseOverflow),
				cli.ParseValue(&p.Capture.Mmap, mmap, capture.ParseMmap),
				cli.ParseValue(&p.Seal, sealing, session.ParseWhen))
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("on-overflow") {
				p.Capture.Overflow = full
			}
			if err = target.Plan(&p, args); err != nil {
				return cli.Usage(err)
			}
			if err = out.Plan(&p, cmd.Flags().Changed); err != nil {
				return cli.Usage(err)
			}
			if p.Owner, err = session.FindOwner(user); err != nil {
				return cli.Usage(err)
			}
			p.Owner.Apply(&p.Capture)
			if p.Capture.All && full == capture.OverflowBlock && cmd.Flags().Changed("on-overflow") {
				c.Say("--on-overflow block with --all can stop the machine: the recorder may wait for a process that " +
					"it holds")
			}
			if p.Flight, err = session.ParseFlight(last, dumpOn); err != nil {
				return cli.Usage(err)
			}
			if p.Flight != nil && !cmd.Flags().Changed("mmap") {
				p.Capture.Mmap = capture.MmapOff // a dump cannot name what was mapped before it begins
			}
			if err := p.CheckFlight(); err != nil {
				return cli.Usage(err)
			}
			if p.Filter, err = filter.Expr(); err != nil {
				return err
			}
			if p.Filter != nil {
				g, err := cli.RecordFilter(c, p.Filter)
				if err != nil {
					return err
				}
				if p.Flight == nil { // its conditions look at all calls
					p.Prefilter(g, cmd.Flags().Changed("mmap"))
				}
			}
			if err = p.CheckOutput(cmd.Flags().Changed); err != nil {
				return cli.Usage(err)
			}
			p.Capture.RingBytes = int(ring)
			p.Index = c.Indexer(!noIndex)
			return cli.Record(cmd.Context(), &p)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are the command's
	f.StringVarP(&p.Tape, "output", "o", "", "the `TAPE` to make (default COMMAND-TIME.tape)")
	target.Add(cmd, "record")
	f.StringVarP(&user, "user", "u", "",
		"as root: run the command as `USER`, who then owns the tape (default under sudo: the user who called sudo)")
	f.BoolVar(&p.Capture.Wakeups, "wakeups", false, "also record which thread woke which; needs eBPF")
	f.StringVar(&backend, "backend", "auto", "the back end, `HOW` to record: auto, ebpf, interpose or ptrace")
	f.BoolVar(&p.Capture.EveryCall, "every-call", false,
		"with ptrace: also record frequent calls that do not concern storage (waits, clocks, …); eBPF always records "+
			"them")
	f.BoolVar(&p.Capture.Survive, "survive", false,
		"with ptrace: let the command continue if the recorder is killed; this is slower. With eBPF the command "+
			"always continues")
	f.StringVar(&content, "content", "full",
		"`WHICH` content (bytes that calls move) to keep: full, head:N, signature, hash or none; read=WHICH and "+
			"write=WHICH for one direction")
	f.StringVar(&mmap, "mmap", "data",
		"`WHAT` to record of mapped files: data (reads and stores; of programs and libraries only the use of a "+
			"page), full (programs and libraries like other files), written (stores only) or off")
	filter.Add(f)
	f.StringVar(&overflow, "on-overflow", "block",
		"`WHAT` to do when the command is faster than the recorder: block the command, or drop events and count "+
			"them; drop is the default with --all")
	f.Var(&ring, "ring", "size of the buffers between kernel and recorder; 0 means 128M")
	f.StringArrayVar(&p.Snapshots, "snapshot", nil, "store the state of `DIR` before the first event; repeatable")
	cli.AddNoIndex(f, &noIndex)
	f.StringVar(&last, "last", "",
		"flight recorder: keep only the last `TIME` or SIZE in memory, such as 30s, 512M, or both with a comma")
	f.StringArrayVar(&dumpOn, "dump-on", nil, "with --last: write a tape when the condition `THIS` holds; repeatable")
	f.StringVar(&sealing, "seal", "after",
		"`WHEN` to make the tape: after the end; live, during the recording; or never, which leaves TAPE.partial for "+
			"iotape seal")
	f.BoolVar(&p.KeepStream, "keep-stream", false, "keep the unsealed recording beside the tape")
	out.Add(cmd)
	return cmd
}
