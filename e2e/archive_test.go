// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// collected is a collector's directory with streams of real recordings.
type collected struct {
	t                        *testing.T
	iotape, dir, data, store string
}

func newCollected(t *testing.T) *collected {
	t.Helper()
	dir := t.TempDir()
	return &collected{t, testenv.Iotape(t), dir, filepath.Join(dir, "data"), filepath.Join(dir, "store")}
}

// try runs iotape, which may fail.
func (c *collected) try(args ...string) (string, error) {
	cmd := exec.Command(c.iotape, args...)
	cmd.Dir = c.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *collected) run(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("iotape %q: %v\n%s", args, err, out)
	}
	return out
}

// record returns the stream of a recording, which is sealed as NAME.tape as well.
func (c *collected) record(name, script string) []byte {
	c.t.Helper()
	c.run("record", "--backend", "ptrace", "--keep-stream", "-o", name+".tape", "--no-index", "--", "sh", "-c", script)
	streams, err := filepath.Glob(filepath.Join(c.dir, "*.stream"))
	if err != nil || len(streams) != 1 {
		c.t.Fatalf("streams %q, %v", streams, err)
	}
	b, err := os.ReadFile(streams[0])
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// stage stages a stream that has ended.
func (c *collected) stage(host string, serial uint64, why staging.Reason, stream []byte) string {
	c.t.Helper()
	const boot = "2f5a6f2e-6f0b-4b2a-9d5e-0a1b2c3d4e5f"
	name := staging.StreamName{BootID: boot, StartNS: 1000, Serial: serial}.String()
	dir := staging.Dir(c.data, host, name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		c.t.Fatal(err)
	}
	now := time.Now().UnixNano()
	if err := os.WriteFile(filepath.Join(dir, staging.StreamFile), stream, 0o666); err != nil {
		c.t.Fatal(err)
	}
	for file, v := range map[string]any{
		staging.AboutFile: &staging.About{Version: 1, Host: host, Stream: name, BootID: boot, AgentStartNS: 1000, StartNS: now + int64(serial), Reason: staging.ReasonStart},
		staging.EndFile:   &staging.End{Version: 1, Reason: why, Complete: true, EndNS: now},
	} {
		if err := staging.WriteFile(filepath.Join(dir, file), staging.StreamParts, v); err != nil {
			c.t.Fatal(err)
		}
	}
	return name
}

// cut divides a stream between its frames.
func cut(t *testing.T, stream []byte, parts int) (list [][]byte) {
	t.Helper()
	var at []int
	for off := 0; off < len(stream); {
		f, err := trace.ParseFrame(stream[off:])
		if err != nil {
			t.Fatal(err)
		}
		off += trace.FrameHeaderBytes + int(f.Length)
		at = append(at, off)
	}
	if len(at) < parts {
		t.Fatalf("a stream of %d frames cannot be cut into %d", len(at), parts)
	}
	from := 0
	for i := 1; i <= parts; i++ {
		to := at[len(at)*i/parts-1]
		list = append(list, stream[from:to])
		from = to
	}
	return list
}

// TestArchiveJoins: streams whose frames go on become the tape that the whole would have
// been.
func TestArchiveJoins(t *testing.T) {
	testenv.Short(t, "it records and joins tapes")
	t.Parallel()
	c := newCollected(t)
	whole := c.record("whole", "for i in 1 2 3 4 5 6 7 8; do echo $i > f$i; sleep 0.05; cat f$i; done")
	parts := cut(t, whole, 4)
	for i, p := range parts {
		why := staging.ReasonAge
		if i == len(parts)-1 {
			why = staging.ReasonStop
		}
		c.stage("db7", uint64(i+1), why, p)
	}
	c.stage("web1", 1, staging.ReasonStop, []byte("garbage"))
	out, err := c.try("archive", "--data", c.data, "--to", c.store, "--catalogue", "cat", "--lake", "lake")
	if err == nil || !strings.Contains(out, "1 tape of 4 streams stored") ||
		!strings.Contains(out, "is quarantined in") {
		t.Fatalf("%v: %s", err, out)
	}
	got := strings.Fields(c.run("catalogue", "list", "--catalogue", "cat", "--csv", "--columns", "location"))
	if len(got) != 2 || !strings.Contains(got[1], "/host=db7/") {
		t.Fatalf("the catalogue has %q", got)
	}
	in := c.run("query", "--lake", "lake", "--csv", "SELECT location FROM summaries")
	if want := "location\n" + got[1] + "\n"; in != want {
		t.Errorf("the lake has %s, want %s", in, want)
	}
	c.run("check", got[1])
	// Where links lead is known where the recording was made, not where the archive is.
	const unlinked = "not path under /lib and not path under /usr/share"
	print := func(tape string) string { return c.run("print", "--filter", unlinked, tape) }
	if a, b := print(got[1]), print("whole.tape"); a != b {
		t.Errorf("the joined tape has other events:\n%s\nthan the whole:\n%s", a, b)
	}
	if stat := c.run("stat", got[1]); !strings.Contains(stat,
		"a part of what the agent on db7 recorded: it begins with agent start, and ends with agent stop") {
		t.Errorf("stat says\n%s", stat)
	}
	c.run("archive", "get", "--from", c.store, filepath.Base(got[1]), "-o", "back")
	c.run("check", filepath.Join("back", filepath.Base(got[1])))
	if list := c.run("archive", "list", c.store, "--json"); strings.Count(list, "\n") != 1 {
		t.Errorf("the archive has %s", list)
	}
	c.run("archive", "--to", c.store, "--keep", "1ns", "--dry-run", "--catalogue", "cat")
	c.run("check", got[1])
	c.run("archive", "--to", c.store, "--keep", "1ns", "--catalogue", "cat")
	if left := c.run("archive", "list", c.store); left != "0 tapes\n" {
		t.Errorf("left are %s", left)
	}
	if left := c.run("catalogue", "list", "--catalogue", "cat", "--json"); left != "" {
		t.Errorf("the catalogue still has %s", left)
	}
}

// TestArchiveKilled kills the archive at any time, again and again, while streams come: in
// the end each stream is in one tape, and each tape in the catalogue and in the lake once.
func TestArchiveKilled(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "starts a program many times")
	c := newCollected(t)
	stream := c.record("x", "echo x > f; cat f")
	args := []string{"archive", "--data", c.data, "--to", c.store, "--catalogue", "cat", "--lake", "lake"}
	want := map[string]int{}
	started := time.Now()
	c.stage("h0", 1, staging.ReasonStop, stream)
	c.run(args...)
	took := time.Since(started)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := 0
	for i := range 6 {
		for host := range 2 {
			h := fmt.Sprintf("h%d", host)
			want[h+"/"+c.stage(h, uint64(i+2), staging.ReasonStop, stream)]++
		}
		var log bytes.Buffer
		cmd := exec.Command(c.iotape, args...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(2*int64(took) + 1)))
		cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
	}
	c.run(args...)
	t.Logf("killed %d times", killed)
	got := map[string]int{}
	for _, line := range strings.Split(c.run("archive", "list", c.store), "\n") {
		if _, location, ok := strings.Cut(line, "host="); ok {
			host, name, _ := strings.Cut(location, "/")
			_, stream, _ := strings.Cut(strings.TrimSuffix(name, ".tape"), "Z-")
			got[host+"/"+stream]++
		}
	}
	for s := range want {
		if got[s] != 1 {
			t.Errorf("stream %s is in %d tapes", s, got[s])
		}
	}
	if len(got) != len(want)+1 {
		t.Errorf("%d tapes of %d streams", len(got), len(want)+1)
	}
	if n := strings.Count(c.run("catalogue", "list", "--catalogue", "cat", "--json"), "\n"); n != len(got) {
		t.Errorf("the catalogue has %d rows of %d tapes", n, len(got))
	}
	in := c.run("query", "--lake", "lake", "--csv", "SELECT count(*), count(DISTINCT tape_id) FROM summaries")
	if want := fmt.Sprintf("\n%d,%d\n", len(got), len(got)); !strings.HasSuffix(in, want) {
		t.Errorf("the lake has %s, want%s", in, want)
	}
	if out, err := c.try("catalogue", "check", "--catalogue", "cat"); err != nil {
		t.Error(out)
	}
	if left, err := staging.List(c.data); len(left) > 0 || err != nil {
		t.Errorf("%d streams are left, %v", len(left), err)
	}
}
