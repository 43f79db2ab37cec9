// SPDX-License-Identifier: Apache-2.0

package options

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Data is what a replay writes: the recorded bytes, with zeros for those that the tape
// does not have, or something else in place of all of them.
type Data struct {
	// Made says that recorded bytes are not used.
	Made bool
	// Random bytes, or else Pattern over and over; an empty one is zeros.
	Random  bool
	Pattern []byte
}

// ParseData reads recorded, zero, random or pattern:HEX.
func ParseData(s string) (Data, error) {
	switch p, pattern := strings.CutPrefix(s, "pattern:"); {
	case s == "recorded":
		return Data{}, nil
	case s == "zero":
		return Data{Made: true}, nil
	case s == "random":
		return Data{Made: true, Random: true}, nil
	case pattern:
		b, err := hex.DecodeString(p)
		if err == nil && (len(b) == 0 || len(b) > 4096) {
			err = errors.New("a pattern has 1 to 4,096 bytes")
		}
		if err != nil {
			return Data{}, fmt.Errorf("%s: %w", s, err)
		}
		return Data{Made: true, Pattern: b}, nil
	}
	return Data{}, fmt.Errorf("data %q is neither recorded, zero, random nor pattern:HEX", s)
}
