// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// BenchmarkCall times 4 KiB pwrite and pread on a file in memory, and lseek,
// as the recorded program sees them.
func BenchmarkCall(b *testing.B) {
	need(b)
	loop := build(b, "loop")
	dir := shm(b)
	const calls = 300_000
	argv := []string{loop, filepath.Join(dir, "file"), strconv.Itoa(calls)}
	report := func(b *testing.B, out []byte) {
		var w, r, s float64
		if _, err := fmt.Sscan(string(out), &w, &r, &s); err != nil {
			b.Fatalf("%q: %v", out, err)
		}
		b.ReportMetric(w, "ns/pwrite")
		b.ReportMetric(r, "ns/pread")
		b.ReportMetric(s, "ns/lseek")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("capture=off", func(b *testing.B) {
		for range b.N {
			out, err := exec.Command(argv[0], argv[1:]...).Output()
			if err != nil {
				b.Fatal(err)
			}
			report(b, out)
		}
	})
	for _, sink := range []string{"discard", "file"} {
		for _, content := range []capture.Content{capture.Everywhere(capture.KeepNone), {}} {
			b.Run(fmt.Sprintf("capture=%s/to=%s", content, sink), func(b *testing.B) {
				for range b.N {
					report(b, timed(b, content, sink, argv))
				}
			})
		}
	}
}

func timed(b *testing.B, content capture.Content, sink string, argv []string) []byte {
	var w io.Writer = io.Discard
	if sink == "file" {
		f, err := os.Create(filepath.Join(b.TempDir(), "stream"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		w = f
	}
	pr, pw, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	o := &capture.Options{Command: argv, Content: content, Stdout: pw}
	sw, err := trace.NewStreamWriter(w, 1, &trace.Head{Shards: Shards(o)})
	if err != nil {
		b.Fatal(err)
	}
	res, err := Backend{}.Run(context.Background(), o, sw)
	if err != nil {
		b.Fatal(err)
	}
	if res.Lost != 0 || res.ExitStatus != 0 {
		b.Fatalf("result %+v", res)
	}
	if res.Stops > 0 {
		b.ReportMetric(float64(res.Stops), "stops")
	}
	pw.Close()
	out, err := io.ReadAll(pr)
	pr.Close()
	if err != nil {
		b.Fatal(err)
	}
	return out
}
