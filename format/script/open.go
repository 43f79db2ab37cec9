// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// Locate puts the directory in front of what is wrong with a script.
func Locate(dir string, err error) error {
	if e := (*Error)(nil); errors.As(err, &e) {
		at := fmt.Errorf("%s:%d:%d: %s", filepath.Join(dir, e.File), e.Line, e.Column, e.What)
		if e.Hint != "" {
			return hint.With(at, "%s", e.Hint)
		}
		return at
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// Open compiles the script in dir into a tape that is gone when it is closed. program is
// the name and version of who does it.
func Open(ctx context.Context, dir, program string) (_ *trace.Tape, err error) {
	work, err := wholefile.TempDir("iotape-script")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			work.Close()
		}
	}()
	name := filepath.Join(work.Temp, "script.tape")
	tw, err := trace.CreateTape(name)
	if err != nil {
		return nil, err
	}
	defer tw.Abort()
	m, err := Compile(ctx, dir, tw, program)
	if err != nil {
		return nil, Locate(dir, err)
	}
	if err := tw.Close(m); err != nil {
		return nil, err
	}
	t, err := trace.Open(name)
	if err != nil {
		return nil, err
	}
	t.OnClose(work.Close)
	return t, nil
}
