// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/trace"
)

// Lacks says in lines what a recording lacks that did not end in order, and reports whether
// it lacks nothing. size is its stream's, in bytes; program is who seals.
func (r *Result) Lacks(size int64, program string) (lines []string, complete bool) {
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	st := r.Stats
	if r.Piped {
		size = st.Stream // what was cut off is not known, but the block is
		if st.Damage != nil {
			say("cut the stream after %s of its plain bytes: %v", report.Bytes(uint64(st.Stream)), st.Damage)
		}
	}
	if cut := size - st.Stream; cut > 0 {
		why := "it ends in the middle of a frame"
		if st.Damage != nil && !errors.Is(st.Damage, trace.ErrTruncated) {
			why = st.Damage.Error()
		}
		say("cut %s from the end of the stream: %s", report.Bytes(uint64(cut)), why)
	}
	if st.End == nil {
		at := time.Unix(0, st.Head.WallNS+max(st.Until-st.Head.ClockNS, 0))
		say("it breaks off at %s; %s running", at.Format("2006-01-02 15:04:05.000"),
			report.Plural(st.Running, "thread was", "threads were"))
	}
	m := st.Manifest(program)
	if m.Incomplete {
		say("the tape is incomplete: %s", m.Reason)
	}
	return lines, !m.Incomplete
}

// IsTape reports whether a directory has a tape's files, and no stream to make one of.
func IsTape(path string) bool {
	if _, err := os.Stat(filepath.Join(path, StreamName)); err == nil {
		return false
	}
	for _, name := range []string{trace.ManifestName, trace.EventsName} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return true
		}
	}
	return false
}
