// SPDX-License-Identifier: Apache-2.0

package format

import (
	"context"
	"io"
	"os"

	"github.com/iotape/iotape/trace"
)

// Format is a foreign trace format: how it is recognised, read and written.
type Format struct {
	Name     string   // as people say it, such as "DataSeries"
	ID       string   // one word, as a flag's value
	Suffixes []string // of file names, such as ".ds"
	About    string   // one line: what is in such files and who makes or reads them
	// Match recognises a file by its first bytes (at most MatchBytes); nil: by suffix
	// alone.
	Match func(head []byte) bool
	// Marked says that each file begins with a mark, which Match knows: without it a name makes none.
	Marked bool
	// Read writes the calls of a file to streams; nil if the format is only written.
	Read func(ctx context.Context, in *os.File, im *Import) error
	// Write writes the events of a tape; nil if the format is only read.
	Write func(ctx context.Context, out io.Writer, t *trace.Tape, o *Options) (*Done, error)
}

// MatchBytes is how much of a file Format.Match sees.
const MatchBytes = 64 << 10

// Options for Format.Write. Zero values are the defaults; formats ignore what is not
// theirs.
type Options struct {
	Codec        string // DataSeries: compression of extents
	ForReplayer  bool   // DataSeries: leave out what Re-Animator's replayer crashes on
	Weight       string // folded stacks: calls, bytes or time; "" is time
	ContentBytes int64  // text formats: most bytes of a buffer's content to show
}

// Done is what came of a conversion.
type Done struct {
	Records uint64            `json:"records"` // of the foreign file
	Left    map[string]uint64 `json:"left,omitempty"`
	Missing int64             `json:"missing_bytes,omitempty"` // of content that the tape does not have
}

// LeftOut counts something that the other side cannot hold, by what it is.
func (d *Done) LeftOut(what string, n uint64) {
	if d.Left == nil {
		d.Left = map[string]uint64{}
	}
	if len(d.Left) >= maxLeft {
		if _, ok := d.Left[what]; !ok {
			what = "other"
		}
	}
	d.Left[what] += n
}

// maxLeft limits what a hostile file can make Done hold.
const maxLeft = 1000
