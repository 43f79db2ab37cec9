package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/session"
)

func newRecord(c *console) *cobra.Command {
	p := c.plan()
	var noIndex bool
	var backend, content, overflow, mmap, last, user, sealing string
	var dumpOn []string
	var target targetFlags
	var out outputFlags
	var filter filterFlags
	ring := sizeFlag(0)
	cmd := &cobra.Command{
		Use:   "record [-o TAPE] [flags] {[--] COMMAND [ARG...] | --pid PID | --cgroup PATH | --all}",
		Short: "Run a command, or take what runs already, and record what it does",
		Long: `Record runs a command and records every storage call that it and the processes
it starts make, with all bytes, until the last of them has ended. Its standard
input, output and error, its signals and its exit status are the command's own.
Then the recording is sealed to a tape, and one line on standard error says what
came of it.

Under sudo the command runs as the user who called sudo, to whom the tape will
belong; --user root has it run as root.

As root the recording is made with eBPF. Where that is not possible it is made
with ptrace, which is slower, and a line says why.

What runs already is recorded with --pid, --cgroup or --all: its processes with all
threads, what they have open and where they are in it, the calls that they are in,
and all that they start. The recording ends with the last of the processes of --pid,
with the group of --cgroup, on Ctrl-C, SIGTERM or SIGHUP, or after --duration; what
is recorded runs on undisturbed.

Ctrl-C goes to the command. When the tape is being sealed, it stops sealing and
keeps the recording, to be sealed later with iotape seal.

With --filter (docs/filters.md) the tape has the calls that fit and those that say what
their descriptors and names stand for: what iotape slice --filter makes of a whole
recording. What can be decided where calls are recorded is not recorded at all.

If the disk fills up the command goes on; what is not recorded is counted, and
the tape says so. If iotape itself is killed the command goes on unharmed, and
iotape repair makes a tape of what was recorded until then; with ptrace this is
so with --survive, and without it the command is killed too.

With --last nothing is written while all is well: only the recent past is kept, in
memory. It is written to a tape of its own, NAME-1.tape and so on, when iotape dump
or SIGUSR1 asks for it, when a program crashes, and on the conditions of --dump-on:
errno=EIO, op=fsync, slow=50ms, or several with commas; exit!=0 of the command; end.

With --pipe the recording passes through a chain of layers before it is written:
compression, checksums, encryption, a queue. With --to it goes somewhere else than into
a tape. iotape pipe --help and docs/pipes.md have both. An encrypted recording is not
sealed here: iotape seal --identity does that where the secret key is.`,
		Example: `  iotape record -o git.tape -- git clone --no-hardlinks repo work
  iotape record -o make.tape --snapshot src -- make -C src
  iotape record --content none -- tar -xf big.tar      # what was called, not the bytes
  iotape record --content write=full,read=hash -- sqlite3 db .dump
  iotape record --filter 'path under /srv/db and latency > 5ms' -o slow.tape -- ./server
  iotape record --last 30s,512M --dump-on errno=EIO --dump-on op=fsync,slow=50ms -o db.tape -- ./server
  sudo iotape record -o make.tape -- make -j8             # make runs as you
  iotape record --pid 4711 --duration 30s -o slow.tape    # what runs already
  iotape record --cgroup docker-3f5e -o container.tape    # until Ctrl-C
  iotape record --all --last 5m --dump-on errno=EIO -o machine.tape
  iotape record --pipe async,zstd:3,checksum:@sum.key -o make.tape -- make
  iotape record --pipe zstd,encrypt:@recipients --to tls://collector:7070 -- ./server`,
		Annotations: exits(
			"N    the command's own; 128+N if signal N ended it; 0 for what ran already",
			"125  iotape itself failed",
			"126  the command cannot be executed",
			"127  the command was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var full capture.Overflow
			err := cmp.Or(
				parseValue(&p.Backends, backend, session.ParseBackends),
				parseValue(&p.Capture.Content, content, capture.ParseContent),
				parseValue(&full, overflow, capture.ParseOverflow),
				parseValue(&p.Capture.Mmap, mmap, capture.ParseMmap),
				parseValue(&p.Seal, sealing, session.ParseWhen))
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("on-overflow") {
				p.Capture.Overflow = full
			}
			if err = target.plan(&p, args); err != nil {
				return usageError{err}
			}
			if err = out.plan(&p, cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			if p.Owner, err = session.FindOwner(user); err != nil {
				return usageError{err}
			}
			p.Owner.Apply(&p.Capture)
			if p.Capture.All && full == capture.OverflowBlock && cmd.Flags().Changed("on-overflow") {
				c.say("--on-overflow block with --all can stop the machine: whoever is held may be whom the recorder waits for")
			}
			if p.Flight, err = session.ParseFlight(last, dumpOn); err != nil {
				return usageError{err}
			}
			if p.Flight != nil && !cmd.Flags().Changed("mmap") {
				p.Capture.Mmap = capture.MmapOff // a dump cannot name what was mapped before it begins
			}
			if err := p.CheckFlight(); err != nil {
				return usageError{err}
			}
			if p.Filter, err = filter.expr(); err != nil {
				return err
			}
			if p.Filter != nil {
				g, err := recordFilter(c, p.Filter)
				if err != nil {
					return err
				}
				if p.Flight == nil { // its conditions look at all calls
					p.Prefilter(g, cmd.Flags().Changed("mmap"))
				}
			}
			if err = p.CheckOutput(cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			p.Capture.RingBytes = int(ring)
			p.Index = c.indexer(!noIndex)
			return record(cmd.Context(), &p)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the command are the command's
	f.StringVarP(&p.Tape, "output", "o", "", "the `TAPE` to make; COMMAND-TIME.tape if not given")
	target.add(cmd, "record")
	f.StringVarP(&user, "user", "u", "", "as root: run the command as `USER`, to whom the tape belongs; under sudo, who called it")
	f.BoolVar(&p.Capture.Wakeups, "wakeups", false, "also record who woke up whom; needs eBPF")
	f.StringVar(&backend, "backend", "auto", "`HOW` to record: auto, ebpf or ptrace")
	f.BoolVar(&p.Capture.EveryCall, "every-call", false, "with ptrace, also record the frequent calls without meaning for storage (waits, clocks, …) that it lets through; eBPF always does")
	f.BoolVar(&p.Capture.Survive, "survive", false, "with ptrace, let the command live when the recorder is killed, which is slower; with eBPF it always does")
	f.StringVar(&content, "content", "full", "`WHICH` of the bytes that calls move to keep: full, head:N, signature, hash or none; read=WHICH and write=WHICH for one direction")
	f.StringVar(&mmap, "mmap", "data", "`WHAT` to record of files that are mapped into memory: data (reads and stores; of programs and libraries only that a page was used), full (those like other files), written (stores only) or off")
	filter.add(f)
	f.StringVar(&overflow, "on-overflow", "block", "`WHAT` to do when the command is faster than the recorder: block it, or drop events and count them, which is the default of --all")
	f.Var(&ring, "ring", "size of the buffers between kernel and recorder; 0 is 128M")
	f.StringArrayVar(&p.Snapshots, "snapshot", nil, "store the state of `DIR` before the first event; repeatable")
	f.BoolVar(&noIndex, "no-index", false, "do not make the tape's Parquet files; iotape query and iotape index make them later")
	f.StringVar(&last, "last", "", "flight recorder: keep only the last `TIME`, or SIZE, or both with a comma, in memory; 30s, 512M")
	f.StringArrayVar(&dumpOn, "dump-on", nil, "with --last: write a tape when `THIS` happens; repeatable")
	f.StringVar(&sealing, "seal", "after", "`WHEN` to make the tape: after the end; live, while recording goes on; or never, which leaves TAPE.partial for iotape seal")
	f.BoolVar(&p.KeepStream, "keep-stream", false, "keep the unsealed recording beside the tape")
	out.add(cmd)
	return cmd
}
