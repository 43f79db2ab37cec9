// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"os"
	"strconv"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// TestSignals records programs whose calls are interrupted all the time: each call that had
// an effect is in the recording once, with its bytes.
func TestSignals(t *testing.T) {
	rounds := 20_000 // of four calls
	if testing.Short() {
		rounds = 5_000
	}
	for name, c := range map[string]struct{ jump, every bool }{
		"handlers return": {false, false}, "all calls": {false, true}, "handlers jump": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rounds, period := rounds, "97" // µs
			if c.every {
				rounds, period = rounds/4, "997" // each call stops: it has to get on
			}
			command := []string{program(t, "signals"), dir, strconv.Itoa(rounds), period}
			if c.jump {
				command = append(command, "jump")
			}
			rec := record(t, &capture.Options{Command: command, EveryCall: c.every}).succeeded(t)
			n := counts(t, rec.output)
			t.Logf("%v", n)
			if n["handled"] < 10 || n["bad"] != 0 {
				t.Errorf("the program had %d signals and %d wrong results", n["handled"], n["bad"])
			}
			writes, reads := rec.calls(event.OpWrite), rec.calls(event.OpRead)
			for name, fd := range map[string]int{"log": 10, "handlers": 11} {
				want, err := os.ReadFile(dir + "/" + name)
				if err != nil {
					t.Fatal(err)
				}
				if got := joined(on(writes, fd, true)); !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes recorded, %d in the file, or others", name, len(got), len(want))
				}
			}
			sent, received := joined(on(writes, 13, true)), joined(on(reads, 12, true))
			if !bytes.HasPrefix(sent, received) || len(sent)-len(received) != n["left"] {
				t.Errorf("the pipe: %d bytes written, %d read, or others; %d left", len(sent), len(received), n["left"])
			}
			checkPreads(t, rec.calls(event.OpPread64))
			if c.jump {
				return // what it counted may lack one that it jumped from
			}
			want := map[string]int{
				"writes": n["writes"], "reads": n["reads"], "preads": n["preads"], "woken": n["woken"],
			}
			got := map[string]int{
				"writes": len(on(writes, 10, true)) + len(on(writes, 13, true)), "reads": len(on(reads, 12, true)),
				"preads": len(on(rec.calls(event.OpPread64), 16, true)), "woken": len(on(reads, 14, true)),
			}
			if c.every {
				want["sleeps"], want["waits"] = n["sleeps"], n["waits"]
				got["sleeps"], got["waits"] = len(rec.calls(event.OpNanosleep)), len(rec.calls(event.OpFutex))
			}
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("%d %s recorded, want %d", got[k], k, want[k])
				}
			}
			if got := len(on(reads, 14, false)); got < n["interrupted"] {
				t.Errorf("%d interrupted reads recorded, want %d or more", got, n["interrupted"])
			}
		})
	}
}

func checkPreads(t *testing.T, calls []*trace.Record) {
	t.Helper()
	for _, r := range calls {
		if int(r.Args[0]) != 16 {
			continue
		}
		b := content(r, 1)
		for i := range b {
			if b[i] != byte(r.Args[3]+uint64(i)) {
				t.Fatalf("pread at %d: bytes % x", r.Args[3], b)
			}
		}
		if r.Ret != 64 || len(b) != 64 {
			t.Fatalf("pread of 64 returned %d, with %d bytes", r.Ret, len(b))
		}
	}
}
