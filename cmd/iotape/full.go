// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/iotape/iotape/cmd/internal/cli"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/trace"
)

// full is the program with all commands.
const full = "iotape-full"

// becomeFull executes the program with all commands instead of this one. It returns only if that fails.
func becomeFull() error {
	path, err := cli.Beside(full)
	if err != nil {
		return hint.With(err, "this command is in %s: install it beside iotape; make build makes both", full)
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, os.Args, os.Environ()))
}

// index has iotape-full make the Parquet files of a tape.
func index(ctx context.Context, c *cli.Console, t *trace.Tape) error {
	path, err := cli.Beside(full)
	if err != nil {
		return err
	}
	var problem bytes.Buffer
	cmd := exec.CommandContext(ctx, path, "index-tape", "--", t.Dir())
	cmd.Stdout, cmd.Stderr = &problem, c.Err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	// It ends with this process, which it knows by the thread that started it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	if problem.Len() > 0 {
		return errors.New(problem.String())
	}
	return err
}
