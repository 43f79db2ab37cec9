// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Beside returns the path of another program of iotape: beside this one, where packages put what is not for
// people to call, or in PATH. The error says that there is none.
func Beside(name string) (string, error) {
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, "../libexec/iotape", name)} {
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	return exec.LookPath(name)
}
