package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/causal/throttle/hosts"
	"github.com/iotape/iotape/internal/team"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// discovering is what iotape discover is told.
type discovering struct {
	plan     recordPlan
	nodes    string
	period   int
	budget   time.Duration // for all
	each     time.Duration // for a run
	most     time.Duration
	patience time.Duration
	runs     string // directory that runs are kept in
	prepare  string // shell command before each run
	under    []string
	alone    bool
	suggest  bool
	json     bool

	team     team.Options
	peers    *hosts.Team // nil: all runs here
	deadline time.Time
	reserve  time.Duration // that merging may take

	scope  throttle.Scope
	serial string
	known  []*throttle.Run // the first one is that in which nobody was held
	failed []string        // runs of which there is nothing, and why
}

func newDiscover(c *console) *cobra.Command {
	var d discovering
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
			if d.plan.backend, err = parseBackend(backend); err != nil {
				return usageError{err}
			}
			if d.plan.owner, err = findOwner(user); err != nil {
				return usageError{err}
			}
			if err := d.check(args); err != nil {
				return usageError{err}
			}
			return d.run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVarP(&d.plan.out, "output", "o", "", "the `TAPE` to make, or, with --runs, to go on with")
	f.StringVar(&d.nodes, "nodes", "all", "`WHICH` nodes to hold, each in a run of its own: all, a number (those with the most calls), or names such as 1.2,1.3; the name 1 alone is written 1,")
	f.IntVar(&d.period, "period", 1, "hold each `P`th call of a node; more are quicker, and find less")
	f.DurationVar(&d.budget, "budget", 30*time.Minute, "be done after `TIME`: what is not held by then is not held; the last of it is for putting together what was found")
	f.DurationVar(&d.each, "each", 5*time.Minute, "end a run that takes longer than `TIME`")
	f.DurationVar(&d.most, "hold", throttle.DefaultMost, "hold a call no longer than `TIME`, whoever goes on")
	f.DurationVar(&d.patience, "patience", throttle.DefaultPatience, "a node is stuck when it is `TIME` over twice what it took when nobody was held")
	f.StringVar(&d.runs, "runs", "", "keep the runs in `DIR`, and use those that are there")
	f.StringVar(&d.prepare, "prepare", "", "run this shell `COMMAND` before each run")
	f.StringArrayVar(&d.under, "under", nil, "only calls on files below `DIR` count; repeatable. If not given, all but those of the system")
	f.BoolVar(&d.alone, "alone", false, "store only what holding nodes showed, not what the tape itself proves")
	f.BoolVar(&d.suggest, "suggest", false, "with --runs: run nothing, only say what to hold next")
	f.StringVar(&backend, "backend", "auto", "`HOW` to record the first run: auto, ebpf or ptrace; nodes are always held by ptrace")
	f.StringVarP(&user, "user", "u", "", "as root: run the command as `USER`; under sudo, who called it")
	f.StringSliceVar(&d.team.Names, "hosts", nil, "run the command on each of these `HOSTS`, with a tracer of its own there; in the command {host} stands for the name")
	f.StringVar(&d.team.Launch, "launch", "", "with --hosts: how to run a command on a host, in `WORDS`: 'ssh {host} {command}'; 'mpirun -n {n} {command}' for all at once, whose ranks the hosts then are; if not given, all run here")
	f.StringVar(&d.team.Listen, "listen", "", "with --hosts: where the hosts reach this one, `ADDRESS:PORT`; 127.0.0.1 if not given")
	f.StringVar(&d.team.Secret, "secret", "", "with --hosts: a `FILE` with the same bytes on all hosts; if not given, one is made up, see iotape replay")
	f.BoolVar(&d.json, "json", false, "one JSON object, with times in ns")
	return cmd
}

