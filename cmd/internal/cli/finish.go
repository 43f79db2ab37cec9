// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/checksum"
	"github.com/iotape/iotape/pipe/encrypt"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/trace"
)

// Finish says what went wrong and returns the exit status.
func (c *Console) Finish(cmd *cobra.Command, err error) int {
	if err == nil && discarded.Load() {
		err = context.Canceled
	}
	if err == nil {
		return ExitOK
	}
	status := ExitFailed
	if cmd.Name() == "record" || cmd.Name() == "run" {
		status = ExitRecord
	}
	var s *StatusError
	if errors.As(err, &s) {
		if status = s.Status; s.Err == nil {
			return status
		}
		err = s.Err
	}
	if errors.Is(err, syscall.EPIPE) {
		return status // the reader of our output has gone
	}
	err = groupError(err)
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	c.Say("%v", err)
	c.ShowPlace(err)
	if h := hintFor(cmd, err); h != "" {
		c.Hint("%s", h)
	}
	return status
}

// hintFor returns what can be done about an error, "" if there is nothing to say.
func hintFor(cmd *cobra.Command, err error) string {
	var usage usageError
	var filter *predicate.Error
	var unsupported *capture.UnsupportedError
	var recipient *encrypt.RecipientError
	var key *checksum.KeyError
	switch {
	case hint.Of(err) != "":
		return hint.Of(err)
	case errors.As(err, &filter) && filter.What == "alarm":
		return "docs/top.md describes the rules of alarms"
	case errors.As(err, &filter):
		return "iotape explain-filter --fields lists the fields of filters"
	case errors.As(err, &usage):
		return cmd.CommandPath() + " --help"
	case errors.Is(err, trace.ErrNotSealed), errors.Is(err, context.Canceled):
		return ""
	case errors.As(err, &recipient):
		return "use --identity FILE with the secret key"
	case errors.As(err, &key):
		return "use --key FILE with the key of the checksums"
	case errors.Is(err, trace.ErrNewer):
		return "use a newer iotape"
	case errors.Is(err, replay.ErrNotEmpty):
		return "name a new directory, or remove this one (rm -r), " +
			"which an interrupted run may have left; --force adds to what is in it"
	case errors.As(err, &unsupported) && cmd.Name() == "top":
		return "docs/privileges.md lists the rights that counting needs; iotape top --tape counts the events of a tape"
	case errors.As(err, &unsupported) && needsBPF(cmd):
		return "docs/privileges.md lists the rights that eBPF needs"
	case errors.As(err, &unsupported) && unsupported.Backend == "ebpf":
		return "record with --backend ptrace"
	case errors.Is(err, trace.ErrCorrupt), errors.Is(err, trace.ErrTruncated):
		if cmd.Name() != "check" {
			return "iotape check says what is damaged"
		}
	case errors.Is(err, syscall.ENOSPC):
		return "free some space"
	}
	return nameHint(cmd, err)
}

// nameHint returns what can be done where something that was named is not there, or is something else.
func nameHint(cmd *cobra.Command, err error) string {
	var process *capture.NoProcessError
	var command *session.CommandError
	var path *fs.PathError
	switch {
	case errors.As(err, &process):
		return "ps -e lists the processes that run"
	case errors.As(err, &command) && errors.Is(err, syscall.EISDIR):
		return "name a program in it"
	case errors.As(err, &command) && command.Found:
		return "chmod +x makes a file executable"
	case errors.As(err, &command):
		return "check its name, or give its path"
	case errors.Is(err, trace.ErrNotATrace) && cmd.Name() != "check":
		return "iotape convert --from FORMAT reads what is not recognised; iotape convert --help lists the formats"
	case errors.Is(err, trace.ErrNoTape):
		return "name a tape, a recording that is not sealed yet, or a trace of another tool"
	case errors.As(err, &path):
		return pathHint(path)
	}
	return ""
}

// makes has the operations of errors about files that were to be made.
var makes = map[string]bool{"create": true, "mkdir": true}

// pathHint returns what can be done about a file that could not be used.
func pathHint(e *fs.PathError) string {
	switch {
	case makes[e.Op] && errors.Is(e, fs.ErrPermission):
		return "choose a place in a directory of yours"
	case makes[e.Op] && errors.Is(e, fs.ErrNotExist):
		return "make the directory that it is to be in, or choose another"
	case errors.Is(e, fs.ErrNotExist) && !filepath.IsAbs(e.Path):
		return "names are taken from the current directory: check the name, or give the whole path"
	case errors.Is(e, fs.ErrNotExist):
		return "check the name"
	case errors.Is(e, fs.ErrPermission):
		return "use it as its owner or as root, or choose another"
	}
	return ""
}

// sealedNow returns the tape that a recording's directory has become, "" if there is none.
func sealedNow(name string) string {
	tape, partial := strings.CutSuffix(strings.TrimSuffix(name, "/"), sealing.PartialSuffix)
	if _, err := os.Stat(tape); !partial || err != nil {
		return ""
	}
	return tape
}

// needsBPF reports whether a flag of a command cannot be kept by another back end.
func needsBPF(cmd *cobra.Command) bool {
	for _, name := range []string{"all", "cgroup", "unit", "container", "block-requests", "wakeups"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return true
		}
	}
	return false
}
