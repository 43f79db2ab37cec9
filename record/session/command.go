// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// CommandError says why a command was not executed.
type CommandError struct {
	Name  string
	Found bool // it is there, and cannot be executed
	Err   error
}

func (e *CommandError) Error() string {
	if !e.Found {
		return e.Name + ": command not found"
	}
	return fmt.Sprintf("%s: cannot be executed: %v", e.Name, e.Err)
}

func (e *CommandError) Unwrap() error { return e.Err }

func newCommandError(name string, err error) *CommandError {
	var path *os.PathError
	var look *exec.Error
	switch {
	case errors.As(err, &look):
		err = look.Err
	case errors.As(err, &path):
		err = path.Err
	}
	return &CommandError{Name: name, Found: !errors.Is(err, exec.ErrNotFound) &&
		!errors.Is(err, os.ErrNotExist), Err: err}
}

// StartError tells a command that could not be executed, as a CommandError, from a recorder
// that failed.
func StartError(name string, err error) error {
	var path *os.PathError
	var look *exec.Error
	if errors.As(err, &look) || errors.As(err, &path) && strings.HasPrefix(path.Op, "exec") {
		return newCommandError(name, err)
	}
	return err
}
