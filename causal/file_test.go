// SPDX-License-Identifier: Apache-2.0

package causal

import (
	"fmt"
	"testing"

	"github.com/iotape/iotape/event"
)

// access is an access of a line to bytes of file 5.
func access(op event.Op, off, n int64) *event.Event {
	ev := &event.Event{Op: op, Offset: off, Count: n, Ret: n}
	ev.Files = []event.File{{Known: true, Dev: 1, Ino: 5, Mode: event.TypeRegular, Size: off + n}}
	return ev
}

// Threads that each have their own blocks of one file do not wait for each other, however
// many there are; who reads a block waits for who wrote it, and for nobody else.
func TestBlocksOfOneFile(t *testing.T) {
	const threads, blocks = 4, 4000
	for _, size := range []int64{4096, 64 << 10, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			edges := map[int][]int{}
			f := newFiles(func(to, from int, _ Reason) { edges[to] = append(edges[to], from) })
			for i := range blocks {
				f.see(i, uint32(i%threads), access(event.OpPwrite64, int64(i)*size, size))
			}
			if len(edges) > 0 {
				t.Fatalf("%d of the writes wait for others", len(edges))
			}
			for i := range blocks {
				f.see(blocks+i, uint32((i+1)%threads), access(event.OpPread64, int64(i)*size, size))
				for _, from := range edges[blocks+i] {
					if from != i {
						t.Fatalf("the read of block %d waits for %v", i, edges[blocks+i])
					}
				}
				if len(edges[blocks+i]) == 0 {
					t.Fatalf("the read of block %d waits for nobody", i)
				}
			}
			cut := &event.Event{Op: event.OpFtruncate, Files: access(event.OpPread64, 0, 0).Files}
			f.see(2*blocks, 9, cut)
			if len(edges[2*blocks]) < blocks {
				t.Errorf("the cut waits for %d reads, of %d", len(edges[2*blocks]), blocks)
			}
			if u := f.bytes[inode{0, 1, 5}]; f.spans != 1 || len(u.parts) != 0 || len(u.head.spans) != 0 {
				t.Errorf("%d accesses to what was cut are kept", f.spans)
			}
			f.see(2*blocks+1, 0, access(event.OpPread64, size, size))
			if len(edges[2*blocks+1]) != 1 || edges[2*blocks+1][0] != 2*blocks {
				t.Errorf("what is read after the cut waits for %v", edges[2*blocks+1])
			}
		})
	}
}

// Who uses a name waits for who made, removed or renamed it, also where that was a request to io_uring, and where one
// of the names leads through a symbolic link.
func TestNames(t *testing.T) {
	path := event.Path{Raw: "l/f", Abs: "/l/f", Real: "/d/f"}
	for _, tt := range []struct {
		name   string
		change event.Event
	}{
		{"mkdir", event.Event{Op: event.OpMkdir, Paths: []event.Path{path}}},
		{"a request of mkdirat", event.Event{Op: event.OpUringMkdirat, Paths: []event.Path{path}}},
		{"a request of renameat", event.Event{Op: event.OpUringRenameat,
			Paths: []event.Path{{Raw: "x", Abs: "/x"}, path}}},
		{"a request of openat", event.Event{Op: event.OpUringOpenat, Args: [6]uint64{2: event.OpenCreat | event.OpenExcl},
			Paths: []event.Path{path}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var edges [][2]int
			f := newFiles(func(to, from int, _ Reason) { edges = append(edges, [2]int{to, from}) })
			f.see(0, 1, &tt.change)
			f.see(1, 2, &event.Event{Op: event.OpStat, Paths: []event.Path{{Raw: "/d/f", Abs: "/d/f"}}})
			if len(edges) == 0 || edges[0] != [2]int{1, 0} {
				t.Errorf("want the stat to wait for the change, got %v", edges)
			}
		})
	}
}
