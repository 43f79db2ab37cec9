// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"os"
	"strings"
)

// NoProcessError says that none of the processes that are to be followed is there. It wraps
// os.ErrProcessDone.
type NoProcessError struct{ PIDs []int }

// Error names the processes.
func (e *NoProcessError) Error() string {
	if len(e.PIDs) == 1 {
		return fmt.Sprintf("there is no process %d", e.PIDs[0])
	}
	return fmt.Sprintf("there is none of the processes %s", strings.Trim(fmt.Sprint(e.PIDs), "[]"))
}

// Unwrap returns os.ErrProcessDone.
func (e *NoProcessError) Unwrap() error { return os.ErrProcessDone }
