// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/fleet/agent"
)

// newSimulate runs many agents with made-up events in one process: for tests, and to
// measure what a collector can take.
func newSimulate() *cobra.Command {
	var back, wait time.Duration
	cmd := &cobra.Command{
		Use: "simulate DIR", Short: "Run an agent for each configuration in a directory, with made-up events",
		Args: cobra.ExactArgs(1),
		Long: "Simulate runs the agents of all DIR/*.toml in this process, each with its own spool, key and\n" +
			"connection. Their configurations must have record.synthetic.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return simulate(ctx, args[0], wait, func() time.Time { return time.Now().Add(-back) })
		},
	}
	cmd.Hidden = true
	cmd.Flags().DurationVar(&back, "clock-back", 0, "set the wall clock back by `TIME`")
	cmd.Flags().DurationVar(&wait, "stop-wait", 0, "try for this time to send the remaining data at the end")
	return cmd
}

func simulate(ctx context.Context, dir string, wait time.Duration, clock func() time.Time) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.toml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, fmt.Errorf("%s has no configurations", dir))
	}
	var agents []*agent.Agent
	for _, name := range files {
		c, err := readConfig(name, "")
		if err != nil {
			return err
		}
		if c.Record.Synthetic == "" {
			return usageError{fmt.Errorf("%s: record.synthetic is not set", name)}
		}
		a, err := agent.New(c, &agent.Options{Version: program(), Source: newSource(c), Clock: clock, StopWait: wait,
			Note: func(line string) { say("%s: %s", c.Host, line) }})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		defer a.Close()
		agents = append(agents, a)
	}
	var all sync.WaitGroup
	errs := make([]error, len(agents))
	for i, a := range agents {
		all.Go(func() { errs[i] = a.Run(ctx) })
	}
	say("%d agents", len(agents))
	all.Wait()
	return errors.Join(errs...)
}
