// SPDX-License-Identifier: Apache-2.0

// Iotape-agent records what the programs of a host do to their storage, and sends it
// to a collector (iotape collector). See docs/fleet.md, or iotape-agent --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/fleet/source"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/internal/buildinfo"
)

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a wrong command line, or a wrong configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	root := newRoot()
	if err := root.Execute(); err != nil {
		say("%v", err)
		if errors.As(err, &usageError{}) || strings.HasPrefix(err.Error(), "unknown command") {
			os.Exit(exitUsage)
		}
		os.Exit(exitFailed)
	}
}

func say(format string, args ...any) {
	line := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", "; ")
	fmt.Fprintf(os.Stderr, "iotape-agent: %s\n", line)
}

func newRoot() *cobra.Command {
	var config, cpu, boot string
	cmd := &cobra.Command{
		Use:   "iotape-agent [--config FILE]",
		Short: "Record the storage calls of a host, and send them to a collector",
		Long: `Iotape-agent records what its configuration specifies, stores it in a spool of limited
size, and sends it to a collector in the background. It never delays programs, unless
the configuration has overflow = "block". It counts the events for which there is no
room, and the recording has them as losses.

SIGHUP reads the configuration again. SIGUSR1 sends an incomplete batch immediately.
SIGTERM and SIGINT end the recording in order.`,
		Example: `  iotape-agent check --config /etc/iotape/agent.toml
  sudo iotape-agent install --print
  sudo iotape-agent --config /etc/iotape/agent.toml --cpu 3%`,
		Args:          cobra.NoArgs,
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := readConfig(config, cpu)
			if err != nil {
				return err
			}
			return run(cmd.Context(), c, boot, func() (*agent.Config, error) { return readConfig(config, cpu) })
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	cmd.PersistentFlags().StringVar(&config, "config", agent.DefaultConfig, "read the configuration from `FILE`")
	cmd.PersistentFlags().StringVar(&cpu, "cpu", "",
		"use at most this `SHARE` of one processor, such as 3%, and keep less if necessary; overrides limits.cpu")
	cmd.Flags().StringVar(&boot, "boot-id", "", "use boot `ID` instead of the kernel's, to test a reboot")
	_ = cmd.Flags().MarkHidden("boot-id")
	cmd.AddCommand(newInstall(&config), newCheck(&config, &cpu), newKey(), newSimulate(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { fmt.Println(buildinfo.Line("iotape-agent")) },
	})
	cmd.Version = buildinfo.Line("iotape-agent")
	cmd.Flags().Bool("version", false, "print the version")
	cmd.SetVersionTemplate("{{.Version}}\n")
	return cmd
}

func readConfig(name, cpu string) (*agent.Config, error) {
	c, err := agent.ReadConfig(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError{fmt.Errorf("%w; docs/fleet.md describes it, --config names another file", err)}
	}
	if err != nil {
		return nil, usageError{err}
	}
	if cpu != "" {
		if c.Limits.CPU, err = agent.ParseShare(cpu); err != nil {
			return nil, usageError{fmt.Errorf("--cpu: %w", err)}
		}
	}
	return c, nil
}

func newCheck(config, cpu *string) *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Check a configuration", Args: cobra.NoArgs,
		Long: "Check reads the configuration as the agent does, looks at the directory of the spool, and tries\n" +
			"whether this machine can record.\n" +
			"As an ordinary user, it does not try.\n\nExit status:\n" +
			"  0  there are no errors\n  2  there are errors, or this machine cannot record",
		Example: "  iotape-agent check --config agent.toml",
		RunE: func(*cobra.Command, []string) error {
			c, err := readConfig(*config, *cpu)
			if err == nil {
				err = errors.Join(spool.Check(c.Spool), spool.CheckLedger(c.Spool))
			}
			if err == nil {
				err = newSource(c).Check(&c.Record)
			}
			if err == nil {
				err = newSource(c).Probe(&c.Record)
			}
			if errors.Is(err, syscall.EPERM) {
				say("not tried whether this machine can record: %v", err)
				err = nil
			}
			if err != nil {
				return usageError{err}
			}
			fmt.Printf("%s: host %s, configuration %s\n", *config, c.Host, c.Hash())
			return nil
		},
	}
}

func newSource(c *agent.Config) *source.Source {
	return &source.Source{Program: program(), MemoryBytes: int64(c.Limits.Memory), Block: c.Overflow == "block",
		Note: func(line string) { say("%s", line) }}
}

// run runs one agent until it is told to stop.
func run(ctx context.Context, c *agent.Config, boot string, reread func() (*agent.Config, error)) error {
	// A quarter is for the rings; the Go runtime keeps within what else there is.
	debug.SetMemoryLimit(int64(c.Limits.Memory) * 3 / 8)
	a, err := agent.New(c, &agent.Options{Version: program(), Source: newSource(c), BootID: boot,
		Note: func(line string) { say("%s", line) }})
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	sig := make(chan os.Signal, 4)
	signal.Notify(sig, syscall.SIGHUP, syscall.SIGUSR1)
	done := make(chan struct{})
	var told sync.WaitGroup
	told.Go(func() {
		for {
			select {
			case <-done:
				return
			case s := <-sig:
				if s == syscall.SIGUSR1 {
					a.Flush()
					continue
				}
				next, err := reread()
				if err == nil {
					err = a.Reload(next)
				}
				if err != nil {
					say("the configuration is unchanged: %v", err)
				} else {
					say("configuration %s", next.Hash())
				}
			}
		}
	})
	say("%s: host %s, configuration %s, spool %s", program(), c.Host, c.Hash(), c.Spool)
	err = a.Run(ctx)
	signal.Stop(sig)
	close(done)
	told.Wait()
	return err
}

func program() string { return buildinfo.Program("iotape-agent") }
