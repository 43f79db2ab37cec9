// SPDX-License-Identifier: Apache-2.0

package replayed

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// A TargetError says that a text is no target.
type TargetError struct{ Err error }

// Error returns the message of Err.
func (e *TargetError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *TargetError) Unwrap() error { return e.Err }

// ParseTargets reads targets as NAME=DIR. Errors of type *TargetError are in the texts;
// others say that a directory is not there.
func ParseTargets(on []string) (list []Target, err error) {
	if len(on) == 0 {
		return nil, &TargetError{errors.New("a target is needed: --on NAME=DIR")}
	}
	for _, s := range on {
		name, dir, ok := strings.Cut(s, "=")
		if !ok || name == "" || dir == "" {
			return nil, &TargetError{fmt.Errorf("--on %s: it is NAME=DIR", s)}
		}
		for _, p := range list {
			if p.Name == name {
				return nil, &TargetError{fmt.Errorf("--on %s: there is a target of that name already", s)}
			}
		}
		st, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			return nil, fmt.Errorf("%s: %w", dir, syscall.ENOTDIR)
		}
		list = append(list, Target{Name: name, Dir: dir})
	}
	return list, nil
}
