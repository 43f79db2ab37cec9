// SPDX-License-Identifier: Apache-2.0

package snoop

import (
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
	heads, _ := format.FirstLines(b, 10, func(text []byte) bool {
		t, _ := head(string(text[:min(len(text), maxLine)]))
		return t != nil
	})
	return heads > 0
}

const maxLine = 16 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Content, w.Unsorted = "none", true
	x := &importer{w: w, im: im, comms: map[uint32]string{}, files: map[key]int32{}, next: map[uint32]int32{}}
	err = format.EachLine(ctx, in, maxLine, im, func(line []byte) (bool, error) {
		text := string(line)
		if t, columns := head(text); t != nil {
			x.tool, x.columns = t, columns
			w.Head.Backend = t.name
			return true, nil
		}
		if x.tool == nil { // what the tool says before the table
			return true, nil
		}
		r, ok := cells(x.columns, text)
		if !ok {
			return false, nil
		}
		return true, x.tool.row(x, r)
	})
	if err != nil {
		return err
	}
	if im.Records == 0 {
		return errors.New("no rows in it")
	}
	return nil
}
