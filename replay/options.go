// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"time"

	"github.com/iotape/iotape/replay/eventsource"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/order"
)

// Options say how to replay. Into is needed; the zero value of all others is a default.
type Options struct {
	// Into is the target: the root directory of everything that is replayed. It is
	// made if it does not exist, and must be empty unless Force is set.
	Into  string
	Force bool
	// Checks is what is compared with the recording.
	Checks Checks
	// Abort stops at the first result that differs, and before the first event if the
	// target does not allow all of what it begins with; else the replay goes on.
	Abort bool
	// Pace and Speed say when calls are made. "" is PaceAFAP; with another one, Speed 2
	// is twice as fast as recorded, and 0 is 1.
	Pace  Pace
	Speed float64
	// PrivilegedFiles makes what gives rights to whoever can reach it: set-user-id and set-group-id
	// bits of files, capabilities of programs and, for root, the numbers of device nodes. Else
	// they are left off, which Report.LeftOff counts and no comparison takes for a difference;
	// device nodes have number 0:0, which leads to no driver.
	PrivilegedFiles bool
	// MaxBytes is how much of the target's file system the replay may take, the initial tree included;
	// 0 is half of what is free there, at most 16 GiB and four times what the calls write; or as much as there is, if
	// less than 4 GiB are free. The
	// replay stops before a call that could take more.
	MaxBytes int64
	// MaxFiles is how many files the calls may make; 0 is half of those that the target's file system
	// has room for, if that is a million or more. Where the file system does not say how many it
	// has, every call that can make one counts.
	MaxFiles uint64
	// MaxOpen is how many descriptors the process that makes the calls may have; 0 is as many as the
	// user may have.
	MaxOpen uint64
	// MaxMemory is how many bytes of memory the process that makes the calls may have, without pages
	// of files; 0 is three quarters of what is available, and 2 GiB at least.
	MaxMemory int64
	// MaxTime is how long the calls may take; 0 is as long as they do.
	MaxTime time.Duration
	// Sleep makes threads sleep for as long as they computed, with PaceThink: that leaves
	// the processors to others.
	Sleep bool
	// Order is how much of the recorded order is kept; the zero value keeps all.
	Order OrderMode
	// Renames puts what was done below some directories below others.
	Renames Renames
	// Users and Groups put other users and groups in the place of the recorded ones.
	Users, Groups IDs
	// Shared are directories whose files the machines of a tape have in common; of what is
	// not below one, each machine has its own.
	Shared []string
	// Native says what is repeated in the way that it was done.
	Native Native
	// Data is what is written.
	Data Data
	// Log, if it is not nil, gets a line for what LogLevel says; "" is LogDifferences.
	Log      *os.File
	LogLevel LogLevel
	// Team, if it is not nil, makes the calls. There is no log then.
	Team Team
	// Progress is called now and then with how far a phase ("plan", "replay", "compare") is, in
	// events. It may be nil.
	Progress func(phase string, done, total uint64)
	// Different is called before Progress, in the phase "replay", with how many results differ so far.
	// It may be nil.
	Different func(n uint64)
}

// Checks says what a replay compares with the recording.
type Checks = options.Checks

// What can be compared.
const (
	CheckReturns = options.CheckReturns // return values and error numbers
	CheckData    = options.CheckData    // the bytes of every read, and the names and values of attributes
	CheckStat    = options.CheckStat    // what stat reported, as far as it can be reproduced
	CheckDirs    = options.CheckDirs    // what directory listings had
	CheckTree    = options.CheckTree    // the files in the end

	CheckAll  = options.CheckAll
	CheckNone = options.CheckNone
)

// ParseChecks reads names with commas between them: returns, data, stat, dirs, tree,
// all and none.
func ParseChecks(s string) (Checks, error) { return options.ParseChecks(s) }

// Pace says when a call is made that could be.
type Pace = options.Pace

// The paces.
const (
	// PaceAFAP makes calls as fast as possible: at once.
	PaceAFAP = options.PaceAFAP
	// PaceThink computes between the calls of a thread for as long as the recorded thread did.
	PaceThink = options.PaceThink
	// PaceRecorded makes calls at their recorded times, counted from the first event.
	PaceRecorded = options.PaceRecorded
)

// ParsePace returns the pace with a name: afap, think or recorded.
func ParsePace(s string) (Pace, error) { return options.ParsePace(s) }

// Native says what is repeated in the way that it was done, where another way does the same
// to files.
type Native = options.Native

// Data is what a replay writes: the recorded bytes, with zeros for those that the tape
// does not have, or something else in place of all of them.
type Data = options.Data

// ParseData reads recorded, zero, random or pattern:HEX.
func ParseData(s string) (Data, error) { return options.ParseData(s) }

// LogLevel is how much a replay writes into its log.
type LogLevel = options.LogLevel

// The levels: each has what the one before has.
const (
	LogDifferences = options.LogDifferences // results that are not as recorded
	LogSkipped     = options.LogSkipped     // calls that are not made, with the reason
	LogCalls       = options.LogCalls       // every call, with its result
)

// ParseLogLevel returns the level with a name: differences, skipped or calls.
func ParseLogLevel(s string) (LogLevel, error) { return options.ParseLogLevel(s) }

// OrderMode is how much of the recorded order a replay keeps.
type OrderMode = order.Mode

// ParseOrder returns the mode with a name: see order.ParseMode.
func ParseOrder(s string) (OrderMode, error) { return order.ParseMode(s) }

// IDs put other numbers in the place of those of users, or of groups.
type IDs = eventsource.IDs

// ParseIDs reads OLD:NEW[:COUNT], with commas between several.
func ParseIDs(s string) (IDs, error) { return eventsource.ParseIDs(s) }

// Renames puts what a recording did below some directories below others.
type Renames = eventsource.Renames

// Rename is one directory and what it becomes; both are absolute and clean.
type Rename = eventsource.Rename

// ParseRename reads /OLD=/NEW.
func ParseRename(s string) (Rename, error) { return eventsource.ParseRename(s) }

// ParseRenames reads several, each as ParseRename does.
func ParseRenames(list []string) (Renames, error) {
	var renames Renames
	for _, s := range list {
		r, err := ParseRename(s)
		if err != nil {
			return nil, err
		}
		renames = append(renames, r)
	}
	return renames, nil
}
