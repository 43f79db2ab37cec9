// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

// compressor is what the writers of all formats have.
type compressor interface {
	io.WriteCloser
	Flush() error
}

var compressors = map[string]func(w io.Writer) compressor{
	"gzip": func(w io.Writer) compressor { return gzip.NewWriter(w) },
	"zstd": func(w io.Writer) compressor {
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			panic(err)
		}
		return z
	},
	"snappy": func(w io.Writer) compressor { return s2.NewWriter(w, s2.WriterSnappyCompat()) },
	"lz4":    func(w io.Writer) compressor { return lz4.NewWriter(w) },
}

// TestEncodings has a server compress what it received for another one, which stores what it decompressed:
// as one stream, or each message on its own. Nothing of it is wrong. With Decode the ways of messages are
// followed through it, and one that was changed is found.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for name, compress := range compressors {
		for _, each := range []bool{false, true} {
			kinds := map[string]func(*rand.Rand, int) []byte{"log": logLines, "random": values["random"]}
			for kind, value := range kinds {
				for _, flip := range []int{-1, 7} {
					t.Run(fmt.Sprintf("%s/each %t/%s/%d", name, each, kind, flip), func(t *testing.T) {
						t.Parallel()
						r := rand.New(rand.NewPCG(3, uint64(len(kind))))
						var in [][]byte
						for k := range 12 {
							in = append(in, value(r, k))
						}
						m := &maker{t: t}
						compressing(m, in, compress, each, flip)
						plain := load(t, nil, m.names...)
						has(t, plain, name+" stream or file")
						if flip < 0 || kind == "log" { // what does not compress is there as it is
							expect(t, plain, nil, "wrong == 0")
						}
						f := load(t, &flow.Options{Decode: true}, m.names...)
						if flip >= 0 {
							expect(t, f, nil, "wrong == 1 and changed == 1")
							return
						}
						expect(t, f, nil, "wrong == 0")
						from := slices.IndexFunc(moved(t, f), func(b []byte) bool { return bytes.Equal(b, in[4]) })
						got := steps(f, path(t, f, f.EventName(f.Move(from).Event), ""))
						if want := "<10.0.0.1:4000->10.0.0.2:80 >10.0.0.2:5000->10.0.0.3:80 " +
							"<10.0.0.2:5000->10.0.0.3:80 >store"; got != want {
							t.Errorf("the way of message 4 is %q, want %q", got, want)
						}
					})
				}
			}
		}
	}
}

// moved returns the content of each move.
func moved(t *testing.T, f *flow.Flow) (list [][]byte) {
	t.Helper()
	for id := range f.Len() {
		b, err := f.Bytes(id)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// compressing makes the tapes of two servers, b and c. Message flip is compressed with a byte changed.
func compressing(m *maker, in [][]byte, compress func(io.Writer) compressor, each bool, flip int) {
	const fromC = "TCP:[10.0.0.3:80->10.0.0.2:5000]"
	b := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB},
		{op: event.OpConnect, tid: 1, at: 2, file: toC, open: 6}}
	var c []call
	var wire bytes.Buffer
	w := compress(&wire)
	offset := int64(0)
	for k, message := range in {
		at := int64(10 * (k + 1))
		b = append(b, call{op: event.OpRecvfrom, tid: 1, at: at, file: fromB, content: string(message)})
		if message = slices.Clone(message); k == flip {
			message[len(message)/2] ^= 0x20
		}
		if each {
			w = compress(&wire)
		}
		if _, err := w.Write(message); err != nil {
			m.t.Fatal(err)
		}
		end := w.Flush
		if each {
			end = w.Close
		}
		if err := end(); err != nil {
			m.t.Fatal(err)
		}
		sent := slices.Clone(wire.Bytes())
		wire.Reset()
		parts := [][]byte{sent}
		if each {
			parts = [][]byte{{0, 0, byte(len(sent) >> 8), byte(len(sent))}, sent}
		}
		for i, p := range parts {
			b = append(b, call{op: event.OpSendto, tid: 1, at: at + 1 + int64(i), file: toC, open: 6,
				content: string(p)})
		}
		if !each { // the other side receives it in two parts
			parts = [][]byte{sent[:9], sent[9:]}
		}
		for i, p := range parts {
			c = append(c, call{op: event.OpRecvfrom, tid: 1, at: at + 3 + int64(i), file: fromC, content: string(p)})
		}
		c = append(c, call{op: event.OpPwrite64, tid: 1, at: at + 6, file: "/store", open: 7, offset: offset,
			content: string(message)})
		offset += int64(len(message))
	}
	m.tape("b", 1_000*ms, true, b...)
	m.tape("c", 1_000*ms, true, c...)
}
