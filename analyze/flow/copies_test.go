// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/iotape/iotape/model/similar"
)

// catWrites is a log of CAT with the signature of a block that three servers receive and store,
// each with the signature of what it really writes.
func catWrites(stored [3]int) string {
	signature := func(of int) (sig similar.CATSignature) {
		for i := range sig {
			sig[i] = uint64(of*1000 + i + 1)
		}
		return sig
	}
	var b strings.Builder
	line := func(at int, format string, of int, args ...any) {
		sig, _ := json.Marshal(signature(of))
		fmt.Fprintf(&b, `{"timestamp":%d,"data":{"host":"x","comm":"java","signature":%s},`+format+"}\n",
			append([]any{at, string(sig)}, args...)...)
	}
	for i, of := range stored {
		host := fmt.Sprintf("dn%d", i+1)
		line(100+10*i, `"type":"RCV","thread":"%d@%s","pid":%d,"src":"10.0.0.9","src_port":%d,"dst":"10.0.0.%d",`+
			`"dst_port":50010,"socket":"s%d","socket_type":"TCP","size":4096,"returned_value":4096`, 1,
			i+1, host, i+1, 4000+i, i+1, i)
		line(101+10*i, `"type":"WR","thread":"%d@%s","pid":%d,"size":4096,"returned_value":4096,`+
			`"filename":"/hdfs/%s/blk_1","fd":3`, of, i+1, host, i+1, host)
	}
	return b.String()
}

// TestSignedCopies has three servers that store one block, known by signatures only. A copy that
// is unlike the others, and unlike all that its server received, is found.
func TestSignedCopies(t *testing.T) {
	for _, c := range []struct {
		name   string
		stored [3]int
		want   string
	}{
		{"all alike", [3]int{1, 1, 1}, "replicas == 3 and differing == 0 and unmatched == 0 and wrong == 0"},
		{"the second differs", [3]int{1, 2, 1}, "replicas == 2 and differing == 1 and unmatched == 1 and wrong == 1"},
		{"the first differs", [3]int{3, 1, 1}, "replicas == 2 and differing == 1 and unmatched == 1 and wrong == 1"},
		{"all differ", [3]int{3, 4, 5}, "replicas == 1 and differing == 0 and unmatched == 3 and wrong == 0"},
	} {
		f := loadLog(t, catWrites(c.stored))
		t.Log(c.name)
		expect(t, f, nil, c.want)
		if strings.Contains(c.want, "differing == 1") {
			odd := 1
			if c.stored[0] == 3 {
				odd = 0
			}
			if x := f.Findings()[0]; !strings.Contains(x.Text, fmt.Sprintf("/hdfs/dn%d/blk_1 is not like", odd+1)) {
				t.Errorf("%s: %s", c.name, x.Text)
			}
		}
	}
}
