// SPDX-License-Identifier: Apache-2.0

package procmon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "Process Monitor",
	ID:    "procmon",
	About: "CSV that Process Monitor of Windows saves",
	Match: match,
	Read:  read,
}

const byteOrderMark = "\xef\xbb\xbf"

// match looks for the columns that operations need.
func match(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimPrefix(head, []byte(byteOrderMark)), []byte("\n"))
	for _, name := range [...]string{`"Time of Day"`, `"PID"`, `"Operation"`, `"Path"`, `"Result"`} {
		if !bytes.Contains(line, []byte(name)) {
			return false
		}
	}
	return true
}

// maxRow is the longest row that is read, in bytes.
const maxRow = 1 << 20

// limited ends a read with errLong where one row takes more than maxRow bytes: a quotation mark that
// is not closed would otherwise take the rest of a file.
type limited struct {
	r    io.Reader
	left int
}

var errLong = fmt.Errorf("a row is longer than %d bytes", maxRow)

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLong
	}
	n, err := l.r.Read(b[:min(len(b), l.left)])
	l.left -= n
	return n, err
}

func read(ctx context.Context, in *os.File, im *format.Import) error {
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend, w.Head.Content, w.Unsorted = "Process Monitor", "none", true
	limit := &limited{r: in, left: maxRow}
	buffered := bufio.NewReaderSize(limit, 1<<12)
	if head, _ := buffered.Peek(len(byteOrderMark)); string(head) == byteOrderMark {
		_, _ = buffered.Discard(len(byteOrderMark))
	}
	r := csv.NewReader(buffered)
	r.FieldsPerRecord, r.ReuseRecord, r.LazyQuotes = -1, true, true
	names, err := r.Read()
	if err != nil {
		return err
	}
	x := newImporter(w, im, slices.Clone(names))
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		limit.left = maxRow
		row, err := r.Read()
		var wrong *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			if im.Records == 0 {
				return errors.New("no operations on files in it")
			}
			return nil
		case errors.As(err, &wrong):
			im.LeftOut(format.BadLines, 1)
			continue
		case err != nil:
			return err
		}
		if err := x.row(row); err != nil {
			return err
		}
	}
}

// place returns a name as a path: C:\a\b is /C/a/b, \\server\share\a is /server/share/a. It is "" for
// what is no file: a key of the registry, an end of a connection.
func place(name string) string {
	switch {
	case len(name) >= 2 && name[1] == ':' && (len(name) == 2 || name[2] == '\\') &&
		(name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z':
		name = "/" + strings.ToUpper(name[:1]) + name[2:]
	case strings.HasPrefix(name, `\\`):
		name = name[1:]
	default:
		return ""
	}
	return strings.TrimRight(strings.ReplaceAll(name, `\`, "/"), "/")
}
