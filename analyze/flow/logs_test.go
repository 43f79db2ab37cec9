// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"fmt"
	"testing"

	"github.com/iotape/iotape/event"
)

// TestOwnLogs has two programs note what they do, line by line, in the same form: what differs in most of the
// lines is no damage of a replica. In a few of them it is.
func TestOwnLogs(t *testing.T) {
	for name, c := range map[string]struct {
		differs func(k int) bool
		want    string
	}{
		"all":  {func(int) bool { return true }, "wrong == 0"},
		"most": {func(k int) bool { return k%4 > 0 }, "wrong == 0"},
		"one":  {func(k int) bool { return k == 5 }, "differing == 1 and wrong == 1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &maker{t: t}
			for _, host := range []string{"a", "b"} {
				var list []call
				offset := int64(0)
				for k := range 12 {
					version := "1.1"
					if host == "b" && c.differs(k) {
						version = "1.0"
					}
					line := fmt.Sprintf("127.0.0.1 - - [30/Nov/2026:20:51:%02d +0000] \"GET /file%d HTTP/%s\" 200 %d "+
						"\"-\" \"curl/7.88.1\"\n", 10+k, k, version, k*k*7919+1000)
					list = append(list, call{op: event.OpWrite, tid: 1, at: int64(10 * (k + 1)), file: "/log/" + host,
						open: 6, offset: offset, content: line})
					offset += int64(len(line))
				}
				m.tape(host, 0, true, list...)
			}
			expect(t, load(t, nil, m.names...), nil, c.want)
		})
	}
}
