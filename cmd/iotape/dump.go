package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/record/sealing"
)

func newDump(c *console) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "dump [PID|NAME]",
		Short: "Have a running flight recorder write its memory to a tape",
		Long: `Dump asks an iotape record --last that runs to write what it has in memory to the
next tape, NAME-1.tape, NAME-2.tape and so on in its working directory. It waits
until the tape is there and prints its path. The recording goes on.

Without an argument it is the one flight recorder of this user that runs; if there
are several, they are listed. SIGUSR1 to the recorder does the same.`,
		Example: `  iotape record --last 30s,512M -o server.tape -- ./server &
  iotape dump
  iotape dump server
  iotape dump --list`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := flight.Running(cmd.Context())
			if err != nil {
				return err
			}
			if list {
				return c.print(func(w *bufio.Writer) error { return writeRunning(w, all) })
			}
			r, err := pickRunning(c, all, args)
			if err != nil {
				return err
			}
			tape, err := r.Dump(cmd.Context())
			if errors.Is(err, context.Canceled) {
				return err
			}
			if err != nil {
				return fmt.Errorf("dump of %s (process %d): %w", r.Name, r.PID, err)
			}
			return c.print(func(w *bufio.Writer) error {
				_, err := fmt.Fprintln(w, tape)
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list the flight recorders that run")
	return cmd
}

// pickRunning finds the flight recorder that is meant.
func pickRunning(c *console, all []*flight.Remote, args []string) (*flight.Remote, error) {
	var fit []*flight.Remote
	for _, r := range all {
		if len(args) == 0 || args[0] == strconv.Itoa(r.PID) || sealing.TrimTape(args[0]) == r.Name {
			fit = append(fit, r)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(all) == 0:
		return nil, hint.With(errors.New("no flight recorder of this user runs"), "iotape record --last 30s -- COMMAND starts one")
	case len(fit) == 0:
		return nil, hint.With(fmt.Errorf("no flight recorder %s runs", args[0]), "iotape dump --list says which do")
	}
	if err := c.print(func(w *bufio.Writer) error { return writeRunning(w, fit) }); err != nil {
		return nil, err
	}
	return nil, hint.With(fmt.Errorf("%d flight recorders run", len(fit)), "name one by its process: iotape dump %d", fit[0].PID)
}

func writeRunning(w *bufio.Writer, all []*flight.Remote) error {
	t := report.Table{Head: []string{"process", "name", "back", "bytes", "dumps", "directory", "command"}, Right: 1}
	for _, r := range all {
		command := ""
		for i, arg := range r.Command {
			if i > 0 {
				command += " "
			}
			command += arg
		}
		t.Add(strconv.Itoa(r.PID), report.Printable(r.Name), report.Duration(r.BackNS), report.Bytes(uint64(max(r.Bytes, 0))), strconv.Itoa(r.Dumps),
			report.Printable(r.Dir), report.Printable(command))
	}
	t.Write(w)
	return nil
}
