// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/iotape/iotape/record/tracer/config"
	"github.com/iotape/iotape/record/tracer/tracerun"
)

// ReadConfig reads and checks a configuration, and says what is odd about it.
func ReadConfig(c *Console, name string, input *config.Input, check bool) (*config.Config, error) {
	cfg, err := tracerun.ReadConfig(name, input)
	if err != nil {
		return nil, sayErrors(c, err, check)
	}
	for _, w := range cfg.Warnings {
		c.Say("%v", w)
	}
	return cfg, nil
}

// sayErrors says all that is wrong, each with its place, and returns the status.
func sayErrors(c *Console, err error, check bool) error {
	var list config.Errors
	var one *config.Error
	if !errors.As(err, &list) && errors.As(err, &one) {
		list = config.Errors{one}
	}
	status := ExitRecord
	if check {
		status = ExitFailed
	}
	for _, e := range list {
		c.Say("%v", e)
		c.ShowPlace(e)
	}
	if len(list) == 0 {
		return err
	}
	return Status(status, nil)
}

// RunTracers records with all tracers of a configuration, to the end.
func RunTracers(ctx context.Context, c *Console, cfg *config.Config) error {
	res, err := tracerun.Run(ctx, cfg, &tracerun.Options{
		Program: Program(), Index: c.Indexer(true), Reporter: c.Reporter(), Messages: c.Err, Stdout: c.Out,
		Parse: tracerun.ParseConfig,
	})
	switch {
	case errors.Is(err, tracerun.ErrFailed):
		return Status(ExitRecord, nil)
	case err != nil:
		return CommandError(sayErrors(c, err, false))
	}
	return CommandStatus(res)
}
