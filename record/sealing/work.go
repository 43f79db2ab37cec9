// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wholefile"
)

// workNames are the patterns of the names in the directories of unfinished work, of this
// version and of earlier ones, without those of a recording.
var workNames = []string{tapeName, BeforeName, HoldName, "host-*.stream", "host-*.stream.tape", "unsorted*"}

// Reserve makes the directory NAME.partial of unfinished work. Its lock keeps other
// processes from taking it for what a killed one left; it ends with Unlock. What a killed
// process left there is removed, unless it is a recording.
func Reserve(work string) (*wholefile.Dir, error) {
	for range 3 { // others may do the same at the same time
		err := os.Mkdir(work, 0o777)
		if errors.Is(err, fs.ErrExist) {
			if err := removeLeft(work); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		lock, err := wholefile.LockDir(work)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, wholefile.ErrInUse) {
			continue // another one took it for left in between
		}
		return lock, err
	}
	return nil, inUse(work)
}

// removeLeft removes a directory of work that its process did not end.
func removeLeft(work string) error {
	lock, err := wholefile.LockDir(work)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, wholefile.ErrInUse):
		return inUse(work)
	case err != nil:
		return hint.With(fmt.Errorf("%s is in the way: %w", work, err), "choose another name, or remove it")
	}
	defer lock.Unlock()
	entries, err := os.ReadDir(work)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == StreamName }) {
		return hint.With(fmt.Errorf("%s exists", work),
			"it is a recording that was not sealed: iotape repair %s, or remove it", work)
	}
	for _, e := range entries {
		if !isWork(e.Name()) {
			return hint.With(fmt.Errorf("%s exists and has %s, which iotape did not make", work, e.Name()),
				"choose another name, or remove it")
		}
	}
	return os.RemoveAll(work)
}

func isWork(name string) bool {
	for _, pattern := range workNames {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func inUse(work string) error {
	return hint.With(fmt.Errorf("%s is being written by another iotape", filepath.Clean(work)),
		"wait for its end, or choose another name")
}

// CheckWork reports an error if Reserve would find a recording, or another process, in the
// directory.
func CheckWork(work string) error {
	if _, err := os.Lstat(work); err != nil {
		return nil
	}
	return removeLeft(work)
}
