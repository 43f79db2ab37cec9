// SPDX-License-Identifier: Apache-2.0

package dftracer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "DFTracer",
	ID:       "dftracer",
	Suffixes: []string{".pfw", ".pfw.gz"},
	About:    "POSIX and STDIO functions and regions of programs, as DFTracer traces them",
	Match:    match,
	Read:     func(ctx context.Context, in *os.File, im *format.Import) error { return Import(ctx, in, im) },
}

// match wants, in one of the first lines, an event of DFTracer's own or of the two
// kinds of functions that it intercepts.
func match(head []byte) bool {
	if bytes.HasPrefix(head, gzipMagic) {
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return false
		}
		head, _ = io.ReadAll(io.LimitReader(z, format.MatchBytes)) // it ends early, as the head does
	}
	n := 0
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if n++; n > 100 || len(line) > 1 && line[0] != '{' {
			return false
		}
		if !bytes.Contains(line, []byte(`"ph":`)) || !bytes.Contains(line, []byte(`"pid":`)) {
			continue
		}
		for _, cat := range []string{"dftracer", "POSIX", "STDIO"} {
			if bytes.Contains(line, []byte(`"cat":"`+cat+`"`)) {
				return true
			}
		}
	}
	return false
}

var gzipMagic = []byte{0x1f, 0x8b}

// text returns a file's text from its beginning, whether it is compressed or not.
func text(in io.ReadSeeker) (io.Reader, error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(in, 1<<16)
	if magic, _ := r.Peek(len(gzipMagic)); !bytes.Equal(magic, gzipMagic) {
		return r, nil
	}
	return gzip.NewReader(r)
}
