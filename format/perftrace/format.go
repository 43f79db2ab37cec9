// SPDX-License-Identifier: Apache-2.0

package perftrace

import (
	"context"
	"errors"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "perf trace",
	ID:    "perf-trace",
	About: "text that perf trace prints of system calls",
	Match: match,
	Read:  read,
}

// match looks for calls among the first lines.
func match(head []byte) bool {
	calls, n := format.FirstLines(head, 20, func(text []byte) bool {
		_, ok := parseLine(string(text))
		return ok
	})
	return calls > 0 && calls*2 >= n-1
}

const maxLine = 64 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend, w.Head.Content, w.Unsorted = "perf trace", "none", true
	x := &importer{w: w, im: im, threads: map[uint32]*thread{}}
	err = format.EachLine(ctx, in, maxLine, im, func(text []byte) (bool, error) {
		if n, ok := parseLost(string(text)); ok {
			return true, x.lost(n)
		}
		l, ok := parseLine(string(text))
		if !ok {
			return false, nil
		}
		return true, x.line(&l)
	})
	if err != nil {
		return err
	}
	if im.Records == 0 {
		return errors.New("no system calls in it")
	}
	return nil
}
