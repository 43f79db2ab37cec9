// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"fmt"
	"testing"

	"github.com/iotape/iotape/trace"
)

func BenchmarkContent(b *testing.B) {
	for _, mode := range []trace.AnonymisedContent{trace.ContentEncrypted, trace.ContentSubstituted} {
		m, _ := mappers(1<<Content, &trace.Anonymised{Content: mode})
		for _, size := range []int{16, 64, trace.ChunkBytes} {
			b.Run(fmt.Sprintf("%s/size=%d", mode, size), func(b *testing.B) {
				data := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					m.bytesAt(data, 0)
				}
			})
		}
	}
}

func BenchmarkPath(b *testing.B) {
	for _, known := range []bool{true, false} {
		m, _ := mappers(1<<Path, &trace.Anonymised{})
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !known {
					clear(m.paths)
					clear(m.names)
				}
				m.path("/home/alice/src/project/main.go")
			}
		})
	}
}
