// SPDX-License-Identifier: Apache-2.0

package running

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/iotape/iotape/internal/hint"
)

// CheckProc says whether /proc shows the processes by the numbers that this one knows them by: nil, or an error
// with a hint. All that is recorded of processes is looked up there.
func CheckProc() error {
	const mount = "mount -t proc proc /proc"
	number, err := os.Readlink("/proc/self")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return hint.With(errors.New("/proc is not mounted"), mount)
		}
		return fmt.Errorf("look for this process in /proc: %w", err)
	}
	if number != strconv.Itoa(os.Getpid()) {
		return hint.With(fmt.Errorf("/proc is that of another pid namespace: this process is %d, and is %s there",
			os.Getpid(), number), "%s (unshare has --mount-proc)", mount)
	}
	return nil
}
