// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
)

// finish stops the agents, lets them send what is left, and waits for it to be stored.
func (w *world) finish(agents, collector *program) {
	w.t.Helper()
	if err := agents.stop(); err != nil {
		w.t.Errorf("the agents: %v", err)
	}
	w.settled()
	if err := collector.stop(); err != nil {
		w.t.Errorf("the collector: %v", err)
	}
}

// reasons counts why the streams of the hosts ended.
func (w *world) reasons() map[staging.Reason]int {
	streams, err := staging.List(w.data)
	if err != nil {
		w.t.Fatal(err)
	}
	n := map[staging.Reason]int{}
	for _, s := range streams {
		if s.End != nil {
			n[s.End.Reason]++
		}
	}
	return n
}

// TestCollectorKilled: the collector, and the broker within it, is killed again and
// again, at any moment.
func TestCollectorKilled(t *testing.T) {
	testenv.Short(t, "it kills a program many times")
	t.Parallel()
	w := newWorld(t, fleetAgents(t), 1, "")
	agents := w.simulate()
	for range 4 {
		c := w.collect()
		time.Sleep(time.Duration(500+rand.IntN(2000)) * time.Millisecond)
		c.kill()
	}
	c := w.collect()
	w.finish(agents, c)
	w.balance("collector killed", w.hosts)
}

// TestAgentsKilled: the agents are killed again and again, at any moment, and every event
// that an agent was handed is stored or declared lost, to the last.
func TestAgentsKilled(t *testing.T) {
	testenv.Short(t, "it kills programs many times")
	t.Parallel()
	w := newWorld(t, fleetAgents(t), 1, "")
	c := w.collect()
	for range 5 {
		agents := w.simulate()
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
		agents.kill()
	}
	agents := w.simulate()
	w.heard()
	w.finish(agents, c)
	if a := w.balance("agents killed five times", w.hosts); a.produced == 0 || a.lost["the agent was killed"] == 0 {
		t.Error("no agent was killed that had something in memory: the test does not test that")
	}
}

// TestAgents: agents are killed, are replaced by others in place, and come back with a
// clock that is hours behind; the network is cut for longer than the spool of a loud
// agent lasts.
func TestAgents(t *testing.T) {
	testenv.Short(t, "it runs agents for a while")
	t.Parallel()
	w := newWorld(t, fleetAgents(t), 2, "")
	c := w.collect()
	agents := w.simulate()
	w.heard()
	time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	agents.kill()

	agents = w.simulate()
	w.heard()
	w.cut(true)
	time.Sleep(5 * time.Second)
	w.cut(false)
	// The loud agents find room when the network is back.
	w.wait("a stream has ended because of a loss", func() (string, bool) {
		r := w.reasons()
		return fmt.Sprint(r), r[staging.ReasonLoss] > 0
	})
	if err := agents.stop(); err != nil { // upgraded in place
		t.Error(err)
	}
	agents = w.simulate("--clock-back", "3h")
	w.heard()
	w.finish(agents, c)
	a := w.balance("agents killed, cut off, replaced, and with a clock that went back", w.hosts)
	if a.lost["the spool was full"] == 0 {
		t.Error("the loud agents lost nothing while they were cut off: the test does not test that")
	}
	r := w.reasons()
	if n := len(w.hosts); r[staging.ReasonKilled] != n || r[staging.ReasonStop] < 2*n {
		t.Errorf("streams ended so: %v", r)
	}
	if !w.said("its clock is 3h0m") {
		t.Error("nobody said that clocks are off")
	}
}

// TestDiskFull: the collector's disk is full for some time.
func TestDiskFull(t *testing.T) {
	testenv.Short(t, "it fills file systems")
	t.Parallel()
	testenv.NeedRoot(t)
	disk := testenv.MountImage(t, "tmpfs", 512)
	w := newWorld(t, fleetAgents(t), 0, filepath.Join(disk, "data"))
	c := w.collect("--min-free", "200M", "--broker-bytes", "100M")
	agents := w.simulate()
	w.heard()
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for range 330 { // less than 200 MiB are left
		if _, err := f.Write(block); err != nil {
			break
		}
	}
	f.Close()
	time.Sleep(3 * time.Second)
	if f := w.fleet(); f.Storing || f.Stalls == 0 {
		t.Errorf("the collector stores on a full disk: %+v", f)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	w.finish(agents, c)
	w.balance("disk full", w.hosts)
	if !w.said("nothing can be stored") || !w.said("storing again") {
		t.Error("the collector did not say that it could not store, and could again")
	}
}
