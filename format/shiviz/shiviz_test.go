// SPDX-License-Identifier: Apache-2.0

package shiviz

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/catlog"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/trace"
)

func export(t *testing.T, tape *trace.Tape) (string, *format.Done) {
	t.Helper()
	var b bytes.Buffer
	done, err := write(context.Background(), &b, tape, &format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), done
}

func TestGolden(t *testing.T) {
	tape, _ := formattest.One(t, &catlog.Format, "../catlog/testdata/catbpf.log")
	got, _ := export(t, tape)
	formattest.Golden(t, "testdata/catbpf.shiviz", got)
}

type logged struct {
	host  string
	clock map[string]int
	text  string
}

// read reads a log as ShiViz does: with the expression in its first line.
func read(t *testing.T, log string) (list []logged) {
	t.Helper()
	parser, rest, ok := strings.Cut(log, "\n\n")
	if !ok {
		t.Fatal("no parser")
	}
	re := regexp.MustCompile("(?m)^" + parser + "$")
	for _, m := range re.FindAllStringSubmatch(rest, -1) {
		l := logged{host: m[re.SubexpIndex("host")], text: m[re.SubexpIndex("event")]}
		if err := json.Unmarshal([]byte(m[re.SubexpIndex("clock")]), &l.clock); err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

// TestClocks checks what ShiViz wants of clocks (js/model/modelGraph.js): each time line
// counts from 1 by 1, and what an event knows of another includes what that knew.
func TestClocks(t *testing.T) {
	tape, err := trace.Open("../../model/history/testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	log, done := export(t, tape)
	list := read(t, log)
	if len(list) != int(done.Records) || len(list) == 0 {
		t.Fatalf("%d events parsed, %d written", len(list), done.Records)
	}
	at := map[string][]logged{}
	edges := 0
	for _, l := range list {
		if l.clock[l.host] != len(at[l.host])+1 {
			t.Fatalf("%s: time %d after %d", l.host, l.clock[l.host], len(at[l.host]))
		}
		at[l.host] = append(at[l.host], l)
	}
	for _, l := range list {
		for host, time := range l.clock {
			if time < 1 || time > len(at[host]) {
				t.Fatalf("%s at %d knows of %s at %d, which has %d events", l.host, l.clock[l.host], host, time,
					len(at[host]))
			}
			if host == l.host {
				if time--; time == 0 {
					continue
				}
			} else {
				edges++
			}
			for other, known := range at[host][time-1].clock {
				if l.clock[other] < known || other == l.host && known >= l.clock[l.host] {
					t.Fatalf("%s at %d: knows %d of %s, but %s at %d knows %d", l.host, l.clock[l.host], l.clock[other],
						other, host, time, known)
				}
			}
		}
	}
	if len(at) < 2 || edges == 0 {
		t.Errorf("%d time lines, %d edges: the tape has several processes", len(at), edges)
	}
}
