// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
)

// appendRequest writes a request's head as a last argument.
func (p *Printer) appendRequest(dst []byte, e *event.Event, first bool) []byte {
	v, ok := layout.Request(e)
	if !ok {
		return dst
	}
	if !first {
		dst = append(dst, ", "...)
	}
	w := p.wording(e)
	return p.appendValue(dst, &v, &w)
}

// jsonRequest writes the head as an argument "request".
func (p *Printer) jsonRequest(dst []byte, e *event.Event) []byte {
	v, ok := layout.Request(e)
	if !ok {
		return dst
	}
	return p.jsonValue(dst, "request", &v)
}
