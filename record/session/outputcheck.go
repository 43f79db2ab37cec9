// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParsePIDs reads numbers of processes with commas between them; "" is none. Each
// process is there once.
func ParsePIDs(text string) (pids []int, err error) {
	if text == "" {
		return nil, nil
	}
	for s := range strings.SplitSeq(text, ",") {
		pid, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || pid <= 0 {
			return nil, fmt.Errorf("pid %q is not the number of a process", s)
		}
		if !slices.Contains(pids, pid) { // a process is attached to once
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// CheckOutput returns what of the plan does not go with where its recording goes (Pipe and
// To). given reports whether a flag of iotape record was given. A recording that is encrypted
// is not sealed: it sets Seal.
func (p *Plan) CheckOutput(given func(flag string) bool) error {
	if p.Pipe == nil && p.To == "" {
		return nil
	}
	if p.Flight != nil {
		return errors.New("--pipe and --to cannot be used with --last, which keeps the recording in memory")
	}
	if p.To != "" {
		for _, flag := range []string{"output", "seal", "keep-stream", "snapshot", "no-index"} {
			if given(flag) {
				return fmt.Errorf("--%s applies to a tape, and --to makes no tape", flag)
			}
		}
		if p.To == "-" && !p.Capture.Running() {
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
	case given("seal") && p.Seal != SealNever:
		return errors.New("an encrypted recording cannot be sealed here: there is no key to read it")
	}
	p.Seal = SealNever
	return nil
}
