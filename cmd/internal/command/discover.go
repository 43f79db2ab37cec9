// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/throttlerun"
)

func newDiscover(c *cli.Console) *cobra.Command {
	d := throttlerun.Options{Plan: c.Plan()}
	var under []string
	var asJSON bool
	var backend, user string
	cmd := &cobra.Command{
		Use:   "discover -o TAPE [flags] [--] COMMAND [ARG...]",
		Short: "Find by experiment the dependencies between the nodes of a parallel application",
		Long: `Discover records a command once. Then it runs the command again, once for each node. A
node is a thread that makes I/O calls: usually the first thread of an MPI rank. In each
run, discover holds the calls of one node (or every P-th of them) until all other nodes
have ended or are stuck. The next call of a stuck node depends on the held call.
Discover stores these dependencies as the annotations of TAPE, together with those that
the tape itself proves (iotape annotate). Use them with iotape replay --order causal
--pace think.

Discover also finds dependencies that leave no trace, such as ranks that poll shared
memory. It separates polling from computing by the runs in which it held the polling
node, because a held node never waits for others.

A node is named by its place in the tree of processes: 1 is the command, 1.2 the second
process that it starts, and 1.2/3 the third thread of that process. All runs must make
the same calls: use --prepare to restore what the command changes. If a run makes other
calls, discover reports where, and ignores what came after.

With --hosts, each run starts one command on each host. The names of nodes then begin
with the name of the host: a:1.2. Discover joins the tapes of the hosts.

With --runs, discover keeps the runs in a directory and does not repeat them. Use the
same TAPE and directory to hold more nodes, or more of their calls. The last line of the
output suggests what to hold next.`,
		Example: `  iotape discover -o app.tape -- mpirun -n 4 ./app
  iotape discover -o app.tape --runs app.runs --nodes 1 --period 10 --prepare 'rm -f out' -- ./app
  iotape discover -o app.tape --runs app.runs --nodes 1.2,1.3 --period 10 --prepare 'rm -f out' -- ./app
  iotape discover -o app.tape --runs app.runs --suggest -- ./app
  iotape discover -o app.tape --hosts a,b --launch 'ssh {host} {command}' --listen 10.0.0.1:7072 -- /shared/app --me {host}
  iotape discover -o app.tape --hosts r0,r1,r2,r3 --launch 'mpirun -n {n} {command}' -- ./app
  iotape annotate app.tape --text
  iotape replay app.tape --into /mnt/x --order causal --pace think`,
		Annotations: cli.Exits(
			"0  the dependencies are stored in the tape",
			"1  the dependencies are stored, but runs differed or were ended, or a node never became stuck",
			"2  could not be done",
			"126, 127  the command cannot be executed, or was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if d.Plan.Backends, err = session.ParseBackends(backend); err != nil {
				return cli.Usage(err)
			}
			if d.Plan.Owner, err = session.FindOwner(user); err != nil {
				return cli.Usage(err)
			}
			if err := d.Complete(args, under); err != nil {
				return cli.Usage(err)
			}
			return discover(cmd.Context(), c, &d, asJSON)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVarP(&d.Plan.Tape, "output", "o", "", "the `TAPE` to make; with --runs, the tape to continue")
	f.StringVar(&d.Nodes, "nodes", "all",
		"`WHICH` nodes to hold, each in its own run: all; a number N, for the N nodes with the most calls; or names, "+
			"such as 1.2,1.3 (write the single name 1 as 1,)")
	f.IntVar(&d.Period, "period", 1, "hold each `P`th call of a node; a larger P takes less time, and finds less")
	f.DurationVar(&d.Budget, "budget", 30*time.Minute,
		"finish after `TIME`, including the final analysis; nodes that have no time left are not held")
	f.DurationVar(&d.Each, "each", 5*time.Minute, "end a run that takes longer than `TIME`")
	f.DurationVar(&d.Hold, "hold", throttle.DefaultMost,
		"hold a call for at most `TIME`, even if other nodes are still running")
	f.DurationVar(&d.Patience, "patience", throttle.DefaultPatience,
		"a node is stuck when it takes `TIME` longer than twice its time without held nodes")
	f.StringVar(&d.Runs, "runs", "", "keep the runs in `DIR`, and use the runs that are there")
	f.StringVar(&d.Prepare, "prepare", "", "run this shell `COMMAND` before each run")
	f.StringArrayVar(&under, "under", nil,
		"only calls on files below `DIR` count; repeatable (default: all files except those of the system)")
	f.BoolVar(&d.Alone, "alone", false, "store only the dependencies from held nodes, not those that the tape proves")
	f.BoolVar(&d.Suggest, "suggest", false, "with --runs: run nothing, only suggest what to hold next")
	f.StringVar(&backend, "backend", "auto",
		"the back end, `HOW` to record the first run: auto, ebpf, interpose or ptrace; discover always holds nodes "+
			"with ptrace")
	cli.AddUser(f, &user)
	f.StringSliceVar(&d.Team.Names, "hosts", nil,
		"run the command on each of these `HOSTS`, with its own recorder; {host} in the command stands for the name "+
			"of the host")
	f.StringVar(&d.Team.Launch, "launch", "",
		"with --hosts: how to run a command on a host, in `WORDS`: 'ssh {host} {command}', or 'mpirun -n {n} "+
			"{command}' for all at once, where the hosts are the ranks (default: run all on this machine)")
	f.StringVar(&d.Team.Listen, "listen", "",
		"with --hosts: the address at which the hosts reach this machine, `ADDRESS:PORT` (default 127.0.0.1)")
	f.StringVar(&d.Team.Secret, "secret", "",
		"with --hosts: a `FILE` with the same bytes on all hosts (default: a generated secret, see iotape replay)")
	f.BoolVar(&asJSON, "json", false, "print one JSON object, with times in ns")
	return cmd
}

// discover runs the experiment and prints what was found.
func discover(ctx context.Context, c *cli.Console, o *throttlerun.Options, asJSON bool) error {
	found, err := throttlerun.Run(ctx, o)
	if err != nil {
		return cli.CommandError(err)
	}
	err = c.Print(func(w *bufio.Writer) error {
		if asJSON {
			return found.WriteJSON(w)
		}
		return found.WriteText(w, o.Plan.Tape)
	})
	return cli.Ended(err, found.Whole())
}
