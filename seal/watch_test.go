// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// TestWatch sees the events of a stream in the order of sealing, before its end is there,
// and ends with the context.
func TestWatch(t *testing.T) {
	r, out := io.Pipe()
	go func() {
		sw, err := trace.NewStreamWriter(out, 1, &trace.Head{Arch: "amd64"})
		if err != nil {
			t.Error(err)
			return
		}
		var payload []byte
		for _, at := range []uint64{300, 100, 200} {
			payload = trace.AppendRecord(payload,
				&trace.Record{Type: trace.RecNote, TID: 7, PID: 7, Exit: at,
					Pieces: []trace.Piece{{Data: bytes.Repeat([]byte("x"), 200)}}})
		}
		if err := sw.WriteRecords(trace.Frame{Round: 1, Until: 400}, payload); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	var seen []int64
	heads := 0
	_, err := Watch(ctx, r, &Viewer{Started: func(h *trace.Head) error {
		if heads++; h.Arch != "amd64" {
			t.Errorf("head of %s", h.Arch)
		}
		return nil
	}, Seen: func(ev *event.Event) error {
		if seen = append(seen, ev.Exit); len(seen) == 3 {
			time.AfterFunc(time.Millisecond, cancel)
		}
		return nil
	}, Idle: func() error { return nil }})
	if !errors.Is(err, context.Canceled) || heads != 1 || len(seen) != 3 || seen[0] != 100 || seen[2] != 300 {
		t.Errorf("%v, %d heads, events at %v", err, heads, seen)
	}
	// What a function returns ends it.
	enough := errors.New("enough")
	if _, err := Watch(t.Context(), bytes.NewReader(nil), &Viewer{Idle: func() error { return enough }}); err != nil &&
		!errors.Is(err, enough) && !errors.Is(err, trace.ErrEmpty) {
		t.Errorf("%v", err)
	}
}
