// SPDX-License-Identifier: Apache-2.0

package rows_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/format/rows"
	"github.com/iotape/iotape/trace"
)

// tape returns one with a write of 100 bytes to a file whose name wants quotes.
func tape(t *testing.T) *trace.Tape {
	t.Helper()
	x, _ := formattest.Tape(t, func(im *format.Import) error {
		w, err := im.Host("h")
		if err != nil {
			return err
		}
		open := format.Call{Op: event.OpOpen, PID: 7, TID: 7, Enter: 1, Exit: 2, Ret: 3, Args: [6]uint64{1: 1}}
		open.Text(0, "/a, \"b\"", false)
		write := format.Call{Op: event.OpWrite, PID: 7, TID: 7, Enter: 3, Exit: 4, Ret: 100, Args: [6]uint64{3, 0, 100}}
		write.Bytes(1, []byte(strings.Repeat("x", 100)), 0)
		return errors.Join(w.Call(&open), w.Call(&write))
	})
	return x
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	done, err := rows.CSV.Write(context.Background(), &out, tape(t), &format.Options{})
	if err != nil || done.Records != 2 || len(done.Left) != 0 {
		t.Fatalf("%v, %+v", err, done)
	}
	table, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(table) != 3 {
		t.Fatalf("%v: %q", err, table)
	}
	column := map[string]int{}
	for i, name := range table[0] {
		column[name] = i
	}
	if row := table[2]; row[column["op"]] != "write" || row[column["bytes"]] != "100" ||
		row[column["file"]] != "/a, \"b\"" || row[column["host"]] != "h" {
		t.Errorf("%q", row)
	}
}

func TestNDJSON(t *testing.T) {
	for _, x := range []struct{ ask, shown, cut int }{{0, 32, 68}, {50, 50, 50}, {1000, 100, 0}, {-1, 100, 0}} {
		var out bytes.Buffer
		done, err := rows.NDJSON.Write(context.Background(), &out, tape(t), &format.Options{ContentBytes: int64(x.ask)})
		if err != nil || done.Records != 2 {
			t.Fatalf("%v, %+v", err, done)
		}
		var cut uint64
		for _, n := range done.Left {
			cut += n
		}
		if int(cut) != x.cut {
			t.Errorf("%d bytes asked for: left out %v", x.ask, done.Left)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 2 || strings.Count(lines[1], "x") < x.shown || strings.Count(lines[1], "x") > x.shown+1 {
			t.Errorf("%d bytes asked for: %q", x.ask, lines)
		}
		for _, l := range lines {
			if !json.Valid([]byte(l)) {
				t.Errorf("no JSON: %s", l)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for name, id := range map[string]string{"x.csv": "csv", "x.ndjson": "ndjson", "x.jsonl": "ndjson"} {
		if f := all.ByName(name); f == nil || f.ID != id {
			t.Errorf("%s is %v", name, f)
		}
	}
}
