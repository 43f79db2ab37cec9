// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// compressor is what the writers of all formats have.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// compressors are the formats that flow recognises. As a form of connections, one has a connection be one
// stream of it, which is flushed behind each message; with eachAlone, each message is compressed on its own.
// As a kind of messages, the messages are compressed when they are made, and passed on as they are.
var compressors = map[string]func(w io.Writer) compressor{
	"gzip": func(w io.Writer) compressor { return gzip.NewWriter(w) },
	"zstd": func(w io.Writer) compressor {
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err) // the options are wrong
		}
		return z
	},
	"snappy": func(w io.Writer) compressor { return s2.NewWriter(w, s2.WriterSnappyCompat(), s2.WriterConcurrency(1)) },
	"lz4":    func(w io.Writer) compressor { return lz4.NewWriter(w) },
}

var decompressors = map[string]func(r io.Reader) (io.Reader, error){
	"gzip":   func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	"zstd":   func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	"snappy": func(r io.Reader) (io.Reader, error) { return s2.NewReader(r), nil },
	"lz4":    func(r io.Reader) (io.Reader, error) { return lz4.NewReader(r), nil },
}

const eachAlone = " each"

// formats are the names of the compressors, in an order.
var formats = []string{"gzip", "zstd", "snappy", "lz4"}

// recognised reports whether flow knows how the messages, or connections, of a scenario are compressed.
func (s *scenario) recognised() bool {
	return compressors[s.Kind] != nil || compressors[strings.TrimSuffix(s.Form, eachAlone)] != nil
}

// compressed compresses a message on its own.
func compressed(newCompressor func(w io.Writer) compressor, m []byte) []byte {
	var b bytes.Buffer
	w := newCompressor(&b)
	_, err := w.Write(m)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // of a buffer
	}
	return b.Bytes()
}

// opened returns what a connection has: of a stream that is compressed, what was compressed.
func (n *node) opened(c io.Reader) io.Reader {
	if open := decompressors[n.Form]; open != nil {
		return &opener{c: c, open: open}
	}
	return c
}

// opener decompresses a stream from its first byte on, when that is there.
type opener struct {
	c, r io.Reader
	open func(io.Reader) (io.Reader, error)
}

func (o *opener) Read(b []byte) (int, error) {
	if o.r == nil {
		r, err := o.open(o.c)
		if err != nil {
			return 0, err
		}
		o.r = r
	}
	return o.r.Read(b)
}

// ask sends words, in the form of the connection.
func (o *output) ask(words []byte) error {
	if compressors[o.node.Form] != nil {
		return o.put(words)
	}
	_, err := o.w.Write(framed(words))
	return err
}

// close ends a stream that is compressed, and what it goes to.
func (o *output) close() error {
	if o.wire != nil {
		if err := o.wire.Close(); err != nil {
			return err
		}
	}
	return o.w.Close()
}
