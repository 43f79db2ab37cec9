// SPDX-License-Identifier: Apache-2.0

package snia

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/dataseries"
	"github.com/iotape/iotape/trace"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "DataSeries",
	ID:       "dataseries",
	Suffixes: []string{".ds"},
	About:    "system calls in SNIA's schema for DataSeries, as Re-Animator's tools write and replay them",
	Marked:   true,
	Match:    func(head []byte) bool { return bytes.HasPrefix(head, []byte("DSv1")) },
	Read:     readFile,
	Write:    writeFile,
}

func readFile(_ context.Context, in *os.File, im *format.Import) error {
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	r, err := dataseries.NewReader(in, fi.Size())
	if err != nil {
		return err
	}
	w, err := im.Host("")
	if err != nil {
		return err
	}
	w.Head.Backend = "DataSeries"
	return Import(r, w, &im.Done)
}

func writeFile(_ context.Context, out io.Writer, t *trace.Tape, o *format.Options) (*format.Done, error) {
	codec, ok := dataseries.ParseCodec(cmp.Or(o.Codec, "none"))
	if !ok {
		return nil, fmt.Errorf("codec %q is neither none, zlib, lzf, snappy, lz4 nor lz4hc", o.Codec)
	}
	return Export(out, t, ExportOptions{Codec: codec, ForReplayer: o.ForReplayer})
}