// check makes the flags definite. Its errors are the user's.
func (d *discovering) check(args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("say what to run: a command")
	case d.plan.out == "":
		return errors.New(`required flag(s) "output" not set`)
	case d.period < 1:
		return fmt.Errorf("--period %d: it is to be 1, for each call, or more", d.period)
	case d.budget <= 0 || d.each <= 0 || d.most <= 0 || d.patience <= 0:
		return errors.New("--budget, --each, --hold and --patience are to be more than 0")
	case len(d.team.Names) == 0 && d.team.Launch+d.team.Listen+d.team.Secret != "":
		return errors.New("--launch, --listen and --secret are for --hosts")
	case len(d.team.Names) > 0 && d.plan.owner != nil:
		return errors.New("--hosts: the command runs as who the launcher makes it, there is no --user")
	case d.suggest && d.runs == "":
		return errors.New("--suggest looks at the runs that --runs keeps")
	}
	if n, err := strconv.Atoi(d.nodes); err == nil && n < 1 {
		return fmt.Errorf("--nodes %d: it is to be 1 or more", n)
	}
	for _, dir := range d.under {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		d.scope.Under = append(d.scope.Under, abs)
		if real, err := filepath.EvalSymlinks(abs); err == nil && real != abs {
			d.scope.Under = append(d.scope.Under, real)
		}
	}
	p := &d.plan
	p.capture = capture.Options{Command: args, Overflow: capture.OverflowBlock, Mmap: capture.MmapData}
	p.capture.Content, _ = capture.ParseContent("full")
	p.seal, p.name = sealAfter, filepath.Base(args[0])
	p.owner.plan(&p.capture)
	return nil
}

func (d *discovering) run(ctx context.Context, c *console) error {
	d.deadline = time.Now().Add(d.budget)
	// Those whose parents have ended are to be found when a run is ended.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if len(d.team.Names) > 0 && !d.suggest {
		d.team.Wait = min(team.Silence, d.budget)
		var err error
		if d.peers, err = hosts.New(&d.team); err != nil {
			return usageError{fmt.Errorf("--hosts: %w", err)}
		}
		defer d.peers.Close()
	}
	// The command's runs have the terminal's signals, see internal/ptracer.
	tape, err := d.tape(ctx, c)
	if err != nil {
		return err
	}
	defer tape.Close()
	if err := d.keep(); err != nil {
		return err
	}
	if err := d.quiet(ctx, c); err != nil {
		return err
	}
	began := time.Now()
	first, err := throttle.Merge(d.within(tape.Events()), &d.scope, d.team.Names, d.known[:1], d.alone)
	if err != nil {
		return err
	}
	const passes = 4 // that the end takes, about, of what this one did
	d.reserve = passes * time.Since(began)
	if len(first.Nodes) == 0 {
		return errors.New("no thread made an I/O call that counts: there is nobody to hold (--under says on which files)")
	}
	names, err := d.pick(first)
	if err != nil {
		return usageError{err}
	}
	for i, name := range names {
		if d.left() <= 0 {
			d.failed = append(d.failed, fmt.Sprintf("no time was left to hold node %s (--budget)", strings.Join(names[i:], ", ")))
			break
		}
		if err := d.hold(ctx, c, name, fmt.Sprintf("run %d of %d", i+1, len(names))); err != nil {
			return err
		}
	}
	if err := d.others(); err != nil {
		return err
	}
	return d.merge(c, tape)
}

// pick returns the nodes that are to be held.
func (d *discovering) pick(first *throttle.Result) ([]string, error) {
	if d.suggest {
		return nil, nil
	}
	var names []string
	byCalls := slices.Clone(first.Nodes)
	slices.SortStableFunc(byCalls, func(a, b throttle.NodeResult) int { return b.Calls - a.Calls })
	n, err := strconv.Atoi(d.nodes)
	switch {
	case d.nodes == "all":
		n = len(byCalls)
	case err != nil:
		for name := range strings.SplitSeq(strings.TrimSuffix(d.nodes, ","), ",") {
			known := slices.ContainsFunc(first.Nodes, func(n throttle.NodeResult) bool { return n.Name == name })
			if !known {
				return nil, fmt.Errorf("--nodes %s: there is no node %q; there are %s", d.nodes, name, nodeNames(first))
			}
			names = append(names, name)
		}
		return names, nil
	}
	for _, node := range byCalls[:min(n, len(byCalls))] {
		names = append(names, node.Name)
	}
	return names, nil
}

