// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

// TestLossReasons: each loss is in the stream once, under its own reason.
func TestLossReasons(t *testing.T) {
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Backend: name, Arch: "amd64", Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	p := &programs{shared: &bpf.Common{}}
	p.rings = []*ring{{}}
	d := &drain{p: p, sw: sw, spans: make([][]span, 1)}
	p.shared.Untracked = 1
	d.countLosses()
	d.countLosses()
	p.shared.Untracked, p.shared.Pages, p.shared.Requests, p.shared.Lost[0], p.shared.Unwritten = 3, 5, 7, 11, 13
	d.countLosses()
	d.writeSpans(0, p.rings[0])
	if err := sw.Close(&trace.End{}); err != nil {
		t.Fatal(err)
	}
	r := decode(t, b.Bytes())
	got := map[string]uint64{"in frames": r.lost}
	for _, x := range r.of(trace.RecLoss) {
		got[trace.LossReason(x.Reason)] += x.Count
	}
	want := map[string]uint64{"in frames": 11, "too many threads": 3,
		"pages of mapped files could not be looked up": 5, "too many requests to io_uring at once": 7, "the ring was locked for too long": 13}
	if fmt.Sprint(got) != fmt.Sprint(want) || d.lost != 3+5+7+11+13 {
		t.Errorf("%d lost: %v, want 39: %v", d.lost, got, want)
	}
}
