// SPDX-License-Identifier: Apache-2.0

package dio

import (
	"context"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "DIO",
	ID:    "dio",
	About: "system calls that DIO traced, as JSON lines",
	Match: match,
	Read:  Read,
}

// match recognises the fields of an event, or of a path.
func match(head []byte) bool {
	f := format.FirstObject(head)
	return f["system_call_name"] != nil && f["call_timestamp"] != nil || string(f["doc_type"]) == `"EventPath"`
}

// Read imports a file.
func Read(ctx context.Context, in *os.File, im *format.Import) error {
	imp := &importer{im: im, files: map[string]file{}, process: map[thread]uint32{}, hosts: map[string]*host{}}
	when := func(text []byte) (uint64, error) {
		r, err := parse(text)
		if err != nil {
			return 0, err
		}
		return r.Until, imp.first(r)
	}
	return im.ObjectsByTime(ctx, in, when, func(text []byte) error {
		r, err := parse(text)
		if err != nil {
			return err
		}
		return imp.event(r)
	})
}
