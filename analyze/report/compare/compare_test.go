// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/analyze/report/compare"
)

var update = flag.Bool("update", false, "write the golden files")

// comparison is of one recording that was replayed three times on two file systems.
func comparison() *compare.Comparison {
	side := func(ms int64, p50 int64) compare.Side {
		return compare.Side{ElapsedNS: ms * 1e6, UserNS: ms * 1e5, SystemNS: ms * 5e5, Ops: []compare.Op{
			{Op: "pwrite64", Count: 1000, Bytes: 4096000, TotalNS: 1000 * p50, P50NS: p50, P95NS: 2 * p50, P99NS: 3 * p50, MaxNS: 90 * p50},
			{Op: "fsync", Count: 3, TotalNS: 3e6, P50NS: 1e6, P95NS: 1e6, P99NS: 1e6, MaxNS: 1e6},
		}, Rate: &compare.Series{BinNS: ms * 1e5, Bytes: []int64{0, 2048000, 0, 0, 1024000, 1024000, 0, 0, 0, 0}}}
	}
	run := func(ms int64) compare.Run {
		return compare.Run{Side: side(ms, 50*ms), SyncNS: 2e6, SpaceBytes: 5 << 20, Calls: 1003,
			Modelled: 7, Checked: true, Paths: 4}
	}
	c := &compare.Comparison{Title: "db_bench --n 5", Lines: []string{"1,010 events"}, Recorded: side(10, 700),
		Targets: []compare.Target{
			{Name: "ext4", Runs: []compare.Run{run(20), run(15), run(90)}},
			{Name: "xfs", Runs: []compare.Run{run(12), run(11), run(13)}},
		}}
	c.Recorded.UserNS, c.Recorded.SystemNS = 0, 0
	bad := &c.Targets[1].Runs[0]
	bad.Different, bad.Uncompared = 2, 3
	bad.Mismatches = []compare.Difference{{Event: 17, Thread: 5, What: "pwrite64: result", Path: "/db/a",
		Want: "4096", Got: "ENOSPC"}}
	bad.Tree = []compare.Difference{{Path: "db/a", What: "size", Want: "4096000", Got: "0"}}
	bad.Problems = []string{"xattr user: operation not supported: db/a and 3 more"}
	return c
}

func TestGolden(t *testing.T) {
	c := comparison()
	if c.OK() {
		t.Error("a run differs, and OK says no")
	}
	for name, render := range map[string]func(*bytes.Buffer) error{
		"compare.txt":  func(b *bytes.Buffer) error { return c.Page().Text(b) },
		"compare.json": func(b *bytes.Buffer) error { return c.Page().JSON(b) },
		"compare.html": func(b *bytes.Buffer) error { return c.Page().HTML(b, nil) },
	} {
		var b bytes.Buffer
		if err := render(&b); err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), want) {
			t.Errorf("%s differs: go test -update, and look at the difference", golden)
		}
	}
}

// The bytes of a series are all in its curve, whatever the steps are.
func TestRate(t *testing.T) {
	for _, step := range []int64{1, 7, 100, 1000} {
		c := &compare.Comparison{Recorded: compare.Side{Rate: &compare.Series{BinNS: 100, Bytes: []int64{5, 0, 20}}}}
		sum := 0.0
		for _, v := range c.Recorded.Rate.Over(step) {
			sum += v * float64(step) / 1e9
		}
		if sum < 24.99 || sum > 25.01 {
			t.Errorf("step %d: %v bytes", step, sum)
		}
	}
}
