// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/open"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/trace"
)

// OpenTape opens the tape that an argument names, or a temporary one of what it names.
func OpenTape(ctx context.Context, path string) (*trace.Tape, error) {
	endsStalled(ctx)
	if !open.Sealed(path) {
		// With a reader that goes away, head(1) say, writing is to fail instead of
		// killing: the temporary tape has to be removed.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	t, err := open.Recorded(ctx, path, Program())
	if tape := sealedNow(path); errors.Is(err, trace.ErrNoTape) && tape != "" {
		return nil, hint.With(err, "the recording is sealed by now: %s", tape)
	}
	return t, err
}

// OpenTapes opens several tapes. closeAll closes those that it returns, after an error too.
func OpenTapes(ctx context.Context, names []string) (tapes []*trace.Tape, closeAll func(), err error) {
	closeAll = func() {
		for _, t := range tapes {
			t.Close()
		}
	}
	for _, name := range names {
		t, err := OpenTape(ctx, name)
		if err != nil {
			return tapes, closeAll, err
		}
		tapes = append(tapes, t)
	}
	return tapes, closeAll, nil
}

// OpenHosts is OpenTapes for tapes of different hosts: the files that strace -ff wrote in one run
// are one.
func OpenHosts(ctx context.Context, names []string) (tapes []*trace.Tape, closeAll func(), err error) {
	groups := all.Families(names)
	if len(groups) == len(names) {
		return OpenTapes(ctx, names)
	}
	for _, group := range groups {
		var t *trace.Tape
		if len(group) > 1 {
			t, err = open.Family(ctx, group)
		} else {
			t, err = OpenTape(ctx, group[0])
		}
		if err != nil {
			break
		}
		tapes = append(tapes, t)
	}
	return tapes, func() {
		for _, t := range tapes {
			t.Close()
		}
	}, err
}

// WithTape returns what a command does that works on the tape of its first argument.
func WithTape(do func(cmd *cobra.Command, t *trace.Tape) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		t, err := OpenTape(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		defer t.Close()
		return do(cmd, t)
	}
}

// OpenTapeOrScript opens the tape that a command names as its argument, or the script
// that --script names.
func OpenTapeOrScript(ctx context.Context, args []string, dir string) (*trace.Tape, error) {
	switch {
	case dir != "" && len(args) > 0:
		return nil, Usage(errors.New("a TAPE or --script DIR, not both"))
	case dir != "":
		return script.Open(ctx, dir, Program())
	case len(args) == 0:
		return nil, Usage(errors.New("a TAPE is needed, or --script DIR"))
	}
	return OpenTape(ctx, args[0])
}
