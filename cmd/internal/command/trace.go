// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/cmd/internal/cli"
)

func newTrace(c *cli.Console) *cobra.Command {
	r := capturing{plan: c.Plan()}
	l := livePrint{on: true}
	var noIndex bool
	p := &r.plan
	cmd := &cobra.Command{
		Use:   "trace [flags] {[--] COMMAND [ARG...] | --pid PID | --cgroup PATH | --all}",
		Short: "Print the calls and signals of a program while it runs",
		Long: `Trace runs a command, and prints each call when it has ended, and each signal, to standard
error: in the form of iotape print, in the order of their ends. Descendants are traced, too. With
--pid, --cgroup or --all, it prints what running processes do, until they end or until Ctrl-C.

Trace makes no tape. With -o it makes one, too. Without -o, it takes only the first 64 bytes
of each buffer, and nothing of mapped files, unless --content and --mmap say otherwise.

A line comes within 150 ms of its event, unless the machine is overloaded. When the reader of
the lines is slow, the command waits: no line is lost. With --on-overflow drop, the command
does not wait; a line says how many events are lost. --hold-max limits the wait if you give it.

With -c, trace prints no lines, but the sums of iotape stat at the end. --max-events, --max-size,
--until and --duration end the tracing; the traced programs continue, and trace ends with
the command.`,
		Example: `  iotape trace -- cat /etc/hostname
  iotape trace --filter 'failed and class = namespace' -- make
  iotape trace --print-to lines.txt -o make.tape -- make    # lines and a tape
  iotape trace -p 4711 --filter 'path under /etc'
  iotape trace -c -- tar -xf big.tar
  iotape trace --until 'op = connect' -- curl -s localhost`,
		Annotations: cli.Exits(
			"N    the exit status of the command; 128+N if signal N ended it; 0 with --pid, --cgroup and --all",
			"125  iotape itself failed",
			"126  the command cannot be executed",
			"127  the command was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if p.Unkept = p.Tape == ""; !p.Unkept {
				if !given("content") {
					r.content = "full"
				}
				if !given("mmap") {
					r.mmap = "data"
				}
			} else if given("no-index") {
				return cli.Usage(errors.New("--no-index applies to a tape, and without -o there is none"))
			}
			if err := r.resolve(c, cmd, args); err != nil {
				return err
			}
			if err := r.resolveFilter(c, cmd); err != nil {
				return err
			}
			p.Index = c.Indexer(!noIndex)
			return l.record(cmd.Context(), c, &r)
		},
	}
	f := cmd.Flags()
	r.add(cmd, "trace", "head:64", "off")
	f.StringVarP(&p.Tape, "output", "o", "", "also make the `TAPE`")
	f.BoolVarP(&l.count, "count", "c", false, "print sums at the end, and no lines")
	l.addText(cmd, "")
	cli.AddNoIndex(f, &noIndex)
	return cmd
}
