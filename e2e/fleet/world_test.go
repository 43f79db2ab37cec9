// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/fleet/source"
	"github.com/iotape/iotape/fleet/spool"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// fleetAgents is how many agents there are.
func fleetAgents(t *testing.T) int {
	n, err := strconv.Atoi(cmp(os.Getenv("IOTAPE_FLEET_AGENTS"), "50"))
	if err != nil || n < 3 {
		t.Fatal("IOTAPE_FLEET_AGENTS is no number of 3 or more")
	}
	return n
}

func cmp(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// world is a collector in one network namespace, and agents in another.
type world struct {
	t       *testing.T
	dir     string
	data    string
	here    string // namespace of the collector
	there   string // of the agents
	link    string // of the agents' end
	agents  string // directory of their configurations
	hosts   []string
	loud    int // of hosts, the first so many produce more than a spool keeps
	mu      sync.Mutex
	log     bytes.Buffer
	running []*program
	started map[string]int64 // of each host's agent, when heard was last called
}

const (
	port    = "4222"
	page    = "127.0.0.1:7073"
	address = "10.77.0.1:" + port
)

// newWorld makes namespaces, keys and configurations. data is where the collector
// stores; "" is beside the rest.
func newWorld(t *testing.T, n, loud int, data string) *world {
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "ip")
	w := &world{t: t, dir: t.TempDir(), data: data, hosts: nil, loud: loud}
	if w.data == "" {
		w.data = filepath.Join(w.dir, "data")
	}
	id := strconv.Itoa(os.Getpid()) + strconv.Itoa(int(time.Now().UnixNano()%1e5))
	w.here, w.there, w.link = "iof-c"+id, "iof-a"+id, "ioa"+id[len(id)-6:]
	other := "ioc" + id[len(id)-6:]
	for _, ns := range []string{w.here, w.there} {
		w.ip("netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		w.ip("-n", ns, "link", "set", "lo", "up")
	}
	w.ip("link", "add", w.link, "netns", w.there, "type", "veth", "peer", "name", other, "netns", w.here)
	w.ip("-n", w.here, "addr", "add", "10.77.0.1/24", "dev", other)
	w.ip("-n", w.there, "addr", "add", "10.77.0.2/24", "dev", w.link)
	w.ip("-n", w.here, "link", "set", other, "up")
	w.ip("-n", w.there, "link", "set", w.link, "up")
	t.Cleanup(w.end)
	w.agents = filepath.Join(w.dir, "agents")
	if err := os.MkdirAll(w.agents, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		rate := min(100, max(1, 10_000/n)) // faults are tested, not how busy processors can be
		if i < loud {
			rate = 20000 // 5 MB/s
		}
		w.enrol(fmt.Sprintf("h%d", i), w.agents,
			fmt.Sprintf("[limits]\nspool = \"8M\"\n[record]\nsynthetic = \"rate=%d,size=100\"\n", rate))
	}
	return w
}

// spool returns the directory of a host's agent.
func (w *world) spool(host string) string { return filepath.Join(w.dir, host+".spool") }

// enrol makes a host: its key and its configuration in dir.
func (w *world) enrol(host, dir, rest string) string {
	w.t.Helper()
	secret := filepath.Join(w.dir, host+".nk")
	public, err := key.Create(secret)
	if err == nil {
		err = broker.Enrol(w.data, &broker.Key{Name: host, Role: broker.Agent, Public: public})
	}
	config := filepath.Join(dir, host+".toml")
	if err == nil {
		text := fmt.Sprintf("host = %q\ncollectors = [\"nats://%s\"]\nkey = %q\nspool = %q\n%s", host, address, secret,
			w.spool(host), rest)
		err = os.WriteFile(config, []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.hosts = append(w.hosts, host)
	return config
}

func (w *world) ip(args ...string) {
	w.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		w.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// program is one that runs in a namespace.
type program struct {
	cmd   *exec.Cmd
	lines chan string // of its standard output
	done  chan struct{}
	err   error
}

// start starts a program in a namespace.
func (w *world) start(ns string, argv ...string) *program {
	w.t.Helper()
	return w.launch(append([]string{"ip", "netns", "exec", ns}, argv...)...)
}

// launch starts a program; what it says goes to the log.
func (w *world) launch(argv ...string) *program {
	w.t.Helper()
	p := &program{lines: make(chan string, 16), done: make(chan struct{})}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	p.cmd.Stderr = writer(func(b []byte) {
		w.mu.Lock()
		fmt.Fprintf(&w.log, "%6.2f %s", time.Since(began).Seconds(), b)
		w.mu.Unlock()
	})
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.running = append(w.running, p)
	go func() {
		sc := bufio.NewScanner(out)
		for sc.Scan() {
			select {
			case p.lines <- sc.Text():
			default:
			}
		}
		close(p.lines)
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

type writer func(b []byte)

func (f writer) Write(b []byte) (int, error) { f(b); return len(b), nil }

func (p *program) kill() { _ = p.cmd.Process.Kill(); <-p.done }

func (p *program) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	<-p.done
	return p.err
}

func (w *world) end() {
	for _, p := range w.running {
		select {
		case <-p.done:
		default:
			p.kill()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir := os.Getenv("IOTAPE_FLEET_LOG"); dir != "" { // all of it, in a directory
		if err := os.WriteFile(filepath.Join(dir, w.t.Name()+".log"), w.log.Bytes(), 0o666); err != nil {
			w.t.Error(err)
		}
	}
	if w.t.Failed() {
		lines := strings.Split(w.log.String(), "\n")
		w.t.Logf("the last of what the programs said:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// said reports whether a program said something.
func (w *world) said(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.log.String(), text)
}

// collect starts the collector, and waits until it listens.
func (w *world) collect(args ...string) *program {
	w.t.Helper()
	p := w.start(w.here, append([]string{testenv.Iotape(w.t), "collector", "--data", w.data, "--listen", address,
		"--open", "--page", page}, args...)...)
	w.ready(p)
	return p
}

func (w *world) ready(p *program) {
	w.t.Helper()
	select {
	case _, ok := <-p.lines:
		if !ok {
			<-p.done
			w.t.Fatalf("a program ended: %v", p.err)
		}
	case <-time.After(3 * time.Minute):
		w.t.Fatal("a program is not ready after three minutes")
	}
}

// simulate starts the agents.
func (w *world) simulate(args ...string) *program {
	return w.start(w.there, append([]string{testenv.Agent(w.t), "simulate", w.agents, "--stop-wait", "15m"},
		args...)...)
}

// cut cuts the network, or heals it.
func (w *world) cut(yes bool) {
	state := "up"
	if yes {
		state = "down"
	}
	w.ip("-n", w.there, "link", "set", w.link, state)
}

// fleet asks the collector.
func (w *world) fleet() *collector.Fleet {
	w.t.Helper()
	out, err := exec.Command("ip", "netns", "exec", w.here, testenv.Iotape(w.t), "fleet", "--json", "--collector",
		page).Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		w.t.Fatalf("iotape fleet: %v", err)
	}
	f := &collector.Fleet{}
	if err := json.Unmarshal(out, f); err != nil {
		w.t.Fatal(err)
	}
	return f
}

// patience is how long nothing may change that a test waits for.
const patience = 3 * time.Minute

// wait waits until look says that something is done. On a busy machine that takes as long as
// it takes; when how far it is has not changed for long, it will not come.
func (w *world) wait(what string, look func() (far string, done bool)) {
	w.t.Helper()
	before, since := "", time.Now()
	for {
		far, done := look()
		switch {
		case done:
			return
		case far != before:
			before, since = far, time.Now()
		case time.Since(since) > patience:
			w.t.Fatalf("%s: %s, and no more for %s", what, far, patience)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// heard waits until the agents of all hosts, others than when it was last called, have
// said hello and begun a stream.
func (w *world) heard() {
	w.t.Helper()
	started := map[string]int64{}
	w.wait("agents are heard", func() (string, bool) {
		for _, h := range w.fleet().Hosts {
			if h.Open > 0 && h.AgentStartNS != 0 && h.AgentStartNS != w.started[h.Host] {
				started[h.Host] = h.AgentStartNS
			}
		}
		return fmt.Sprintf("%d of %d", len(started), len(w.hosts)), len(started) == len(w.hosts)
	})
	w.started = started
}

// collectorKey enrols a collector, and returns the file of its secret key.
func (w *world) collectorKey() string {
	w.t.Helper()
	secret := filepath.Join(w.dir, "collector.nk")
	public, err := key.Create(secret)
	if err == nil {
		err = broker.Enrol(w.data, &broker.Key{Name: "collector", Role: broker.Collector, Public: public})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// stores waits until something more is stored.
func (w *world) stores() {
	w.t.Helper()
	before := w.fleet().Events
	w.wait("more events are stored", func() (string, bool) {
		now := w.fleet().Events
		return fmt.Sprint(now), now > before
	})
}

// settled waits until every stream of the hosts is finished.
func (w *world) settled() {
	w.t.Helper()
	w.wait("streams are finished", func() (string, bool) {
		streams, err := staging.List(w.data)
		if err != nil {
			w.t.Fatal(err)
		}
		hosts, ended := map[string]bool{}, 0
		for _, s := range streams {
			hosts[s.About.Host] = true
			if s.End != nil {
				ended++
			}
		}
		f := w.fleet()
		far := fmt.Sprintf("%d of %d, of %d of %d hosts, after %d batches, %d of them not durable", ended, len(streams),
			len(hosts), len(w.hosts), f.Batches, f.Behind)
		return far, ended == len(streams) && len(hosts) == len(w.hosts) && f.Behind == 0
	})
}

// account is the balance of a host, or of all.
type account struct {
	produced, stored, twice uint64
	lost                    map[string]uint64
}

func (a *account) allLost() (n uint64) {
	for _, v := range a.lost {
		n += v
	}
	return n
}

// balance counts, from the files themselves, and fails the test if it does not close.
func (w *world) balance(what string, hosts []string) *account {
	w.t.Helper()
	all := &account{lost: map[string]uint64{}}
	streams, err := staging.List(w.data)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, host := range hosts {
		a := w.hostBalance(host, streams)
		if lost := a.allLost(); a.produced != a.stored+lost || a.twice > 0 {
			w.t.Errorf("%s: %s made %d events: stored %d, declared lost %d %v, twice %d; %d are missing", what, host,
				a.produced, a.stored, lost, a.lost, a.twice,
				int64(a.produced)-int64(a.stored)-int64(lost))
		}
		all.produced, all.stored, all.twice = all.produced+a.produced, all.stored+a.stored, all.twice+a.twice
		for r, n := range a.lost {
			all.lost[r] += n
		}
	}
	var why []string
	for _, r := range slices.Sorted(maps.Keys(all.lost)) {
		why = append(why, fmt.Sprintf("%s %d", r, all.lost[r]))
	}
	w.t.Logf("balance, %s: %d hosts made %d events = %d stored + %d declared lost (%s); twice: %d",
		what, len(hosts), all.produced, all.stored, all.allLost(), strings.Join(why, ", "), all.twice)
	return all
}

func (w *world) hostBalance(host string, streams []staging.Stream) *account {
	w.t.Helper()
	a := &account{lost: map[string]uint64{}}
	ledger, err := spool.OpenLedger(w.spool(host)) // its agent has ended
	if err != nil {
		w.t.Fatal(err)
	}
	a.produced = ledger.Handed()
	if err := ledger.Close(); err != nil {
		w.t.Fatal(err)
	}
	seen := make([]uint64, a.produced/64+1)
	for _, s := range streams {
		if s.About.Host != host {
			continue
		}
		events, err := readStream(&s, func(n uint64) {
			switch bit := uint64(1) << (n % 64); {
			case n >= a.produced:
				w.t.Fatalf("%s has event %d of %d", s.Dir, n, a.produced)
			case seen[n/64]&bit != 0:
				a.twice++
			default:
				seen[n/64] |= bit
			}
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if s.End != nil && s.End.Events != events {
			w.t.Errorf("%s: its end says %d events, and it has %d", s.Dir, s.End.Events, events)
		}
		a.stored += events
	}
	// The host's file has the losses of all its streams, and what came too late for one.
	b, err := os.ReadFile(filepath.Join(w.data, "hosts", host+".json"))
	var h struct{ Losses map[string]uint64 }
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	maps.Copy(a.lost, h.Losses)
	return a
}

// readStream reads a staged stream, calls f for each made-up event, and counts.
func readStream(s *staging.Stream, f func(n uint64)) (events uint64, err error) {
	in, err := os.Open(s.File())
	if err != nil {
		return 0, err
	}
	defer in.Close()
	for fr := trace.NewFrameReader(bufio.NewReaderSize(in, 1<<20)); ; {
		frame, payload, err := fr.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, fmt.Errorf("%s: %w", s.Dir, err)
		}
		if frame.Kind != trace.FrameRecords {
			continue
		}
		if err := source.Numbers(payload, func(n uint64) { events++; f(n) }); err != nil {
			return events, fmt.Errorf("%s: %w", s.Dir, err)
		}
	}
}
