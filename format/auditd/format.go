// SPDX-License-Identifier: Apache-2.0

package auditd

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "auditd",
	ID:    "auditd",
	About: "logs of the Linux audit daemon: audit.log, or what ausearch --raw prints",
	Match: match,
	Read:  read,
}

// match looks for a record among the first lines: ausearch writes others before it.
func match(head []byte) bool {
	const look = 5
	n := 0
	for line := range bytes.Lines(head) {
		if n++; n > look {
			break
		}
		if _, ok := parseLine(string(bytes.TrimRight(line, "\r\n"))); ok {
			return true
		}
	}
	return false
}

// maxLine is the longest line that is read; the kernel writes less than 9 KiB.
const maxLine = 16 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	x := &importer{im: im, hosts: map[string]*host{}}
	lines := format.NewLines(ctx, in, maxLine)
	for lines.Next() {
		text := lines.Text()
		switch {
		case lines.Long():
			im.LeftOut(format.LongLines, 1)
			continue
		case len(text) == 0 || bytes.HasPrefix(text, []byte("----")) || bytes.HasPrefix(text, []byte("time->")):
			continue // of ausearch
		}
		r, ok := parseLine(string(text))
		if !ok {
			im.LeftOut(format.BadLines, 1)
			continue
		}
		if err := x.record(&r); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	for _, h := range x.order {
		if err := h.flush(0); err != nil {
			return err
		}
	}
	if x.calls == 0 {
		return errors.New("no records of system calls in it (type=SYSCALL)")
	}
	return nil
}
