// Run makes an accuracy study and prints it; see package accuracy. It needs root, and a
// machine on which nothing else runs.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"iotape/bench/accuracy"
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var o accuracy.Options
	var jsonFile string
	f := flag.NewFlagSet("accuracy", flag.ContinueOnError)
	list := func(to *[]string, name, usage string) {
		f.Func(name, usage+", separated by commas; all if not given", func(s string) error {
			*to = strings.Split(s, ",")
			return nil
		})
	}
	list(&o.Apps, "apps", "`applications`: pseudo, pseudosync, pseudosyncdat, fitness, quake")
	list(&o.Stores, "stores", "storage `systems`: disk, throttled, arm, channels")
	list(&o.Modes, "modes", "`ways` to replay: afap, think, resource, causal")
	f.StringVar(&o.Traced, "traced", "disk", "record on this storage `system`")
	f.StringVar(&o.Sync, "sync", "pipe", "`what` ranks wait by: pipe, socket, futex or spin")
	f.IntVar(&o.Ranks, "ranks", 4, "`processes`")
	f.Float64Var(&o.Scale, "scale", 1, "multiply the rounds by `F`")
	f.DurationVar(&o.Think, "think", 0, "computing before each block (default 500µs)")
	f.IntVar(&o.Repeat, "repeat", 3, "take the median of `N` runs")
	f.StringVar(&o.Iotape, "iotape", "bin/iotape", "measure this `program`")
	f.StringVar(&o.Dir, "dir", "/var/tmp", "`directory` on the disk to measure on")
	f.StringVar(&o.Memory, "memory", "/dev/shm", "`directory` in memory")
	f.StringVar(&jsonFile, "json", "", "write the results to this `file`, too")
	if err := f.Parse(args); err != nil {
		return 2
	}
	o.Progress = func(line string) { fmt.Fprintln(os.Stderr, line) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := accuracy.Run(ctx, o)
	if err == nil {
		err = r.Text(os.Stdout)
	}
	if err == nil && jsonFile != "" {
		var b []byte
		if b, err = json.MarshalIndent(r, "", "  "); err == nil {
			err = os.WriteFile(jsonFile, append(b, '\n'), 0o666)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "accuracy: %v\n", err)
		return 2
	}
	return 0
}
