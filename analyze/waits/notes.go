// SPDX-License-Identifier: Apache-2.0

package waits

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/iotape/iotape/causal"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Store writes annotations to the tape. It does not if that is a temporary one of another
// file, and then reports that they are not stored.
func Store(t *trace.Tape, notes *causal.Annotations) (stored bool, err error) {
	if st, err := os.Stat(t.Name()); err == nil && !st.IsDir() {
		return false, nil
	}
	return true, notes.Write(t)
}

// ReadFile reads annotations of a tape from a text, as WriteNotes writes it.
func ReadFile(t *trace.Tape, name string) (*causal.Annotations, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	notes, err := causal.ReadText(f, t.Events())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return notes, nil
}

// WriteNotes writes the annotations of a tape as text: those that are stored, or those that
// Annotate finds. With pids only the events of these processes or threads are written. line
// appends the line of an event.
func WriteNotes(w *bufio.Writer, t *trace.Tape, pids []uint, line func(dst []byte, ev *event.Event) []byte) error {
	notes, err := causal.Read(t)
	if errors.Is(err, fs.ErrNotExist) {
		notes, _, err = causal.Annotate(t.Events())
	}
	if err != nil {
		return err
	}
	wanted := func(e *event.Event) bool {
		return len(pids) == 0 || slices.Contains(pids, uint(e.PID)) || slices.Contains(pids, uint(e.TID))
	}
	return notes.WriteText(w, t.Events(), wanted, line)
}
