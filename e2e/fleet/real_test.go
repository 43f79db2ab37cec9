package fleet

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"iotape/event"
	"iotape/fleet/broker"
	"iotape/fleet/key"
	"iotape/fleet/staging"
	"iotape/internal/testenv"
	"iotape/trace"
)

// TestRealAgents: agents that record real programs with eBPF, to a collector that is
// killed meanwhile. Every write of the programs is in the staged streams once, or
// declared lost, and the streams seal to tapes.
func TestRealAgents(t *testing.T) {
	t.Parallel()
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "dd")
	w := newWorld(t, 0, 0, "")
	const n, writes = 3, 3000
	var configs []string
	for i := range n {
		file := filepath.Join(w.dir, fmt.Sprintf("written%d", i))
		configs = append(configs, w.enrol(fmt.Sprintf("real%d", i), w.agents,
			fmt.Sprintf("[record]\ncommand = [\"/bin/sh\", \"-c\", \"dd if=/dev/zero of=%s bs=777 count=%d 2>/dev/null; sleep 1; cat %s >/dev/null\"]\n", file, writes, file)))
	}
	c := w.collect()
	var agents []*program
	for _, config := range configs {
		agents = append(agents, w.start(w.there, testenv.Agent(t), "--config", config))
	}
	time.Sleep(1500 * time.Millisecond)
	c.kill()
	c = w.collect()
	for _, a := range agents {
		if <-a.done; a.err != nil {
			t.Errorf("an agent: %v", a.err)
		}
	}
	t.Logf("the agents ended")
	// What an agent could not send before it ended is in its spool; another run sends it.
	for i, config := range configs {
		for try := 0; spoolBytes(t, filepath.Join(w.dir, fmt.Sprintf("real%d.spool", i))) > 0 && try < 10; try++ {
			b, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			text, _, _ := strings.Cut(string(b), "[record]")
			if err := os.WriteFile(config, []byte(text+"[record]\ncommand = [\"/bin/true\"]\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			<-w.start(w.there, testenv.Agent(t), "--config", config).done
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w.settled(ctx)
	if err := c.stop(); err != nil {
		t.Errorf("the collector: %v", err)
	}
	streams, err := staging.List(w.data)
	if err != nil {
		t.Fatal(err)
	}
	stored, lost := map[string]int{}, map[string]uint64{}
	for i := range streams {
		s := &streams[i]
		n, records := countWrites(t, s, 777)
		stored[s.About.Host] += n
		lost[s.About.Host] += s.End.Lost()
		if records != s.End.Events {
			t.Errorf("%s has %d records, and its end says %d", s.Dir, records, s.End.Events)
		}
		if n == writes {
			tape := filepath.Join(w.dir, s.About.Host+".tape")
			if out, err := exec.Command(testenv.Iotape(t), "seal", s.File(), "-o", tape).CombinedOutput(); err != nil {
				t.Errorf("seal %s: %v: %s", s.Dir, err, out)
			}
			if out, err := exec.Command(testenv.Iotape(t), "check", tape).CombinedOutput(); err != nil {
				t.Errorf("check: %v: %s", err, out)
			}
		}
	}
	for _, host := range w.hosts {
		t.Logf("balance, %s: of %d writes %d are stored; %d records of any kind are declared lost", host, writes, stored[host], lost[host])
		if missing := writes - stored[host]; missing < 0 || uint64(missing) > lost[host] {
			t.Errorf("%s: %d writes of %d are stored, and %d records are declared lost", host, stored[host], writes, lost[host])
		}
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
	t.Parallel()
	w := newWorld(t, 0, 0, "")
	names := []string{"a", "b", "c"}
	address := func(i, port int) string { return fmt.Sprintf("10.77.0.1:%d", port+i) }
	// All brokers know all keys; the agents, all brokers.
	var all []string
	for i := range names {
		all = append(all, "nats://"+address(i, 4230))
	}
	secret := filepath.Join(w.dir, "collector.nk")
	public, err := key.Create(secret)
	if err == nil {
		err = broker.Enrol(w.data, &broker.Key{Name: "collector", Role: broker.Collector, Public: public})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		host := fmt.Sprintf("h%d", i)
		config := w.enrol(host, w.agents, "[record]\nsynthetic = \"rate=200,size=100\"\n")
		b, err := os.ReadFile(config)
		if err == nil {
			text := strings.Replace(string(b), "collectors = [\"nats://10.77.0.1:4222\"]", "collectors = [\""+strings.Join(all, "\", \"")+"\"]", 1)
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
		args := []string{testenv.Iotape(t), "collector", "--data", dirs[i], "--broker-only", "--listen", address(i, 4230), "--open", "--name", names[i], "--cluster", address(i, 4240)}
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
		p := w.start(w.here, testenv.Iotape(t), "collector", "--data", w.data, "--nats", strings.Join(all, ","), "--key", secret, "--replicas", "3", "--page", page)
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
