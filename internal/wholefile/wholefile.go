// SPDX-License-Identifier: Apache-2.0

// Package wholefile writes files as a whole or not at all.
package wholefile

import (
	"errors"
	"io"
	"os"
)

// Write gives a file what write writes, all or nothing. What is no regular file, as
// a pipe, is written as it goes.
func Write(path string, write func(io.Writer) error) error {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.OpenFile(path+".partial", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		os.Remove(f.Name())
		return err
	}
	return os.Rename(f.Name(), path)
}
