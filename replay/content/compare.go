// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"fmt"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// FirstDifference describes where two buffers that differ do so first.
func FirstDifference(want, got []byte) (string, string) {
	if len(want) != len(got) {
		return fmt.Sprintf("%d bytes", len(want)), fmt.Sprintf("%d bytes", len(got))
	}
	i := 0
	for want[i] == got[i] {
		i++
	}
	show := func(b []byte) string { return fmt.Sprintf("%q at byte %d", b[i:min(len(b), i+16)], i) }
	return show(want), show(got)
}

// CompareSums is FirstDifference for what is known by its sums. The bytes that there should be
// are taken out of the tape only if they differ.
func CompareSums(t *trace.Tape, sums []ChunkSum, bytesGot []byte) (want, got string, differ bool) {
	if Same(sums, bytesGot) {
		return "", "", false
	}
	b := event.Buf{}
	for i := range sums {
		b.Refs = append(b.Refs, sums[i].Ref)
		b.Len += int64(sums[i].Ref.Len)
	}
	if b.Len != int64(len(bytesGot)) {
		return fmt.Sprintf("%d bytes", b.Len), fmt.Sprintf("%d bytes", len(bytesGot)), true
	}
	data, err := t.Content(&b, nil)
	if err != nil || bytes.Equal(data, bytesGot) {
		return "what the tape has", "other bytes", true
	}
	want, got = FirstDifference(data, bytesGot)
	return want, got, true
}
