// SPDX-License-Identifier: Apache-2.0

package stracetext

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// Content that the policy kept in part or as hashes.
func TestKeptInPart(t *testing.T) {
	head := withBuf(call(event.OpWrite, 100, 4, 0x7000, 100), 1, "the first")
	head.Bufs[0].Len, head.Bufs[0].Omitted = 100, true
	hashed := call(event.OpRead, 70000, 4, 0x7000, 70000)
	hashed.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Dir: event.Out, Len: 70000, Missing: 4464, Omitted: true,
		Hashes: []event.Digest{{1, 2, 31: 3}, {}}}}
	many := call(event.OpRead, 1<<20, 4, 0x7000, 1<<20)
	many.Bufs = []event.Buf{{Arg: 1, Kind: event.KindBuf, Dir: event.Out, Len: 1 << 20, Omitted: true,
		Hashes: slices.Repeat([]event.Digest{{9}}, 16)}}

	short, long := New(&Options{}), New(&Options{Verbose: true})
	for _, tt := range []struct {
		p    *Printer
		e    *event.Event
		want string
	}{
		{short, &head, `write(4, "the first"..., 100) = 100`},
		{short, &hashed, `read(4, [blake3:0102000000000000..., blake3:?], 70000) = 70000`},
		{long, &hashed, `[blake3:0102` + strings.Repeat("0", 58) + `03, blake3:?]`},
		{short, &many, `blake3:0900000000000000..., ...], 1048576)`},
	} {
		if got := string(tt.p.Append(nil, tt.e)); !strings.Contains(got, tt.want) {
			t.Errorf("no %s in %s", tt.want, got)
		}
	}
	if n := strings.Count(string(long.Append(nil, &many)), "blake3:"); n != 16 {
		t.Errorf("%d hashes of 16", n)
	}

	type buf struct {
		Data         *string
		Cut, Omitted bool
		Hashes       []string
	}
	var r struct{ Args struct{ Buf buf } }
	if err := json.Unmarshal(short.AppendJSON(nil, &hashed), &r); err != nil {
		t.Fatal(err)
	}
	if b := r.Args.Buf; len(b.Hashes) != 2 || b.Hashes[0] != "blake3:0102"+strings.Repeat("0", 58)+"03" ||
		b.Hashes[1] != "blake3:?" || !b.Omitted || b.Data != nil {
		t.Errorf("JSON: %+v", b)
	}
	r.Args.Buf = buf{}
	if err := json.Unmarshal(short.AppendJSON(nil, &head), &r); err != nil {
		t.Fatal(err)
	}
	if b := r.Args.Buf; b.Data == nil || *b.Data != "the first" || !b.Cut || !b.Omitted || b.Hashes != nil {
		t.Errorf("JSON: %+v", b)
	}
}
