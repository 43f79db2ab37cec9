// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ptrace"
	"github.com/iotape/iotape/trace"
)

// TestPositions records a program that moves positions in every way, and compares the position of
// each call with what the kernel said to the program.
func TestPositions(t *testing.T) {
	movers := []event.Op{event.OpRead, event.OpWrite, event.OpReadv, event.OpWritev, event.OpLseek, event.OpFtruncate}
	for _, keep := range []string{"full", "none"} {
		content, err := capture.ParseContent(keep)
		if err != nil {
			t.Fatal(err)
		}
		rec := record(t, &capture.Options{
			Command: []string{program(t, "positions", "-static"), t.TempDir()}, Content: content,
		}).succeeded(t)
		want := strings.Split(strings.TrimSpace(rec.output), "\n")
		var got, calls []string
		for i := range rec.records {
			r := &rec.records[i]
			moves := slices.Contains(movers, event.Op(r.Op))
			if r.Type != trace.RecCall || !moves || r.PID != rec.records[0].PID || r.Args[0] == 1 {
				continue
			}
			got = append(got, fmt.Sprintf("%d %d", int32(r.Args[0]), position(r)))
			calls = append(calls, fmt.Sprintf("%s(%d, %#x, %#x) = %d", event.Op(r.Op), int32(r.Args[0]), r.Args[1],
				r.Args[2], r.Ret))
		}
		if len(got) != len(want) || len(want) < 100 {
			t.Fatalf("%d calls recorded, the program made %d", len(got), len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("call %d, %s: descriptor and position %s recorded, want %s", i, calls[i], got[i], want[i])
			}
		}
	}
}

// TestPositionsFiltered checks that calls which the filter leaves out count for the positions of those
// that it does not.
func TestPositionsFiltered(t *testing.T) {
	for _, filter := range []string{"op = write or op = lseek", "op = read", "count > 3 and not failed", "failed"} {
		t.Run(filter, func(t *testing.T) {
			o := capture.Options{Prefilter: prefilter(t, filter)}
			positions := func(backend capture.Backend) (list []string) {
				o.Command = []string{program(t, "positions"), t.TempDir()}
				rec := recordWith(t, backend, &o).succeeded(t)
				for _, op := range []event.Op{event.OpRead, event.OpWrite, event.OpReadv, event.OpLseek} {
					for _, r := range rec.calls(op) {
						if r.PID == rec.records[0].PID && r.Args[0] != 1 && len(r.Objects) > 0 {
							list = append(list, fmt.Sprintf("%v(%d, %d) = %d at %d", op, int32(r.Args[0]), r.Args[2],
								r.Ret, position(r)))
						}
					}
				}
				return list
			}
			got, want := positions(Backend{}), positions(ptrace.Backend{})
			if len(want) < 5 {
				t.Errorf("%d calls by ptrace, want more", len(want))
			}
			same(t, got, want)
		})
	}
}
