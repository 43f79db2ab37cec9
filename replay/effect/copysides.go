// SPDX-License-Identifier: Apache-2.0

package effect

import "github.com/iotape/iotape/event"

// CopySides returns the arguments of a copy's source and target.
func CopySides(op event.Op) (src, dst int) {
	if op == event.OpSendfile {
		return 1, 0
	}
	return 0, 2
}
