// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
)

// manyTests returns a filter of n predicates about different things, which are joined by
// a word and all have the same result for benchEvent.
func manyTests(n int, word string, hold bool) string {
	kinds := []string{
		"uid %s %d", "pid %s %d", "count %s %d", "offset %s %d", "latency %s %dns", "result %s %d", "size %s %d", "ino %s %d", "fd %s %d",
	}
	var parts []string
	for i := range n {
		if i%10 == 9 {
			test := `not path.startsWith("/no%d/")`
			if !hold {
				test = `path.startsWith("/no%d/")`
			}
			parts = append(parts, fmt.Sprintf(test, i))
			continue
		}
		rel := "!="
		if !hold {
			rel = "="
		}
		parts = append(parts, fmt.Sprintf(kinds[i%10], rel, 100000+i))
	}
	return strings.Join(parts, word)
}

var benchEvent = event.Event{
	Op: event.OpPread64, PID: 10, TID: 11, UID: 1000, Comm: "rocksdb:low", Enter: 5e9, Exit: 5e9 + 2e6, Ret: 4096, Count: 8192, Offset: 1 << 30,
	Files: []event.File{{FD: 7, Open: 3, Known: true, Ino: 77, Mode: 0o100644, Size: 1 << 33, Path: "/var/lib/db/000012.sst"}},
}

func BenchmarkMatch(b *testing.B) {
	filters := map[string]string{
		"op":          "op in {read, pread64, write}",
		"path glob":   "path glob *.sst",
		"path regexp": `path matches /\/db\/[0-9]+\.sst$/`,
		"descendant":  "descendant of 10",
	}
	for _, n := range []int{1, 10, 50} {
		filters[fmt.Sprintf("%d true", n)] = manyTests(n, " and ", true)
		filters[fmt.Sprintf("%d false", n)] = manyTests(n, " or ", false)
	}
	for name, src := range filters {
		b.Run(name, func(b *testing.B) {
			g, err := New(src, nil)
			if err != nil {
				b.Fatal(err)
			}
			m := g.NewMatcher()
			ev := benchEvent
			b.ReportAllocs()
			for b.Loop() {
				m.Match(&ev)
			}
		})
	}
}
