// SPDX-License-Identifier: Apache-2.0

package snoop

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "tables of eBPF tools",
	ID:    "snoop",
	About: "opens, slow accesses and disk requests that opensnoop, ext4slower, biosnoop and others print",
	Match: match,
	Read:  read,
}

// match looks for the head of a table among the first lines, which say what is traced.
func match(b []byte) bool {
	const look = 10
	n := 0
	for text := range bytes.Lines(b) {
		if n++; n > look || len(text) > maxLine {
			break
		}
		if t, _ := head(string(bytes.TrimRight(text, "\r\n"))); t != nil {
			return true
		}
	}
	return false
}

const maxLine = 16 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Content, w.Unsorted = "none", true
	x := &importer{w: w, im: im, comms: map[uint32]string{}, files: map[key]int32{}, next: map[uint32]int32{}}
	lines := format.NewLines(ctx, in, maxLine)
	for lines.Next() {
		if lines.Long() {
			im.LeftOut(format.LongLines, 1)
			continue
		}
		text := string(lines.Text())
		if t, columns := head(text); t != nil {
			x.tool, x.columns = t, columns
			w.Head.Backend = t.name
			continue
		}
		if x.tool == nil || len(bytes.TrimSpace(lines.Text())) == 0 { // what the tool says before the table
			continue
		}
		r, ok := cells(x.columns, text)
		if !ok {
			im.LeftOut(format.BadLines, 1)
			continue
		}
		if err := x.tool.row(x, r); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if im.Records == 0 {
		return errors.New("no rows in it")
	}
	return nil
}
