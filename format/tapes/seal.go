// SPDX-License-Identifier: Apache-2.0

package tapes

import (
	"bufio"
	"context"
	"io"
	"os"

	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/merge"
)

// Progress is called now and then with the bytes of the streams that were read.
type Progress func(done int64)

// Hosts writes the streams that all.Read made to a tape, with all its hosts, and removes the streams. It
// returns the manifest for tw.Close. progress may be nil.
func Hosts(
	ctx context.Context, streams []string, tw *trace.TapeWriter, program string, progress Progress,
) (*trace.Manifest, error) {
	if len(streams) == 1 {
		m, _, err := sealStream(ctx, streams[0], tw, program, progress)
		return m, err
	}
	var tapes []*trace.Tape
	defer func() {
		for _, t := range tapes {
			t.Close()
		}
	}()
	done := int64(0)
	for _, s := range streams {
		t, n, err := sealHost(ctx, s, program, func(n int64) {
			if progress != nil {
				progress(done + n)
			}
		})
		if err != nil {
			return nil, err
		}
		tapes = append(tapes, t)
		done += n
	}
	return merge.Tapes(ctx, tw, tapes, &merge.Options{Program: program})
}

// sealHost seals the stream of one host of several, beside it, to a tape that is gone
// when it is closed. n is the size of the stream.
func sealHost(
	ctx context.Context, stream, program string, progress Progress,
) (t *trace.Tape, n int64, err error) {
	dir := stream + ".tape"
	tw, err := trace.CreateTape(dir)
	if err != nil {
		return nil, 0, err
	}
	defer tw.Abort()
	m, n, err := sealStream(ctx, stream, tw, program, progress)
	if err == nil {
		err = tw.Close(m)
	}
	if err == nil {
		t, err = trace.Open(dir)
	}
	if err != nil {
		return nil, 0, err
	}
	t.OnClose(func() error { return os.RemoveAll(dir) })
	return t, n, nil
}

// sealStream seals a stream and removes it.
func sealStream(
	ctx context.Context, stream string, tw *trace.TapeWriter, program string, progress Progress,
) (m *trace.Manifest, n int64, err error) {
	in, err := os.Open(stream)
	if err != nil {
		return nil, 0, err
	}
	defer in.Close()
	if m, err = Stream(ctx, in, tw, program, progress); err != nil {
		return nil, 0, err
	}
	if n, err = in.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, err
	}
	return m, n, os.Remove(stream)
}

// Stream writes a stream, which may be piped, to a tape. A piped one is read with the keys
// of the context (see chain.WithKeys). It returns the manifest for tw.Close. progress may
// be nil.
func Stream(
	ctx context.Context, in *os.File, tw *trace.TapeWriter, program string, progress Progress,
) (*trace.Manifest, error) {
	stream, _, err := chain.Plain(ctx, bufio.NewReaderSize(in, 1<<20))
	if err != nil {
		return nil, err
	}
	stats, err := seal.Seal(ctx, stream, tw, &seal.Options{Progress: progress, Local: true})
	if err != nil {
		return nil, err
	}
	return stats.Manifest(program), nil
}
