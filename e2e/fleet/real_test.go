// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestRealAgents: five agents that record real programs with eBPF, to a collector that is
// killed meanwhile. Three record a command: every write of it is in the staged streams once,
// or declared lost. Of two that record what runs already, one is killed, with its machine as
// far as it can see, before there is a collector, and the other is upgraded in place. What
// each was handed is stored or declared lost, and the archive makes tapes of it, as long as
// the recordings were.
func TestRealAgents(t *testing.T) {
	testenv.Short(t, "it runs agents and programs for a while")
	t.Parallel()
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "dd")
	w := newWorld(t, 0, 0, "")
	const commands, writes = 3, 1000
	const small = "[stream]\nsize = \"64K\"\n" // so that recordings go on from stream to stream
	var configs []string
	for i := range commands {
		file := filepath.Join(w.dir, fmt.Sprintf("written%d", i))
		configs = append(configs, w.enrol(fmt.Sprintf("real%d", i), w.agents,
			fmt.Sprintf("%s[record]\ncommand = [\"/bin/sh\", \"-c\", \"dd if=/dev/zero of=%s bs=777 count=%d "+
				"2>/dev/null; sleep 1; cat %s >/dev/null\"]\n", small, file, writes, file)))
	}
	writer := func(host string) string {
		p := w.start(w.there, "/bin/sh", "-c",
			fmt.Sprintf("while :; do dd if=/dev/zero of=%s bs=777 count=50 2>/dev/null; sleep 0.1; done",
				filepath.Join(w.dir, host)))
		return w.enrol(host, w.agents, fmt.Sprintf("%s[record]\npids = [%d]\n", small, p.cmd.Process.Pid))
	}
	rebooted, upgraded := writer("rebooted"), writer("upgraded")
	path := filepath.Join(w.dir, "iotape-agent")
	replace := func(ldflags string) {
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", ldflags, "-o", path+".new",
			"github.com/iotape/iotape/cmd/iotape-agent")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the agent: %v: %s", err, out)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	replace("-X github.com/iotape/iotape/internal/buildinfo.revision=old")

	first := w.start(w.there, path, "--config", rebooted)
	w.hands("rebooted", 500)
	first.kill()
	c := w.collect()
	second := w.start(w.there, path, "--config", rebooted, "--boot-id", "00000000-1111-2222-3333-444444444444")
	old := w.start(w.there, path, "--config", upgraded)
	var agents []*program
	for _, config := range configs {
		agents = append(agents, w.start(w.there, path, "--config", config))
	}
	w.hands("upgraded", 500)
	c.kill()
	replace("-X github.com/iotape/iotape/internal/buildinfo.revision=new") // under the running ones
	c = w.collect()
	if err := old.stop(); err != nil {
		t.Errorf("the agent that is upgraded: %v", err)
	}
	handed := w.handed("upgraded")
	young := w.start(w.there, path, "--config", upgraded)
	for i, a := range agents {
		if <-a.done; a.err != nil {
			t.Errorf("agent %d: %v", i, a.err)
		}
	}
	w.hands("upgraded", handed+500)
	for _, a := range []*program{second, young} {
		if err := a.stop(); err != nil {
			t.Errorf("an agent: %v", err)
		}
	}
	// What an agent could not send before it ended is in its spool; another run sends it.
	for i, config := range append(configs, rebooted, upgraded) {
		for try := 0; spoolBytes(t, w.spool(w.hosts[i])) > 0 && try < 10; try++ {
			b, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			text, _, _ := strings.Cut(string(b), "[record]")
			if err := os.WriteFile(config, []byte(text+"[record]\ncommand = [\"/bin/true\"]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			<-w.start(w.there, path, "--config", config).done
		}
	}
	w.settled()
	if err := c.stop(); err != nil {
		t.Errorf("the collector: %v", err)
	}
	w.realBalance(commands, writes)
	reasons := w.reasons()
	if reasons[staging.ReasonReboot] != 1 || reasons[staging.ReasonSize] < 5 {
		t.Errorf("streams ended so: %v", reasons)
	}
	recordings := w.recordings()
	out, err := exec.Command(testenv.Iotape(t), "archive", "--data", w.data, "--to", filepath.Join(w.dir, "tapes"),
		"--settle", "-1s").CombinedOutput()
	if err != nil {
		t.Fatalf("archive: %v: %s", err, out)
	}
	tapes, err := filepath.Glob(filepath.Join(w.dir, "tapes", "*", "*", "*.tape"))
	if err != nil || len(tapes) != recordings {
		t.Errorf("%d recordings became %d tapes, %v: %s", recordings, len(tapes), err, out)
	}
	for _, tape := range tapes {
		if out, err := exec.Command(testenv.Iotape(t), "check", tape).CombinedOutput(); err != nil {
			t.Errorf("check: %v: %s", err, out)
		}
	}
}

// handed returns how many events a host's agents were handed.
func (w *world) handed(host string) uint64 {
	w.t.Helper()
	ledger, err := spool.OpenLedger(w.spool(host))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer ledger.Close()
	return ledger.Handed()
}

// hands waits until a host's agents were handed so many events.
func (w *world) hands(host string, events uint64) {
	w.t.Helper()
	w.wait(fmt.Sprintf("%d events are handed to the agent of %s", events, host), func() (string, bool) {
		n := w.handed(host)
		return fmt.Sprint(n), n >= events
	})
}

// recordings counts those that the staged streams are of: streams that go on from another
// are no others.
func (w *world) recordings() (n int) {
	w.t.Helper()
	streams, err := staging.List(w.data)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range streams {
		if !s.About.Continues {
			n++
		}
	}
	return n
}

// realBalance compares what real agents were handed with what is stored, and the writes of
// the first hosts, which are known, with those that are.
func (w *world) realBalance(commands, writes int) {
	t := w.t
	t.Helper()
	streams, err := staging.List(w.data)
	if err != nil {
		t.Fatal(err)
	}
	stored, records, lost, versions := map[string]int{}, map[string]uint64{}, map[string]uint64{}, map[string]bool{}
	for i := range streams {
		s := &streams[i]
		n, all := countWrites(t, s, 777)
		stored[s.About.Host] += n
		records[s.About.Host] += all
		lost[s.About.Host] += s.End.Lost()
		if all != s.End.Events {
			t.Errorf("%s has %d records, and its end says %d", s.Dir, all, s.End.Events)
		}
		if s.About.Host == "upgraded" {
			versions[s.About.AgentVersion] = true
		}
	}
	for i, host := range w.hosts {
		handed := w.handed(host)
		t.Logf("balance, %s: its agents were handed %d records = %d stored + %d declared lost; %d writes are stored",
			host, handed, records[host], lost[host], stored[host])
		if handed != records[host]+lost[host] || handed == 0 {
			t.Errorf("%s: %d records are missing", host, int64(handed)-int64(records[host]+lost[host]))
		}
		if missing := writes - stored[host]; i < commands && (missing < 0 || uint64(missing) > lost[host]) {
			t.Errorf("%s: %d writes of %d are stored, and %d records are declared lost", host, stored[host], writes,
				lost[host])
		}
	}
	if len(versions) != 2 {
		t.Errorf("the agent that was upgraded is of versions %v", versions)
	}
}

func spoolBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		n += fi.Size()
	}
	return n
}

