// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
)

// The messages of OTLP that are used, as JSON (opentelemetry-proto, trace/v1 and
// common/v1): 64-bit numbers are strings, ids hexadecimal.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	span struct {
		TraceID    traceID     `json:"traceId"`
		SpanID     spanID      `json:"spanId"`
		Parent     *spanID     `json:"parentSpanId,omitempty"`
		Name       string      `json:"name"`
		Kind       int         `json:"kind"`
		Start      nanoseconds `json:"startTimeUnixNano"`
		End        nanoseconds `json:"endTimeUnixNano"`
		Attributes []attribute `json:"attributes"`
		Status     *status     `json:"status,omitempty"`
	}
	status struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    *number `json:"intValue,omitempty"`
		Array  *array  `json:"arrayValue,omitempty"`
	}
	array struct {
		Values []value `json:"values"`
	}
)

const (
	kindInternal = 1
	statusError  = 2
)

type (
	traceID     [16]byte
	spanID      [8]byte
	number      int64
	nanoseconds uint64
)

func (id traceID) MarshalJSON() ([]byte, error) { return json.Marshal(hex.EncodeToString(id[:])) }
func (id spanID) MarshalJSON() ([]byte, error)  { return json.Marshal(hex.EncodeToString(id[:])) }
func (n number) MarshalJSON() ([]byte, error) {
	return json.Marshal(strconv.FormatInt(int64(n), 10))
}
func (n nanoseconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(strconv.FormatUint(uint64(n), 10))
}

// text makes a string attribute. Bytes that are no UTF-8, which OTLP cannot hold, are
// replaced.
func text(key, s string) attribute { return attribute{key, stringValue(s)} }

func stringValue(s string) value {
	s = strings.ToValidUTF8(s, "\ufffd")
	return value{String: &s}
}

func integer(key string, n int64) attribute {
	v := number(n)
	return attribute{key, value{Int: &v}}
}

func list(key string, all []string) attribute {
	a := &array{Values: []value{}}
	for _, s := range all {
		a.Values = append(a.Values, stringValue(s))
	}
	return attribute{key, value{Array: a}}
}
