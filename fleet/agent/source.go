// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
)

// Level is how much is kept. An agent that uses more of the processors than it may
// goes down by one level at a time, and up again when it has been well below.
type Level int

// The levels, from the one that keeps most.
const (
	Content  Level = iota // as the configuration says
	Hashes                // hashes in place of content
	Metadata              // no content
	Counters              // how many calls of each operation; the calls are declared lost
	lowest   = Counters
)

// String returns the level's name.
func (l Level) String() string {
	switch l {
	case Content:
		return "content"
	case Hashes:
		return "hashes"
	case Metadata:
		return "metadata"
	case Counters:
		return "counters"
	}
	return fmt.Sprintf("level %d", int(l))
}

// Source is what an agent records with.
type Source interface {
	// Record records into out until ctx is done, or there is nothing more to record,
	// and then returns nil. It makes one whole stream: its first frame describes it.
	Record(ctx context.Context, r *Record, l Level, out Sink) error
	// Check says what is wrong with what is to be recorded, without recording it.
	Check(r *Record) error
}

// Sink takes a stream. It is not for concurrent use.
type Sink interface {
	// Put takes a frame, in two parts, with so many events. When it returns false the
	// events are counted as lost for the reason, and the source should say so in the
	// stream when it is next taken something of.
	Put(header, payload []byte, events uint64) (taken bool, reason string)
	// Lost counts events that the source itself lost.
	Lost(reason string, events uint64)
	// Handed returns how many events were counted, by Put and Lost, since the host's spool
	// was made. The number survives an agent that is killed, and each of its events is
	// stored or declared lost: so a source that makes events up numbers them with it.
	Handed() uint64
}

// Reasons for losses that the agent itself declares.
const (
	LossSpool  = "the spool was full"
	LossKilled = "the agent was killed"
	// LossEarlier is of what a killed agent had declared for reasons that are not known.
	LossEarlier = "dropped before the agent was killed"
	LossBroken  = "the stream broke off"
)
