// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/notes"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
)

// takeNotes lets iotape note write into a recording, until done is called, which is before the
// recording's end is written. pid is the recorded command, whose notes they are, 0 if that is
// unknown.
func (p *Plan) takeNotes(sw *trace.StreamWriter, pid *atomic.Int64) (done func()) {
	info := &notes.Info{PID: os.Getpid(), Name: sealing.TrimTape(filepath.Base(p.Tape)), Command: p.Capture.Command,
		Target: p.Target}
	server, err := notes.Listen(info, func(from uint32, text string) error {
		if of := pid.Load(); of != 0 {
			from = uint32(of)
		}
		now, _ := capture.Clocks()
		return sw.Note(from, uint64(now), text)
	})
	if err != nil {
		p.note("iotape note does not reach this recording: %v", err)
		return func() {}
	}
	return func() { _ = server.Close() }
}
