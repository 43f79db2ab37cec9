// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"log"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/trace"
)

// Bytes that were read, by the extension of the file.
func Example() {
	tape, err := trace.Open("testdata/make.tape")
	if err != nil {
		log.Fatal(err)
	}
	defer tape.Close()
	bytes := map[string]int64{}
	for ev, err := range tape.Events() {
		if err != nil {
			log.Fatal(err)
		}
		if io := ev.Traffic(); io.From != nil {
			bytes[path.Ext(io.From.Path)] += io.Read
		}
	}
	fmt.Println(".c:", bytes[".c"], "bytes;", ".o:", bytes[".o"], "bytes")
	// Output:
	// .c: 117 bytes; .o: 36749 bytes
}

// What the compilers below one make wrote: an open file with its counters, when its
// last descriptor is closed.
func ExampleEvents() {
	tape, err := trace.Open("testdata/make.tape")
	if err != nil {
		log.Fatal(err)
	}
	defer tape.Close()
	var job *history.Process
	written := map[string]int64{}
	for m, err := range history.Events(tape) {
		if err != nil {
			log.Fatal(err)
		}
		if job == nil && m.Process.Comm == "make" {
			job = m.Process
		}
		for _, o := range m.Ended {
			if o.WrittenBytes > 0 && o.Opener.In(job) && strings.HasSuffix(o.Path, ".o") &&
				!strings.HasPrefix(o.Path, "/tmp/cc") {
				written[path.Base(o.Path)] += o.WrittenBytes
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		fmt.Println(name, written[name])
	}
	// Output:
	// hello.o 1358
	// main.o 1215
}
