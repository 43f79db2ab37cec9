// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/iotape/iotape/trace"
)

// Which calls wrote or read a text, and where in the file.
func ExampleTape_Content() {
	tape, err := trace.Open("../store/testdata/job.tape")
	if err != nil {
		log.Fatal(err)
	}
	defer tape.Close()
	var content []byte
	for ev, err := range tape.Events() {
		if err != nil {
			log.Fatal(err)
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			if !ev.Spec().IsContent(int(b.Arg)) {
				continue
			}
			if content, _, err = tape.ContentZero(b, content[:0]); err != nil {
				log.Fatal(err)
			}
			if at := bytes.Index(content, []byte("\n279\n")); at >= 0 {
				fmt.Printf("%s at %d\n", ev.Spec().Name, ev.Offset+int64(at)+1)
			}
		}
	}
	// Output:
	// write at 1004
	// read at 1004
	// read at 1003
	// write at 1003
	// read at 1004
	// read at 1004
	// read at 1004
	// write at 7885
	// read at 1004
	// write at 3004
}
