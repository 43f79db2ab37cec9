// SPDX-License-Identifier: Apache-2.0

// Run makes an accuracy study and prints it; see package accuracy. It needs root, and a
// machine on which nothing else runs.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/bench/accuracy"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var o accuracy.Options
	var out, from, doc string
	var quick bool
	f := flag.NewFlagSet("accuracy", flag.ContinueOnError)
	list := func(to *[]string, name, usage string) {
		f.Func(name, usage+", separated by commas; all if not given", func(s string) error {
			*to = strings.Split(s, ",")
			return nil
		})
	}
	list(&o.Apps, "apps", "`applications`: pseudo, pseudosync, pseudosyncdat, fitness, quake, each in all ways of "+
		"-syncs, or in one as in quake/spin; make, postgres, rocksdb, rocksdb-2")
	list(&o.Held, "held", "of which `applications` nodes are held")
	list(&o.Stores, "stores", "storage `systems`: disk, throttled, arm, channels")
	list(&o.Modes, "modes", "`ways` to replay: afap, think, resource, causal, throttle")
	f.Func("once", "`ways` to replay in the first turn only, separated by commas", func(s string) error {
		o.Once = strings.Split(s, ",")
		return nil
	})
	list(&o.Syncs, "syncs", "`what` ranks wait by: pipe, socket, futex, spin, mpi")
	f.Func("periods", "hold each `P`th call of a node, several with commas (default 1,5,10,100,1000)",
		func(s string) error {
			for p := range strings.SplitSeq(s, ",") {
				n, err := strconv.Atoi(p)
				if err != nil || n < 1 {
					return fmt.Errorf("a period is 1 or more")
				}
				o.Periods = append(o.Periods, n)
			}
			return nil
		})
	f.BoolVar(&o.Sampling, "sampling", true, "with the first period, also hold only 1, 2 and so on of the nodes")
	f.BoolVar(&o.Rates, "rates", true, "also show bandwidth over time, of the first turn")
	f.StringVar(&o.Traced, "traced", "disk", "record on this storage `system`")
	f.IntVar(&o.Ranks, "ranks", 4, "`processes`")
	f.IntVar(&o.Polling, "polling", 0,
		"`processes` of applications in the ways spin and mpi (default as many as processors, and no more than -ranks)")
	f.Float64Var(&o.Scale, "scale", 1, "multiply the rounds by `F`")
	f.DurationVar(&o.Think, "think", 0, "computing before each block (default 500µs)")
	f.IntVar(&o.Nodes, "nodes", 8, "hold at most so many `nodes` of an application")
	f.IntVar(&o.Repeat, "repeat", 3, "make `N` turns, of whose errors the median counts")
	f.DurationVar(&o.Budget, "budget", 0, "begin nothing more after this `time`; what was left out is said")
	f.BoolVar(&quick, "quick", false,
		"what a quarter of an hour has room for: some applications, one turn each, -budget 10m")
	f.StringVar(&o.Iotape, "iotape", "bin/iotape", "measure this `program`")
	f.StringVar(&o.Dir, "dir", "/var/tmp", "`directory` on the disk to measure on")
	f.StringVar(&o.Memory, "memory", "/dev/shm", "`directory` in memory")
	f.StringVar(&out, "out", "", "write report.json, report.md, report.html and the figures as SVG to this `directory`")
	f.StringVar(&doc, "doc", "",
		"also put the tables into this `file`, between its lines <!-- accuracy: begin --> and <!-- accuracy: end -->")
	f.StringVar(&from, "from", "", "measure nothing: read this report.json")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if quick {
		hurry(&o, f)
	}
	o.Progress = func(line string) { fmt.Fprintln(os.Stderr, line) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if out != "" && from == "" { // so that hours are not lost
		o.Partial = func(r *accuracy.Report) {
			if err := writeJSON(r, out); err != nil {
				o.Progress(err.Error())
			}
		}
	}
	r, err := study(ctx, o, from)
	if r != nil {
		if out != "" {
			err = errors.Join(err, write(r, out))
		}
		if doc != "" {
			err = errors.Join(err, into(r, doc))
		}
		err = errors.Join(err, r.Page().Text(os.Stdout))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "accuracy: %v\n", err)
		return 2
	}
	if r.Interrupted || len(r.Rows) == 0 {
		return 1
	}
	return 0
}

// hurry makes the study a quick one, but for what was asked for.
func hurry(o *accuracy.Options, f *flag.FlagSet) {
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	set := func(name string, do func()) {
		if !given[name] {
			do()
		}
	}
	set("apps", func() {
		o.Apps = []string{"pseudosync/pipe", "pseudosync/spin", "pseudosyncdat/spin", "fitness/pipe", "quake/pipe",
			"pseudosync/mpi", "make", "rocksdb", "postgres"}
	})
	set("stores", func() { o.Stores = []string{"disk", "arm", "channels"} })
	set("modes", func() { o.Modes = []string{"afap", "think", "resource", "causal", "throttle"} })
	set("periods", func() { o.Periods = []int{1, 10, 100} })
	set("scale", func() { o.Scale = .25 })
	set("nodes", func() { o.Nodes = 4 })
	set("repeat", func() { o.Repeat = 1 })
	set("budget", func() { o.Budget = 10 * time.Minute })
}

func study(ctx context.Context, o accuracy.Options, from string) (*accuracy.Report, error) {
	if from == "" {
		return accuracy.Run(ctx, o)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return nil, err
	}
	r, err := accuracy.Read(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return r, nil
}

// writeJSON writes the figures only, at once.
func writeJSON(r *accuracy.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "report.json")
	if err := os.WriteFile(file+".new", append(b, '\n'), 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// into puts the tables between two lines of a document.
func into(r *accuracy.Report, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var tables bytes.Buffer
	if err := r.Tables(&tables); err != nil {
		return err
	}
	text, err := accuracy.Between(b, tables.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o666)
}

// write writes the results in all forms.
func write(r *accuracy.Report, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var errs []error
	file := func(name string, form func(w io.Writer) error) {
		var b bytes.Buffer
		err := form(&b)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666)
		}
		errs = append(errs, err)
	}
	errs = append(errs, writeJSON(r, dir))
	file("report.md", r.Markdown)
	file("report.html", func(w io.Writer) error { return r.Page().HTML(w, nil) })
	for _, f := range r.Figures() {
		for i, p := range f.Pictures {
			name := f.Name
			if len(f.Pictures) > 1 {
				name += fmt.Sprintf("-%d", i+1)
			}
			file(name+".svg", func(w io.Writer) error { return page.SVG(w, p) })
		}
	}
	return errors.Join(errs...)
}
