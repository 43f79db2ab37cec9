// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
)

func newRecord(c *cli.Console) *cobra.Command {
	r := capturing{plan: c.Plan()}
	p := &r.plan
	var l livePrint
	var noIndex bool
	var last, sealing, rotation string
	var dumpOn []string
	var out cli.OutputFlags
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

--print shows the events while they are recorded, as iotape trace does (docs/trace.md).
--max-events, --max-size, --until and --duration end the recording before its command.
The command then continues without being recorded, and iotape waits for its end.

If the disk is full, the command continues. iotape counts what it does not record, and the
tape has that number. If iotape is killed, the command continues unharmed, and iotape
repair makes a tape of what was recorded. With ptrace, this is true only with --survive.
Without --survive, the command is killed too.

A recorder that is stopped (SIGSTOP), or whose output accepts nothing (a network file system,
a full pipe), holds the command for at most --hold-max. Then a stopped recorder is continued.
With a stalled output, the command continues. iotape counts what it does not record, and
records again when the output does. The command always waits for the reader of --print and
for a connection of --to (docs/pipes.md), unless you give --hold-max.

With --last, iotape is a flight recorder: it keeps only the recent past, in memory. It
writes a tape (NAME-1.tape, NAME-2.tape, …) when iotape dump or SIGUSR1 requests it, when
a program crashes, or when a condition of --dump-on holds. The conditions are errno=EIO,
op=fsync, slow=50ms, or several of these with commas; exit!=0 (of the command); and end.

With --rotate, a long recording goes on in another tape, NAME-2.tape, …, when the present
one is full. Each tape is made while the recording goes on. iotape merge joins them to the
tape of the whole (docs/tapes.md). With --to, each part is a stream of its own.

With --pipe, the recording passes through layers before it is written: compression,
checksums, encryption, a queue. With --to, iotape writes the recording to another place
and makes no tape. See iotape pipe --help and docs/pipes.md. iotape cannot seal an
encrypted recording here. Run iotape seal --identity where the secret key is.`,
		Example: `  iotape record -o git.tape -- git clone --no-hardlinks repo work
  iotape record -o make.tape --snapshot src -- make -C src
  iotape record --content none -- tar -xf big.tar      # the calls without the bytes
  iotape record --content write=full,read=hash -- sqlite3 db .dump
  iotape record --filter 'path under /srv/db and latency > 5ms' -o slow.tape -- ./server
  iotape record --print --until 'op = connect' -o start.tape -- ./server
  iotape record --last 30s,512M --dump-on errno=EIO --dump-on op=fsync,slow=50ms -o db.tape -- ./server
  sudo iotape record -o make.tape -- make -j8             # make runs as your user
  iotape record --pid 4711 --duration 30s -o slow.tape    # a process that already runs
  iotape record --cgroup docker-3f5e -o container.tape    # until Ctrl-C
  iotape record --all --last 5m --dump-on errno=EIO -o machine.tape
  iotape record --pid 4711 --rotate 512M,10m,keep=12 -o db.tape   # the last two hours
  iotape record --pipe async,zstd:3,checksum:@sum.key -o make.tape -- make
  iotape record --pipe zstd,encrypt:@recipients --to tls://collector:7070 -- ./server`,
		Annotations: cli.Exits(
			"N    the exit status of the command; 128+N if signal N ended it; 0 with --pid, --cgroup and --all",
			"125  iotape itself failed",
			"126  the command cannot be executed",
			"127  the command was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := cli.ParseValue(&p.Seal, sealing, session.ParseWhen)
			if err != nil {
				return err
			}
			if err = r.resolve(c, cmd, args); err != nil {
				return err
			}
			if err = out.Plan(p, cmd.Flags().Changed); err != nil {
				return cli.Usage(err)
			}
			if p.Flight, err = session.ParseFlight(last, dumpOn); err != nil {
				return cli.Usage(err)
			}
			if p.Rotate, err = session.ParseRotate(rotation); err != nil {
				return cli.Usage(err)
			}
			if (p.Flight != nil || p.Rotate != nil) && !cmd.Flags().Changed("mmap") {
				p.Capture.Mmap = capture.MmapOff // a part cannot name what was mapped before it begins
			}
			if err = r.resolveFilter(c, cmd); err != nil {
				return err
			}
			if err = cmp.Or(p.CheckFlight(), p.CheckRotate()); err != nil {
				return cli.Usage(err)
			}
			if err = p.CheckOutput(cmd.Flags().Changed); err != nil {
				return cli.Usage(err)
			}
			p.Index = c.Indexer(!noIndex)
			return l.record(cmd.Context(), c, &r)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&p.Tape, "output", "o", "", "the `TAPE` to make (default COMMAND-TIME.tape)")
	r.add(cmd, "record", "full", "data")
	f.BoolVar(&l.on, "print", false,
		"print the events while they are recorded, as iotape trace does, to standard error")
	l.addText(cmd, "print-")
	f.StringArrayVar(&p.Snapshots, "snapshot", nil, "store the state of `DIR` before the first event; repeatable")
	cli.AddNoIndex(f, &noIndex)
	f.StringVar(&last, "last", "",
		"flight recorder: keep only the last `TIME` or SIZE in memory, such as 30s, 512M, or both with a comma")
	f.StringArrayVar(&dumpOn, "dump-on", nil, "with --last: write a tape when the condition `THIS` holds; repeatable")
	f.StringVar(&rotation, "rotate", "",
		"go on in another tape, TAPE-2.tape, …, when `WHEN` is reached: a SIZE or a TIME, such as 512M or 10m, or "+
			"both with a comma; keep=N keeps only the last N tapes, as in 10m,keep=6")
	f.StringVar(&sealing, "seal", "after",
		"`WHEN` to make the tape: after the end; live, during the recording; or never, which leaves TAPE.partial for "+
			"iotape seal")
	f.BoolVar(&p.KeepStream, "keep-stream", false, "keep the unsealed recording beside the tape")
	out.Add(cmd)
	return cmd
}
