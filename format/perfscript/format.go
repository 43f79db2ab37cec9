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
	events, _ := format.FirstLines(head, 200, func(text []byte) bool {
		_, ok := parse(string(text))
		return ok
	})
	return events > 0
}

const maxLine = 64 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend, w.Head.Content, w.Unsorted = "perf script", "none", true
	x := &importer{w: w, im: im, threads: map[uint32]*thread{}}
	err = format.EachLine(ctx, in, maxLine, im, func(text []byte) (bool, error) {
		trimmed := bytes.TrimSpace(text)
		if trimmed[0] == '#' { // the head that perf script --header prints
			return true, nil
		}
		l, ok := parse(string(text))
		if !ok {
			x.other(string(trimmed))
			return true, nil
		}
		return true, x.line(&l)
	})
	if err != nil {
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
