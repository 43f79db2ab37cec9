// SPDX-License-Identifier: Apache-2.0

// Run measures what recording costs and prints it; see package bench.
//
//	run [flags]
//
// It exits 0 if every run counts, 1 if a run failed or lost events, 2 if it could
// not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/iotape/iotape/bench"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// files are where results come from and go to besides the terminal.
type files struct {
	json, markdown string
	from           []string
}

func run(args []string, stdout, stderr io.Writer) int {
	var o bench.Options
	var f files
	var workloads, ways string
	var list, quiet bool
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&workloads, "workloads", "", "measure these `names`, separated by commas; all if not given")
	flags.StringVar(&ways, "ways", "", "record in the ways of these `names`; all if not given")
	flags.BoolVar(&list, "list", false, "list the workloads and the ways, and stop")
	flags.IntVar(&o.Rounds, "rounds", 5, "run each way `N` times")
	flags.IntVar(&o.SlowRounds, "slow-rounds", 3, "run each slow way `N` times")
	flags.Float64Var(&o.Scale, "scale", 1, "multiply all sizes by `F`")
	flags.BoolVar(&o.NoSync, "no-sync", false, "do not wait for the disk before each run: for a trial")
	flags.StringVar(&o.Iotape, "iotape", "bin/iotape", "measure this `program`")
	flags.StringVar(&o.Bin, "bin", "bin", "`directory` of what scripts/setup.sh --bench has made")
	flags.StringVar(&o.Dir, "dir", "/var/tmp", "`directory` on the disk to measure on")
	flags.StringVar(&o.Memory, "memory", "/dev/shm", "`directory` in memory, for the loops")
	flags.StringVar(&f.json, "json", "", "write the results and all samples to this `file`")
	flags.StringVar(&f.markdown, "markdown", "", "put the tables into this `file`, between its marks")
	flags.Func("from", "show this `file` of --json instead of measuring; repeatable, the later replace what the "+
		"earlier have of a workload", func(name string) error {
		f.from = append(f.from, name)
		return nil
	})
	flags.BoolVar(&quiet, "quiet", false, "say nothing while measuring")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 2
	}
	if flags.NArg() > 0 {
		return fail(fmt.Errorf("unexpected argument %q", flags.Arg(0)))
	}
	if list {
		printList(stdout)
		return 0
	}
	o.Workloads, o.Ways = names(workloads), names(ways)
	if !quiet {
		o.Progress = func(line string) { fmt.Fprintln(stderr, line) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	var r *bench.Report
	var err error
	if len(f.from) > 0 {
		r, err = read(f.from)
	} else {
		r, err = bench.Run(ctx, &o)
	}
	if r == nil {
		return fail(err)
	}
	// What was measured before an error is not thrown away.
	if err := errors.Join(err, f.write(r), r.Text(stdout)); err != nil {
		return fail(err)
	}
	if len(r.Failures()) > 0 {
		return 1
	}
	return 0
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func printList(w io.Writer) {
	fmt.Fprintln(w, "workloads")
	for _, x := range bench.Workloads() {
		fmt.Fprintf(w, "  %-18s %s\n", x.Name, strings.ReplaceAll(x.Title, "%s", "N"))
	}
	fmt.Fprintln(w, "ways")
	for _, x := range bench.Ways() {
		fmt.Fprintf(w, "  %-18s %s\n", x.Name, x.Title)
	}
}

// read returns the reports in files as one.
func read(from []string) (*bench.Report, error) {
	var all *bench.Report
	for _, name := range from {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		r, err := bench.ReadReport(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if all == nil {
			all = r
		} else {
			all.Update(r)
		}
	}
	return all, nil
}

func (f *files) write(r *bench.Report) error {
	if f.json != "" {
		var b strings.Builder
		if err := r.JSON(&b); err != nil {
			return err
		}
		if err := os.WriteFile(f.json, []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	if f.markdown == "" {
		return nil
	}
	doc, err := os.ReadFile(f.markdown)
	if err != nil {
		return err
	}
	if doc, err = bench.Replace(doc, r.Markdown()); err != nil {
		return fmt.Errorf("%s: %w", f.markdown, err)
	}
	return os.WriteFile(f.markdown, doc, 0o644)
}