// countWrites counts the records of a stream, and its writes of so many bytes.
func countWrites(t *testing.T, s *staging.Stream, size int64) (writes int, records uint64) {
	t.Helper()
	in, err := os.Open(s.File())
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var r trace.Record
	for fr := trace.NewFrameReader(bufio.NewReader(in)); ; {
		f, payload, err := fr.Next()
		if errors.Is(err, io.EOF) {
			return writes, records
		}
		if err != nil {
			t.Fatalf("%s: %v", s.Dir, err)
		}
		if f.Kind != trace.FrameRecords {
			continue
		}
		for body, err := range trace.Records(payload) {
			if err == nil {
				err = r.Decode(body)
			}
			if err != nil {
				t.Fatalf("%s: %v", s.Dir, err)
			}
			records++
			if r.Type == trace.RecCall && r.Op == uint16(event.OpWrite) && r.Ret == size {
				writes++
			}
		}
	}
}

// TestBrokerLost: one of three brokers of a cluster is killed, and comes back.
func TestBrokerLost(t *testing.T) {
	testenv.Short(t, "it runs a cluster of brokers")
	t.Parallel()
	w := newWorld(t, 0, 0, "")
	names := []string{"a", "b", "c"}
	address := func(i, port int) string { return fmt.Sprintf("10.77.0.1:%d", port+i) }
	// All brokers know all keys; the agents, all brokers.
	var all []string
	for i := range names {
		all = append(all, "nats://"+address(i, 4230))
	}
	secret := w.collectorKey()
	for i := range 10 {
		host := fmt.Sprintf("h%d", i)
		config := w.enrol(host, w.agents, "[record]\nsynthetic = \"rate=200,size=100\"\n")
		b, err := os.ReadFile(config)
		if err == nil {
			text := strings.Replace(string(b), "collectors = [\"nats://10.77.0.1:4222\"]",
				"collectors = [\""+strings.Join(all, "\", \"")+"\"]", 1)
			err = os.WriteFile(config, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dirs := make([]string, len(names))
	for i := range names {
		dirs[i] = filepath.Join(w.dir, "broker-"+names[i])
		if err := os.CopyFS(filepath.Join(dirs[i], "keys"), os.DirFS(filepath.Join(w.data, "keys"))); err != nil {
			t.Fatal(err)
		}
	}
	start := func(i int) *program {
		args := []string{testenv.Iotape(t), "collector", "--data", dirs[i], "--broker-only", "--listen",
			address(i, 4230), "--open", "--name", names[i], "--cluster", address(i, 4240)}
		for j := range names {
			if j != i {
				args = append(args, "--peer", address(j, 4240))
			}
		}
		p := w.start(w.here, args...)
		w.ready(p)
		return p
	}
	brokers := make([]*program, len(names))
	for i := range names {
		brokers[i] = start(i)
	}
	collect := func() *program {
		p := w.start(w.here, testenv.Iotape(t), "collector", "--data", w.data, "--nats", strings.Join(all, ","),
			"--key", secret, "--replicas", "3", "--page", page)
		w.ready(p)
		return p
	}
	c := collect()
	agents := w.simulate()
	time.Sleep(2 * time.Second)
	for i := range brokers { // each in its turn: one of them leads
		brokers[i].kill()
		time.Sleep(2 * time.Second)
		brokers[i] = start(i)
		w.stores()
	}
	c.kill()
	c = collect()
	w.finish(agents, c)
	w.balance("each of three brokers killed in its turn", w.hosts)
	for _, b := range brokers {
		_ = b.cmd.Process.Signal(syscall.SIGTERM)
	}
}