func nodeNames(r *throttle.Result) string {
	const most = 20
	var names []string
	for i, n := range r.Nodes {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// keep makes the directory of the runs.
func (d *discovering) keep() error {
	if d.runs == "" || d.suggest {
		return nil
	}
	return os.MkdirAll(d.runs, 0o777)
}

func (d *discovering) store(name string, r *throttle.Run) error {
	if d.runs == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(d.runs, name))
	if err != nil {
		return err
	}
	return errors.Join(r.Write(f), f.Close())
}

// load reads a run that was kept; nil if there is none.
func (d *discovering) load(name string) (*throttle.Run, error) {
	if d.runs == "" {
		return nil, nil
	}
	name = filepath.Join(d.runs, name)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := throttle.ReadRun(f, d.serial)
	if errors.Is(err, throttle.ErrMixed) {
		return nil, withHint(fmt.Errorf("%s: %w than %s", name, err, d.plan.out), "give each tape a directory of its own with --runs")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// others reads all runs that were kept.
func (d *discovering) others() error {
	if d.runs == "" {
		return nil
	}
	entries, err := os.ReadDir(d.runs)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "node-") || filepath.Ext(e.Name()) != ".json" {
			continue
		}
		r, err := d.load(e.Name())
		if err != nil {
			return err
		}
		d.known = append(d.known, r)
	}
	return nil
}

// merge stores what all runs say, and sums it up.
func (d *discovering) merge(c *console, t *trace.Tape) error {
	res, err := throttle.Merge(d.within(t.Events()), &d.scope, d.team.Names, d.known, d.alone)
	if err != nil {
		return err
	}
	notes, sum, err := causal.AnnotateWith(d.within(t.Events()), &res.Evidence)
	if err != nil {
		return err
	}
	if !d.suggest {
		if err := storeNotes(c, t, notes); err != nil {
			return err
		}
	}
	next := throttle.Suggest(res, d.known, sum)
	err = c.print(func(w *bufio.Writer) error {
		if d.json {
			return d.writeJSON(w, res, sum, next)
		}
		return d.writeText(w, res, sum, next)
	})
	if err == nil && len(res.Differ)+len(res.GaveUp)+len(d.failed) > 0 {
		return &statusError{Status: exitFound}
	}
	return err
}

func (d *discovering) writeText(w *bufio.Writer, r *throttle.Result, s *causal.Summary, next *throttle.Suggestion) error {
	fmt.Fprintf(w, "%s: %s between calls, %s contradicted; with what the tape proves, %s in %s\n", report.Plural(len(d.known)-1, "node was held", "nodes were held"),
		report.Plural(r.Found, "dependency", "dependencies"), report.Count(uint64(r.Refuted)), report.Plural(s.Waits, "wait", "waits"), d.plan.out)
	if s.ElapsedNS > 0 {
		writeExplained(w, s)
	}
	if n := len(r.Barriers); n > 0 {
		fmt.Fprintf(w, "%s recognised: all nodes wait for all\n", report.Plural(n, "barrier", "barriers"))
	}
	w.WriteByte('\n')
	table := report.Table{Head: []string{"node", "calls", "held", "for", "waited for", "waits", "command"}, Left: 1, Right: 6}
	for _, n := range r.Nodes {
		held, took := "–", "–"
		if n.Period > 0 {
			held, took = report.Count(uint64(n.Holds)), report.Duration(n.HeldNS)
		}
		table.Add(n.Name, report.Count(uint64(n.Calls)), held, took, report.Count(uint64(n.WaitedFor)), report.Count(uint64(n.Waits)), report.Printable(n.Comm))
	}
	if err := table.Write(w); err != nil {
		return err
	}
	w.WriteByte('\n')
	for i, diff := range r.Differ {
		if i == maxShown {
			more(w, len(r.Differ)-i)
			break
		}
		fmt.Fprintf(w, "the runs differ: %s\n", report.Printable(diff.String()))
	}
	for _, s := range append(r.GaveUp, d.failed...) {
		fmt.Fprintln(w, report.Printable(s))
	}
	fmt.Fprintf(w, "next: %s\n", next)
	return nil
}
