// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// TestThreads records threads that share positions: each call's bytes are those of its
// position.
func TestThreads(t *testing.T) {
	rounds := 2_000
	if testing.Short() {
		rounds = 300
	}
	const threads, brief = 16, 64
	for _, test := range []struct {
		name    string
		first   int // descriptor; 3: their positions are counted
		signals bool
	}{{"quiet", 10, false}, {"signals", 10, true}, {"counted", 3, false}, {"counted with signals", 3, true}} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			command := []string{program(t, "threads"), dir, strconv.Itoa(rounds), strconv.Itoa(test.first)}
			if test.signals {
				command = append(command, "signals")
			}
			rec := record(t, &capture.Options{Command: command}).succeeded(t)
			handled := counts(t, rec.output)["handled"]
			if test.signals && handled == 0 {
				t.Error("the program had no signal")
			}
			for _, c := range []struct {
				op    event.Op
				fd    int
				file  string
				calls int
			}{
				{event.OpWrite, test.first, "written", threads*rounds + brief + handled},
				{event.OpRead, test.first + 1, "read", threads * rounds},
				{event.OpRead, test.first + 2, "moved", threads * rounds},
			} {
				want, err := os.ReadFile(dir + "/" + c.file)
				if err != nil {
					t.Fatal(err)
				}
				calls := on(rec.calls(c.op), c.fd, true)
				if len(calls) != c.calls {
					t.Errorf("%s: %d calls recorded, want %d", c.file, len(calls), c.calls)
				}
				checkPositions(t, c.file, calls, want, c.fd != test.first+2)
			}
			for _, r := range on(rec.calls(event.OpLseek), test.first+2, true) {
				if got := position(r); got >= 0 && got != r.Ret {
					t.Fatalf("lseek to %d recorded with the position %d", r.Ret, got)
				}
			}
		})
	}
}

// position returns where the descriptor of a call is afterwards, -1 if it is not known.
func position(r *trace.Record) int64 {
	if len(r.Objects) == 0 {
		return -1
	}
	return int64(r.Objects[0].Pos)
}

// checkPositions compares the numbers that calls moved with the file. Once says that each
// position is moved over once.
func checkPositions(t *testing.T, name string, calls []*trace.Record, file []byte, once bool) {
	t.Helper()
	seen, unknown := map[int64]bool{}, 0
	for _, r := range calls {
		b := content(r, 1)
		if len(b) != 8 || r.Ret != 8 {
			t.Fatalf("%s: a call of 8 bytes returned %d, with bytes % x", name, r.Ret, b)
		}
		end := position(r)
		if end < 0 {
			unknown++
			continue
		}
		if end < 8 || end > int64(len(file)) || !bytes.Equal(file[end-8:end], b) {
			t.Fatalf("%s: the number %#x was not moved before position %d", name, binary.LittleEndian.Uint64(b), end)
		}
		if once && seen[end] {
			t.Fatalf("%s: two calls end at %d", name, end)
		}
		seen[end] = true
	}
	if unknown > len(calls)/100 {
		t.Errorf("%s: %d of %d positions are not known", name, unknown, len(calls))
	}
}
