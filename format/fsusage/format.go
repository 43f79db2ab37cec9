// SPDX-License-Identifier: Apache-2.0

package fsusage

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "fs_usage",
	ID:    "fs-usage",
	About: "file-system calls, as fs_usage -w of macOS prints them",
	Match: match,
	Read:  read,
}

// match looks for calls among the first lines.
func match(head []byte) bool {
	const look = 20
	n, calls := 0, 0
	for text := range bytes.Lines(head) {
		if n++; n > look {
			break
		}
		if _, ok := parse(string(bytes.TrimRight(text, "\r\n"))); ok {
			calls++
		}
	}
	return calls > 0 && calls*2 >= min(n, look)-1
}

const maxLine = 16 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend, w.Head.Content, w.Unsorted = "fs_usage", "none", true
	x := &importer{w: w, im: im, threads: map[uint32]string{}, byName: map[string]uint32{}, files: map[key]string{}}
	lines := format.NewLines(ctx, in, maxLine)
	for lines.Next() {
		switch text := lines.Text(); {
		case lines.Long():
			im.LeftOut(format.LongLines, 1)
		case len(bytes.TrimSpace(text)) > 0:
			l, ok := parse(string(text))
			if !ok {
				im.LeftOut(format.BadLines, 1)
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
	if im.Records == 0 {
		return errors.New("no system calls in it")
	}
	return nil
}
