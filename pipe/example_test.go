// SPDX-License-Identifier: Apache-2.0

package pipe_test

import (
	"bytes"
	"fmt"
	"io"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
)

// A stream through two layers and back; then one of its blocks is changed.
func Example() {
	spec, err := chain.Parse("zstd:3,checksum,block:1K")
	if err != nil {
		panic(err)
	}
	var stream bytes.Buffer
	w, err := pipe.NewWriter(&stream, spec.Layers, &spec.Options)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(bytes.Repeat([]byte("some text "), 300))
	if err := w.Close(); err != nil { // without it the stream counts as cut off
		panic(err)
	}

	var keys chain.Keys
	r, err := pipe.NewReader(bytes.NewReader(stream.Bytes()), keys.Open, nil)
	if err != nil {
		panic(err)
	}
	plain, err := io.ReadAll(r)
	fmt.Println(r.Header().Chain(), len(plain), err)

	stream.Bytes()[stream.Len()-40]++ // in the final block
	r, err = pipe.NewReader(&stream, keys.Open, nil)
	if err != nil {
		panic(err)
	}
	plain, err = io.ReadAll(r)
	fmt.Println(len(plain), err != nil)
	// Output:
	// zstd:3,checksum 3000 <nil>
	// 2048 true
}
