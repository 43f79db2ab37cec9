// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
)

// reporter shows on the console what package sealing reports.
type reporter struct{ c *console }

// Note implements sealing.Reporter.
func (r reporter) Note(line string) { r.c.say("%s", line) }

// Problem implements sealing.Reporter.
func (r reporter) Problem(err error) {
	r.c.say("%v", err)
	if h := hint.Of(err); h != "" {
		r.c.hint("%s", h)
	}
}

// Progress implements sealing.Reporter.
func (r reporter) Progress(unit func(uint64) string) sealing.Progress { return r.c.progress(unit) }

// indexer returns what makes the Parquet files of new tapes, nil if they are not wanted.
func (c *console) indexer(wanted bool) sealing.Indexer {
	if !wanted {
		return nil
	}
	return func(ctx context.Context, t *trace.Tape) error { return index(ctx, c, t) }
}

// plan returns a plan for a recording that speaks to this console.
func (c *console) plan() session.Plan {
	return session.Plan{Signals: true, Program: program(), Reporter: reporter{c}, Messages: c.err, Stdout: c.out}
}

// making returns the options for a tape that is made of something else than a recording.
func (c *console) making(index bool, unit func(uint64) string) *sealing.MakeOptions {
	return &sealing.MakeOptions{Index: c.indexer(index), Reporter: reporter{c}, Unit: unit}
}

// record carries out a plan. The error has the status of the recorded command.
func record(ctx context.Context, p *session.Plan) error {
	res, err := session.Record(ctx, p)
	if err != nil {
		return commandError(err)
	}
	return commandStatus(res.Capture)
}

// commandError gives a command that was not executed the status that a shell does.
func commandError(err error) error {
	var command *session.CommandError
	switch {
	case !errors.As(err, &command):
		return err
	case command.Found:
		return &statusError{exitNoExec, err}
	}
	return &statusError{exitNoFile, err}
}

// commandStatus turns the command's end into iotape's.
func commandStatus(res *capture.Result) error {
	switch {
	case res == nil:
		return nil
	case res.Signal != 0:
		return &statusError{Status: 128 + res.Signal}
	case res.ExitStatus != 0:
		return &statusError{Status: res.ExitStatus}
	}
	return nil
}
