// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/iotape/iotape/analyze/report"
)

// What the layers are measured with. These keys protect nothing: nobody has the secret
// one of the recipient.
const (
	benchRecipient = "age13mmw0eq72z4ec4ywr4yz5mqgntzkp78lxkv3hna0hk4vlpwl6axq7k4vpz"
	benchKey       = "IOTAPE-CHECKSUM-KEY-C95FC5739DD41FF7C1223ADD46DD3DC2F35B0005DE09B82EE9BE3A614A3F6E0D"
)

// layers are the ways of a recording through a chain of layers, with what the Tracefs
// paper (FAST '04, §5) adds to a C build for the same.
var layers = []struct{ name, title, chain, published string }{
	{"layers-none", "no layers: blocks alone", "none", "+1.7 % (base)"},
	{"layers-checksum", "keyed BLAKE3 per block", "checksum:env:BENCH_KEY", "+0.7 %"},
	{"layers-zstd", "zstd, level 3", "zstd:3", "+1.3 % (compress)"},
	{"layers-s2", "s2", "s2", ""},
	{"layers-encrypt", "AES-256-GCM", "encrypt:" + benchRecipient, "+2.7 %"},
	{"layers-all", "zstd, encryption, checksum", "zstd:3,encrypt:" + benchRecipient + ",checksum:env:BENCH_KEY", "5.3 % (all)"},
	{"layers-async", "the same behind a queue", "async,zstd:3,encrypt:" + benchRecipient + ",checksum:env:BENCH_KEY", ""},
}

// said is where the recorder's last words are.
const said = "said"

func layerWays() []*Way {
	var ways []*Way
	for _, l := range layers {
		ways = append(ways, &Way{Name: l.name, Title: "iotape, all content, to a file through: " + l.title,
			kind: layered, lost: saidLost,
			wrap: func(t *tools, out string, argv []string) []string {
				const script = `exec "$@" 2>"$0"` // stays one process, whose CPU time is measured
				return append([]string{"env", "BENCH_KEY=" + benchKey, "sh", "-c", script, filepath.Join(out, said),
					t.iotape, "record", "--backend", "ebpf", "--to", filepath.Join(out, streamName), "--pipe", l.chain, "--"}, argv...)
			}})
	}
	return ways
}

var saidLine = regexp.MustCompile(`calls, (?:lost|LOST) ([0-9,]+);`)

// saidLost reads what the recorder said of losses.
func saidLost(_ context.Context, out string) (uint64, error) {
	b, err := os.ReadFile(filepath.Join(out, said))
	if err != nil {
		return 0, err
	}
	m := saidLine.FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("it said %q", lastLine(b))
	}
	n, err := strconv.ParseUint(string(m[1]), 10, 64)
	if err != nil || n > 0 {
		return n, fmt.Errorf("lost %s records", m[1])
	}
	return 0, nil
}

// layerTable compares the layers: each to a recording without any.
func (r *Report) layerTable() *table {
	t := &table{title: "What layers cost",
		text: "Time of the command through each chain, as a ratio to the untraced run of the same round: median " +
			"(least–greatest); and the CPU time of the recorder meanwhile, " +
			"which other programs on the machine change less. Published is what the Tracefs paper adds to the time " +
			"of a C build.",
		left: 2, head: []string{"workload", "layers", "time", "recorder's CPU", "CPU of both", "stream", "published"}}
	for _, base := range r.workloads(false) {
		for _, l := range layers {
			s := r.find(base.Workload, l.name, false)
			if s == nil {
				continue
			}
			t.add(base.Workload, l.title, s.ratio(), duration(s.Recorder.Median), s.cpu(),
				report.Bytes(uint64(s.Stream.Median)), text(l.published))
		}
	}
	return t
}
