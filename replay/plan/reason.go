// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"

	"github.com/iotape/iotape/event"
)

// Reason says why a call is not made.
type Reason uint8

// String returns the reason as a user reads it.
func (r Reason) String() string { return reasons[r] }

const (
	whyNone        Reason = iota
	whyModelled           // the operation table's: its effect is modelled, or it has none here
	whyOwn                // the replayer does it in its own time
	whyUnknown            // not in the operation table
	whyUnexplained        // no order of the calls that it overlapped with makes it fail
	whyInterrupted        // its return was not seen
	whyEnvironment        // failed for what the recorded machine was like
	whySimulated          // on a pipe, a socket, a terminal or what else is not made
	whyLost               // on a file or directory of the tree that the replay did not open
	whyPath               // its name is in /proc, /sys or /dev
	whyNoName             // its name was not recorded, or goes through an unknown descriptor
	whySpecial            // opens a FIFO, a device or a socket
	whyCommand            // a command of ioctl or fcntl that files do not have, or that is modelled
	whyRuns               // the page was read to be executed
	whyOverlay            // made beside an overlay's upper directory
	whyBytes              // it copied bytes that the recording did not see
	whyUnsaid             // the trace does not say one of its numbers
	whyHole               // made a hole in a mapped file
)

var reasons = [...]string{
	whyModelled:    "modelled",
	whyOwn:         "the replayer does this itself, when it is due",
	whyUnknown:     "not in the operation table",
	whyUnexplained: "no order of the calls that it overlapped with makes it fail",
	whyInterrupted: "its return was not recorded",
	whyEnvironment: "failed for what the recorded machine was like",
	whySimulated:   "on what is simulated: a pipe, a socket, a terminal",
	whyLost:        "on a file that the replay does not have: it was opened in a way that is not repeated",
	whyPath:        "in /proc, /sys or /dev",
	whyNoName:      "without a recorded name, or through an unknown descriptor",
	whySpecial:     "opens a FIFO, a device or a socket",
	whyCommand:     "a command that is modelled, or not about files",
	whyRuns:        "a page that was read to be executed",
	whyOverlay:     "below an overlay, of which the upper directory is not made",
	whyBytes:       "copied bytes that the recording does not have: zeros are written",
	whyUnsaid:      "the trace does not say all of its arguments",
	whyHole:        "made a hole in a mapped file: the file keeps its bytes there",
}

// Explain returns why the task makes no call, in more detail if the operation table has it.
func (t *Task) Explain() string {
	if t.Why == whyModelled {
		return cmp.Or(event.Lookup(t.Op).Why, t.Why.String())
	}
	return t.Why.String()
}
