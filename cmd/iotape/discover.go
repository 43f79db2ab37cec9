package main

import (
	"bufio"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/throttlerun"
)

func newDiscover(c *console) *cobra.Command {
	d := throttlerun.Options{Plan: c.plan()}
	var under []string
	var asJSON bool
	var backend, user string
	cmd := &cobra.Command{
		Use:   "discover -o TAPE [flags] [--] COMMAND [ARG...]",
		Short: "Find out by experiment which node of a parallel application waits for which",
		Long: `Discover records a command once, and runs it again once for each of its nodes: the
threads that make I/O calls, of a rank of MPI usually its first. Each time the calls of
one node, or each P-th of them, are held until all other nodes have ended or are stuck.
What those do next waits for the call that was held. What is found is stored as the
annotations of TAPE, together with what the tape itself proves (iotape annotate), for
iotape replay --order causal --pace think.

That shows also what leaves no trace: ranks that wait for each other by looking at shared
memory again and again. What they did meanwhile is told from computing, because a node
that is held itself never has to wait.

Nodes are called by their place in the tree of processes: 1 is the command, 1.2 the second
process that it starts, and 1.2/3 the third thread of that. The runs have to make the same
calls: --prepare restores what the command changes. Where they differ, it is said where,
and what came after that call is not used.

With --hosts each run is one of several commands at a time, one on each host, and nodes
have the names of their hosts before them: a:1.2. The tapes of the hosts are joined.

With --runs the runs are kept in a directory, and those that are there are not made again:
call discover with the same TAPE and directory to hold more nodes, or more of their calls.
In the end a line says which would be worth the time.`,
		Example: `  iotape discover -o app.tape -- mpirun -n 4 ./app
  iotape discover -o app.tape --runs app.runs --nodes 1 --period 10 --prepare 'rm -f out' -- ./app
  iotape discover -o app.tape --runs app.runs --nodes 1.2,1.3 --period 10 --prepare 'rm -f out' -- ./app
  iotape discover -o app.tape --runs app.runs --suggest -- ./app
  iotape discover -o app.tape --hosts a,b --launch 'ssh {host} {command}' --listen 10.0.0.1:7072 -- /shared/app --me {host}
  iotape discover -o app.tape --hosts r0,r1,r2,r3 --launch 'mpirun -n {n} {command}' -- ./app
  iotape annotate app.tape --text
  iotape replay app.tape --into /mnt/x --order causal --pace think`,
		Annotations: exits(
			"0  found, and stored in the tape",
			"1  found and stored, but runs differed, were ended, or a node never became stuck",
			"2  could not be done",
			"126, 127  the command cannot be executed, or was not found"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if d.Plan.Backends, err = session.ParseBackends(backend); err != nil {
				return usageError{err}
			}
			if d.Plan.Owner, err = session.FindOwner(user); err != nil {
				return usageError{err}
			}
			if err := d.Complete(args, under); err != nil {
				return usageError{err}
			}
			return c.discover(cmd.Context(), &d, asJSON)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVarP(&d.Plan.Tape, "output", "o", "", "the `TAPE` to make, or, with --runs, to go on with")
	f.StringVar(&d.Nodes, "nodes", "all", "`WHICH` nodes to hold, each in a run of its own: all, a number (those with the most calls), or names such as 1.2,1.3; the name 1 alone is written 1,")
	f.IntVar(&d.Period, "period", 1, "hold each `P`th call of a node; more are quicker, and find less")
	f.DurationVar(&d.Budget, "budget", 30*time.Minute, "be done after `TIME`: what is not held by then is not held; the last of it is for putting together what was found")
	f.DurationVar(&d.Each, "each", 5*time.Minute, "end a run that takes longer than `TIME`")
	f.DurationVar(&d.Hold, "hold", throttle.DefaultMost, "hold a call no longer than `TIME`, whoever goes on")
	f.DurationVar(&d.Patience, "patience", throttle.DefaultPatience, "a node is stuck when it is `TIME` over twice what it took when nobody was held")
	f.StringVar(&d.Runs, "runs", "", "keep the runs in `DIR`, and use those that are there")
	f.StringVar(&d.Prepare, "prepare", "", "run this shell `COMMAND` before each run")
	f.StringArrayVar(&under, "under", nil, "only calls on files below `DIR` count; repeatable. If not given, all but those of the system")
	f.BoolVar(&d.Alone, "alone", false, "store only what holding nodes showed, not what the tape itself proves")
	f.BoolVar(&d.Suggest, "suggest", false, "with --runs: run nothing, only say what to hold next")
	f.StringVar(&backend, "backend", "auto", "`HOW` to record the first run: auto, ebpf or ptrace; nodes are always held by ptrace")
	f.StringVarP(&user, "user", "u", "", "as root: run the command as `USER`; under sudo, who called it")
	f.StringSliceVar(&d.Team.Names, "hosts", nil, "run the command on each of these `HOSTS`, with a tracer of its own there; in the command {host} stands for the name")
	f.StringVar(&d.Team.Launch, "launch", "", "with --hosts: how to run a command on a host, in `WORDS`: 'ssh {host} {command}'; 'mpirun -n {n} {command}' for all at once, whose ranks the hosts then are; if not given, all run here")
	f.StringVar(&d.Team.Listen, "listen", "", "with --hosts: where the hosts reach this one, `ADDRESS:PORT`; 127.0.0.1 if not given")
	f.StringVar(&d.Team.Secret, "secret", "", "with --hosts: a `FILE` with the same bytes on all hosts; if not given, one is made up, see iotape replay")
	f.BoolVar(&asJSON, "json", false, "one JSON object, with times in ns")
	return cmd
}

// discover runs the experiment and prints what was found.
func (c *console) discover(ctx context.Context, o *throttlerun.Options, asJSON bool) error {
	found, err := throttlerun.Run(ctx, o)
	if err != nil {
		return commandError(err)
	}
	err = c.print(func(w *bufio.Writer) error {
		if asJSON {
			return found.WriteJSON(w)
		}
		return found.WriteText(w, o.Plan.Tape)
	})
	return ended(err, found.Whole())
}
