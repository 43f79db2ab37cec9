// SPDX-License-Identifier: Apache-2.0

package perfscript

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "perf script",
	ID:    "perf-script",
	About: "tracepoints of system calls, as perf script prints them",
	Match: match,
	Read:  read,
}

// match looks for an event of a system call among the first lines.
func match(head []byte) bool {
	const look = 200
	n := 0
	for text := range bytes.Lines(head) {
		if n++; n > look {
			break
		}
		if _, ok := parse(string(bytes.TrimRight(text, "\r\n"))); ok {
			return true
		}
	}
	return false
}

const maxLine = 64 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend, w.Head.Content, w.Unsorted = "perf script", "none", true
	x := &importer{w: w, im: im, threads: map[uint32]*thread{}}
	lines := format.NewLines(ctx, in, maxLine)
	for lines.Next() {
		text := bytes.TrimSpace(lines.Text())
		switch {
		case lines.Long():
			im.LeftOut(format.LongLines, 1)
		case len(text) == 0 || text[0] == '#': // the head that perf script --header prints
		default:
			l, ok := parse(string(lines.Text()))
			if !ok {
				x.other(string(text))
				continue
			}
			if err := x.line(&l); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if err := x.finish(); err != nil {
		return err
	}
	if im.Records == 0 {
		return errors.New("no system calls in it")
	}
	return nil
}
