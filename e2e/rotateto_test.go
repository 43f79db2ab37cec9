// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestRotateTo divides a recording that goes through layers, to files and to a receiver: each part is a stream of its
// own, and the tapes of all are one recording.
func TestRotateTo(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records, seals and replays three times")
	const rounds = "20"
	e := runEnv(t)
	e.write(t, "script", longScript)
	t.Run("file", func(t *testing.T) {
		_, said := e.run(t, e.iotape, "record", "--backend", "ptrace", "--rotate", "200K", "--pipe", "zstd,checksum",
			"--to", "x.stream", "--", "sh", "script", rounds)
		streams, err := filepath.Glob(filepath.Join(e.dir, "x-*.stream"))
		last := "x-" + strconv.Itoa(len(streams)) + ".stream"
		if err != nil || len(streams) < 2 || !strings.Contains(said, "x-1.stream … "+last) {
			t.Fatalf("streams %q, %v, want 2 or more; it said\n%s", streams, err, said)
		}
		e.wholeOf(t, "x", streams)
	})
	t.Run("tape", func(t *testing.T) {
		e.run(t, e.iotape, "record", "--backend", "ptrace", "--rotate", "200K", "--pipe", "zstd", "-o", "y.tape", "--",
			"sh", "script", rounds)
		parts := e.parts(t, "y")
		if len(parts) < 2 {
			t.Fatalf("parts %q, want 2 or more", parts)
		}
		e.run(t, append([]string{e.iotape, "merge", "-o", "y.tape"}, parts...)...)
		e.run(t, e.iotape, "replay", "y.tape", "--into", "again-y", "--verify")
	})
	t.Run("receiver", func(t *testing.T) {
		got := t.TempDir()
		r := e.receive(t, "unix:"+filepath.Join(e.dir, "sock"), got)
		e.run(t, e.iotape, "record", "--backend", "ptrace", "--rotate", "200K", "--to", r.address, "--",
			"sh", "script", rounds)
		streams, err := filepath.Glob(filepath.Join(got, "*.stream"))
		if err != nil || len(streams) < 2 {
			t.Fatalf("streams %q, %v, want 2 or more", streams, err)
		}
		e.wholeOf(t, "z", streams)
	})
}

// wholeOf seals the streams of one recording, joins the tapes, and replays the result.
func (e *env) wholeOf(t *testing.T, name string, streams []string) {
	t.Helper()
	merge := []string{e.iotape, "merge", "-o", name + ".tape"}
	for i, s := range streams {
		part := name + "-part" + strconv.Itoa(i) + ".tape"
		e.run(t, e.iotape, "seal", "--no-index", s, "-o", part)
		merge = append(merge, part)
	}
	e.run(t, merge...)
	e.run(t, e.iotape, "replay", name+".tape", "--into", "again-"+name, "--verify")
}
