// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/remake"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
)

// reporter shows on the console what package sealing reports.
type reporter struct{ c *Console }

// Reporter returns a reporter that speaks to this console.
func (c *Console) Reporter() sealing.Reporter { return reporter{c} }

// Note implements sealing.Reporter.
func (r reporter) Note(line string) { r.c.Say("%s", line) }

// Problem implements sealing.Reporter.
func (r reporter) Problem(err error) {
	r.c.Say("%v", err)
	if h := hint.Of(err); h != "" {
		r.c.Hint("%s", h)
	}
}

// Progress implements sealing.Reporter.
func (r reporter) Progress(unit func(uint64) string) sealing.Progress { return r.c.Progress(unit) }

// Indexer returns what makes the Parquet files of new tapes, nil if they are not wanted or nobody can make them.
func (c *Console) Indexer(wanted bool) sealing.Indexer {
	if !wanted || c.Index == nil {
		return nil
	}
	return func(ctx context.Context, t *trace.Tape) error { return c.Index(ctx, c, t) }
}

// Plan returns a plan for a recording that speaks to this console.
func (c *Console) Plan() session.Plan {
	return session.Plan{Signals: true, Program: Program(), Reporter: c.Reporter(), Messages: c.Err, Stdout: c.Out}
}

// Making returns the options for a tape that is made of something else than a recording.
func (c *Console) Making(index bool, unit func(uint64) string) *sealing.MakeOptions {
	return &sealing.MakeOptions{Index: c.Indexer(index), Reporter: c.Reporter(), Unit: unit}
}

// Remaking returns the options for a tape that is made of tapes.
func (c *Console) Remaking(index bool) *remake.Options {
	return &remake.Options{Index: c.Indexer(index), Reporter: c.Reporter(), Program: Program()}
}

// Record carries out a plan. The error has the status of the recorded command.
func Record(ctx context.Context, p *session.Plan) error {
	res, err := session.Record(ctx, p)
	if err != nil {
		return CommandError(err)
	}
	return CommandStatus(res.Capture)
}

// CommandError gives a command that was not executed the status that a shell does.
func CommandError(err error) error {
	var command *session.CommandError
	switch {
	case !errors.As(err, &command):
		return err
	case command.Found:
		return Status(ExitNoExec, err)
	}
	return Status(ExitNoFile, err)
}

// CommandStatus turns the command's end into iotape's.
func CommandStatus(res *capture.Result) error {
	switch {
	case res == nil:
		return nil
	case res.Signal != 0:
		return Status(128+res.Signal, nil)
	case res.ExitStatus != 0:
		return Status(res.ExitStatus, nil)
	}
	return nil
}
