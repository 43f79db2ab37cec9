package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/record/session"
)

// outputFlags say through what a recording passes, and where it goes.
type outputFlags struct{ pipe, to string }

func (o *outputFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.pipe, "pipe", "", "pass the recording through the layers of `CHAIN`, such as async,zstd:3,encrypt:age1…,checksum:@FILE")
	f.StringVar(&o.to, "to", "", "write the recording to `WHERE`, and make no tape: a file, device:PATH, unix:PATH, tcp://HOST:PORT, tls://HOST:PORT, or - for standard output")
}

// plan reads the chain. The command does not get the variables that keys were in.
func (o *outputFlags) plan(p *session.Plan, _ func(string) bool) (err error) {
	p.To = o.to
	if o.pipe != "" {
		if p.Pipe, err = chain.Parse(o.pipe); err != nil {
			return fmt.Errorf("--pipe: %w", err)
		}
		for _, name := range p.Pipe.Variables {
			_ = os.Unsetenv(name)
		}
	}
	return nil
}

// agree sees to it that the other flags fit. It comes after them.
func (o *outputFlags) agree(p *session.Plan, given func(string) bool) error {
	if o.pipe == "" && o.to == "" {
		return nil
	}
	if p.Flight != nil {
		return errors.New("--pipe and --to cannot be used with --last, which keeps the recording in memory")
	}
	if o.to != "" {
		for _, flag := range []string{"output", "seal", "keep-stream", "snapshot", "no-index"} {
			if given(flag) {
				return fmt.Errorf("--%s applies to a tape, and --to makes no tape", flag)
			}
		}
		if o.to == "-" && !p.Capture.Running() {
			return errors.New("--to -: the command uses standard output")
		}
		return nil
	}
	if !p.Pipe.Encrypted {
		return nil
	}
	switch {
	case len(p.Snapshots) > 0:
		return errors.New("--snapshot writes clear text to the disk, but --pipe encrypts")
	case given("seal") && p.Seal != session.SealNever:
		return errors.New("an encrypted recording cannot be sealed here: there is no key to read it")
	}
	p.Seal = session.SealNever
	return nil
}
