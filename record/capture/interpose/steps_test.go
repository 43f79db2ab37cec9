// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
)

// instructions returns the offsets of the instructions of the code between two offsets, each nth.
func instructions(t *testing.T, c *code, from, to uint64, nth int) (list []string) {
	t.Helper()
	k := 0
	for at := from; at < to; {
		in, err := decode(c.text[at:])
		if err != nil {
			at++ // filling between functions
			continue
		}
		if k++; k%nth == 0 {
			list = append(list, strconv.FormatUint(at, 10))
		}
		at += uint64(in.Len)
	}
	return list
}

// TestSteps gives a program a signal at each instruction of our code, by hardware breakpoints: its calls
// return what they return without, and each is recorded once.
func TestSteps(t *testing.T) {
	testenv.Short(t, "it sends thousands of signals")
	c, err := inproc()
	if err != nil {
		t.Fatal(err)
	}
	nth := 1
	if testing.Short() {
		nth = 4 // of the functions in C each fourth
	}
	lists := map[string][]string{
		"entry":  instructions(t, c, 0, c.userFault, 1),
		"before": instructions(t, c, c.symbols["before"], c.symbols["after"], nth),
		"after":  instructions(t, c, c.symbols["after"], c.symbols["orphaned"], nth),
		"rest":   instructions(t, c, c.symbols["orphaned"], uint64(len(c.text)), nth),
	}
	for name, offsets := range lists {
		for _, jump := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", handlers jump"}[jump], func(t *testing.T) {
				steps(t, c, offsets, jump)
			})
		}
	}
}

func steps(t *testing.T, c *code, offsets []string, jump bool) {
	t.Helper()
	dir := t.TempDir()
	list := filepath.Join(dir, "offsets")
	if err := os.WriteFile(list, []byte(strings.Join(offsets, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	command := []string{
		program(t, "steps"), dir, list, strconv.FormatUint(c.common, 10),
		strconv.Itoa(int(unsafe.Offsetof(slot{}.Entry))),
	}
	if jump {
		command = append(command, "jump")
	}
	rec := record(t, &capture.Options{Command: command})
	if rec.result.ExitStatus == 3 {
		t.Skip("no hardware breakpoints here: ", rec.output)
	}
	rec.succeeded(t)
	n := counts(t, rec.output[max(0, strings.LastIndex(rec.output, "hits")):])
	t.Logf("%d offsets: %v", len(offsets), n)
	if n["places"] == 0 || n["bad"] != 0 {
		t.Errorf("signals at %d places, and wrong results:\n%s", n["places"], rec.output)
	}
	writes := append(rec.calls(event.OpWrite), rec.calls(event.OpWritev)...)
	handled, err := os.ReadFile(dir + "/handler")
	if err != nil {
		t.Fatal(err)
	}
	if got := joined(on(writes, 11, true)); !bytes.Equal(got, handled) || len(got) != n["hits"]+1 {
		t.Errorf("the handler wrote %d bytes, recorded %d, and counted %d", len(handled), len(got), n["hits"]+1)
	}
	log, err := os.ReadFile(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(on(writes, 10, true)); got*8 != len(log) || !jump && got != n["writes"] {
		t.Errorf("%d writes recorded, %d in the file, and %d made", got, len(log)/8, n["writes"])
	}
	if jump {
		return // what it counted may lack one that it jumped from
	}
	rounds := 3 + len(offsets)
	for _, e := range []struct {
		op   event.Op
		fd   int
		want int
	}{
		{event.OpPread64, 12, rounds}, {event.OpWrite, 15, rounds}, {event.OpRead, 14, rounds},
		{event.OpLseek, 12, rounds}, {event.OpDup2, 12, rounds}, {event.OpClose, 13, rounds},
	} {
		got := 0
		for _, r := range rec.calls(e.op) {
			if int(int32(r.Args[0])) == e.fd && r.Ret >= 0 {
				got++
			}
		}
		if got != e.want {
			t.Errorf("%v of descriptor %d: %d recorded, want %d", e.op, e.fd, got, e.want)
		}
	}
}
