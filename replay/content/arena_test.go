// SPDX-License-Identifier: Apache-2.0

package content

import (
	"bytes"
	"testing"
)

// Content beyond what an arena has room for: what was taken of it before stays, and it does
// not keep the memory.
func TestArena(t *testing.T) {
	a := new(Arena)
	first := append(a.Room(100), "first"...)
	a.Bytes = first
	for i := range 50 {
		a.Bytes = append(a.Room(50_000), bytes.Repeat([]byte{byte(i)}, 50_000)...)
	}
	if used := a.Used(); string(first) != "first" || used < 50*50_000 {
		t.Errorf("the first part is %q, %d bytes are used, want first and %d at least", first, used, 50*50_000)
	}
	a.Reset()
	if a.Held() > keptBytes || len(a.Bytes) > 0 || a.Used() != 0 {
		t.Errorf("an empty arena keeps %d bytes, uses %d, want %d at most and none", a.Held(), a.Used(), keptBytes)
	}
}
