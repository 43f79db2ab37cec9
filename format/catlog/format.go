// SPDX-License-Identifier: Apache-2.0

package catlog

import (
	"context"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:  "CatLog",
	ID:    "catlog",
	About: "event logs of CAT and Falcon, before and after solving, with similarities",
	Match: match,
	Read:  Read,
}

// match recognises the fields that every event has.
func match(head []byte) bool {
	f := format.FirstObject(head)
	return f["timestamp"] != nil && f["thread"] != nil && f["type"] != nil && f["system_call_name"] == nil
}

// Read imports a log.
func Read(ctx context.Context, in *os.File, im *format.Import) error {
	imp := &importer{im: im, hosts: map[string]*host{}}
	when := func(text []byte) (uint64, error) {
		e, err := parse(text)
		if err != nil {
			return 0, err
		}
		if err := imp.reserve(e); err != nil {
			return 0, err
		}
		_, exit := e.times()
		return exit, nil
	}
	return im.ObjectsByTime(ctx, in, when, func(text []byte) error {
		e, err := parse(text)
		if err != nil {
			return err
		}
		return imp.event(e)
	})
}
