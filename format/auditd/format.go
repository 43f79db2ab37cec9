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
	About: "logs of the Linux audit daemon: audit.log, or what ausearch prints (--raw, -i)",
	Match: match,
	Read:  read,
}

// match looks for a record among the first lines: ausearch writes others before it.
func match(head []byte) bool {
	records, _ := format.FirstLines(head, 5, func(text []byte) bool {
		_, ok := parseLine(string(text))
		return ok
	})
	return records > 0
}

// maxLine is the longest line that is read; the kernel writes less than 9 KiB.
const maxLine = 16 << 10

func read(ctx context.Context, in *os.File, im *format.Import) error {
	x := &importer{im: im, hosts: map[string]*host{}}
	err := format.EachLine(ctx, in, maxLine, im, func(text []byte) (bool, error) {
		if bytes.HasPrefix(text, []byte("----")) || bytes.HasPrefix(text, []byte("time->")) {
			return true, nil // of ausearch
		}
		r, ok := parseLine(string(text))
		if !ok {
			return false, nil
		}
		return true, x.record(&r)
	})
	if err != nil {
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
