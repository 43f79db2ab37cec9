// SPDX-License-Identifier: Apache-2.0

package fiolog

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "fio iolog",
	ID:       "fio",
	Suffixes: []string{".fio", ".iolog"},
	About:    "reads and writes of files, as fio --write_iolog logs and --read_iolog replays them",
	Match: func(head []byte) bool {
		return bytes.HasPrefix(head, []byte(version2)) || bytes.HasPrefix(head, []byte(version3))
	},
	Read: func(ctx context.Context, in *os.File, im *format.Import) error { return Import(ctx, in, im) },
	Write: func(_ context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
		return Export(out, t)
	},
}

// JobFormat is how the program finds ExportJob.
var JobFormat = format.Format{
	Name:     "fio job",
	ID:       "fio-job",
	Suffixes: []string{".fiojob"},
	About:    "a job file for fio that resembles a tape: sizes, mix, order, depth, pauses and flushes",
	Write: func(_ context.Context, out io.Writer, t *trace.Tape, _ *format.Options) (*format.Done, error) {
		return ExportJob(out, t)
	},
}

// The first lines.
const (
	version2 = "fio version 2 iolog"
	version3 = "fio version 3 iolog"
)

// maxName is how long a file's name can be, in bytes: fio's scanf reads no more.
const maxName = 256
