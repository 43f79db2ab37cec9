// SPDX-License-Identifier: Apache-2.0

package fsusage

import (
	"context"
	"errors"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "fs_usage",
	ID:    "fs-usage",
	About: "file-system calls, as fs_usage of macOS prints them; best with -w",
	Match: match,
	Read:  read,
}

// match looks for calls among the first lines.
func match(head []byte) bool {
	calls, n := format.FirstLines(head, 20, func(text []byte) bool {
		_, ok := parse(string(text))
		return ok
	})
	return calls > 0 && calls*2 >= n-1
}

const maxLine = 16 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend, w.Head.Content, w.Unsorted = "fs_usage", "none", true
	x := &importer{w: w, im: im, threads: map[uint32]string{}, byName: map[string]uint32{}, files: map[key]string{}}
	err = format.EachLine(ctx, in, maxLine, im, func(text []byte) (bool, error) {
		l, ok := parse(string(text))
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
