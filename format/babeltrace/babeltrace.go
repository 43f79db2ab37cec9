// SPDX-License-Identifier: Apache-2.0

package babeltrace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "LTTng, printed by babeltrace2",
	ID:    "babeltrace",
	About: "text that babeltrace2 prints of a kernel trace of LTTng",
	Match: match,
	Read: func(ctx context.Context, in *os.File, im *format.Import) error {
		return Import(ctx, in, im)
	},
}

var printed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\[[0-9][-0-9:. ]*\] (\(\+[0-9?.]+\) )?([^\s{}]+ ){0,6}[^\s{}]+: ([a-z.]+ = ` +
		`)?\{|timestamp = [0-9][^{}]* name = [^\s{}]+, )`)
})

func match(head []byte) bool {
	first, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte("\n"))
	return printed().Match(first)
}

// maxLine is the most bytes of a line; LTTng's strings have at most a page each.
const maxLine = 1 << 20

// Import reads a printed trace.
func Import(ctx context.Context, in io.Reader, im *format.Import) error {
	r := bufio.NewReaderSize(in, maxLine)
	p := &importer{im: im, hosts: map[string]*host{}}
	for n := 1; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		text, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			im.LeftOut(fmt.Sprintf("lines longer than %d bytes", maxLine), 1)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = r.ReadSlice('\n')
			}
			text = nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if text = bytes.TrimRight(text, "\r\n"); len(text) > 0 {
			l, wrong := parseLine(string(text))
			switch {
			case wrong != "":
				im.LeftOut("lines that are not understood", 1)
				if p.wrong == "" {
					p.wrong = fmt.Sprintf("line %d: %s", n, wrong)
				}
			default:
				if err := p.event(&l); err != nil {
					return fmt.Errorf("line %d: %w", n, err)
				}
			}
		}
		if err != nil {
			break
		}
	}
	if len(p.hosts) == 0 && p.wrong != "" {
		return errors.New(p.wrong)
	}
	return p.end()
}
