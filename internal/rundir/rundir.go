// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// All returns where sockets may be, the best place first: what the session
// has for such files, the system's, and a directory of the user's own in that for
// temporary files.
func All() []string {
	var dirs []string
	if d := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) {
		dirs = append(dirs, filepath.Join(d, "iotape"))
	}
	if os.Geteuid() == 0 {
		dirs = append(dirs, "/run/iotape")
	}
	return append(dirs, filepath.Join(os.TempDir(), "iotape-"+strconv.Itoa(os.Geteuid())))
}

// Make makes the first directory that can be made.
func Make() (string, error) {
	var first error
	for _, dir := range All() {
		err := os.Mkdir(dir, 0o700)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = Check(dir)
		}
		if err == nil {
			return dir, nil
		}
		if first == nil {
			first = err
		}
	}
	return "", fmt.Errorf("make a directory for sockets: %w", first)
}

// Check refuses a directory that others can enter, or own.
func Check(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a directory of this user's alone", dir)
	}
	return nil
}
