// SPDX-License-Identifier: Apache-2.0

package replay

import "github.com/iotape/iotape/replay/result"

// Report is what came of a replay. Its fields are documented with its type in package result.
type Report = result.Report

// MaxMismatches limits the differences, and the kinds of them, that a Report lists.
const MaxMismatches = result.MaxMismatches

// The parts of a Report.
type (
	// Mismatch is a result that is not as recorded.
	Mismatch = result.Mismatch
	// Kind is a way in which results differed, with the first that did.
	Kind = result.Kind
	// Timing is how well a replay kept its pace.
	Timing = result.Timing
	// OpTiming is what the calls of an operation did and took, as recorded and here.
	OpTiming = result.OpTiming
	// Latency is how long calls took.
	Latency = result.Latency
	// Rate is bytes in equal parts of the time.
	Rate = result.Rate
	// Confinement is by which means the process that made the calls was confined.
	Confinement = result.Confinement
	// LeftOff is what a replay did not make because it would give rights.
	LeftOff = result.LeftOff
	// Times are calls that took about as long.
	Times = result.Times
	// Member is what a member of a team did.
	Member = result.Member
)
