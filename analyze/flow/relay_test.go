// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

// values are kinds of content that servers store, each a value by its number.
var values = map[string]func(r *rand.Rand, k int) []byte{
	"random": func(r *rand.Rand, _ int) []byte { return noise(r, 300+r.IntN(4000)) },
	"log line, repeated": func(r *rand.Rand, k int) []byte {
		line := fmt.Sprintf("line %d of a log: level=info msg=\"request served\" status=%d\n", k, 200+k)
		return []byte(strings.Repeat(line, 10+r.IntN(40)))
	},
	"records that are alike": func(r *rand.Rand, k int) []byte {
		var b strings.Builder
		fmt.Fprintf(&b, `{"id": %d, "name": "user %d", "mail": "user%d@example.com", "tags": [`, k, k, k)
		for i := range 8 {
			fmt.Fprintf(&b, `{"tag": "t%d", "weight": %d}, `, i, r.IntN(1000))
		}
		b.WriteString(`"end"], "active": true, "address": {"street": "Main Street", "city": "Springfield"}}`)
		return []byte(b.String())
	},
	"zeros with a few words": func(r *rand.Rand, k int) []byte {
		page := make([]byte, 4096)
		copy(page, fmt.Sprintf("page %d of the table, with checksum %08x", k, r.Uint32()))
		copy(page[2048:], noise(r, 600))
		return page
	},
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// framings are ways to send a value.
var framings = map[string]func(k int, value []byte) [][]byte{
	"as it is": func(_ int, v []byte) [][]byte { return [][]byte{v} },
	"behind a header": func(k int, v []byte) [][]byte {
		return [][]byte{append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nETag: \"k%d\"\r\n\r\n",
			len(v), k), v...)}
	},
	"before a trailer": func(k int, v []byte) [][]byte {
		return [][]byte{fmt.Appendf(slices.Clone(v), "\r\nend of value %d, %d bytes\r\n", k, len(v))}
	},
	"in two parts": func(k int, v []byte) [][]byte {
		return [][]byte{append([]byte{byte(k), 0, 0, 1}, v[:len(v)/2]...), v[len(v)/2:]}
	},
}

// TestRelay has a server that reads values from a file and sends them, with one byte of one
// value changed, or none: one change is found, and nothing else.
func TestRelay(t *testing.T) {
	t.Parallel()
	for kind, value := range values {
		for framing, send := range framings {
			t.Run(kind+"/"+framing, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(6) {
					r := rand.New(rand.NewPCG(seed, 1))
					flip := -1 // no byte
					if seed%3 > 0 {
						flip = r.IntN(12)
					}
					m := &maker{t: t}
					m.tape("server", 0, true, relay(r, value, send, flip)...)
					f := load(t, nil, m.names...)
					want := int64(min(flip+1, 1))
					var got int64
					for _, n := range f.Numbers(nil) {
						if n.Name == "wrong" {
							got = n.Value
						}
					}
					if got != want {
						t.Errorf("seed %d, value %d changed: %d findings, want %d: %+v", seed, flip, got, want,
							wrong(f))
						continue
					}
					if flip >= 0 {
						x := f.Findings()[0]
						if x.Problem != flow.Changed || x.Diff.Differ != 1 {
							t.Errorf("seed %d: %s, want one byte that changed", seed, x.Text)
						}
					}
				}
			})
		}
	}
}

// relay is the calls of a server that reads 12 values and sends them, value flip with a byte
// changed.
func relay(r *rand.Rand, value func(*rand.Rand, int) []byte, send func(int, []byte) [][]byte, flip int) []call {
	place := func(v []byte) int { return []int{0, len(v) - 1, r.IntN(len(v))}[r.IntN(3)] }
	list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
	at, end := int64(2), int64(0)
	for k := range 12 {
		v := value(r, k)
		list = append(list, call{op: event.OpPread64, tid: 1, at: at, file: "/db", offset: end, content: string(v)})
		end += int64(len(v))
		sent := slices.Clone(v)
		if k == flip {
			sent[place(v)] ^= 0x20
		}
		for _, b := range send(k, sent) {
			at++
			list = append(list, call{op: event.OpSendto, tid: 1, at: at, file: fromB, content: string(b)})
		}
		at++
	}
	return list
}

func wrong(f *flow.Flow) (list []string) {
	for _, x := range f.Findings() {
		if x.Problem.Wrong() {
			list = append(list, x.Text)
		}
	}
	return list
}
