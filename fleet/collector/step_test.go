// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
)

// TestClockStep sets the clock of the collector's machine forward and back, by an hour and by years: no stream ends, no
// host is silent, nothing is lost, and an agent of another boot is refused for as long as without a step.
func TestClockStep(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for _, step := range []time.Duration{time.Hour, -time.Hour, 20 * year, -20 * year} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			t.Parallel()
			s := newBench(t)
			start := time.Now()
			s.setClock(start)
			var steady atomic.Int64
			alarms := make(chan string, 9)
			s.run(func(o *Options) {
				o.Silent, o.Abandon = time.Minute, 10*time.Minute
				o.Steady = func() time.Duration { return time.Duration(steady.Load()) }
				o.Alarm = func(host string, _ time.Duration) { alarms <- host }
			})
			name, all, want := sequence(1, 5)
			half := len(all) / 2
			for _, p := range all[:half] {
				s.publish("db7", p.Append(nil), 0)
			}
			hello := func(id string) *batch.Answer {
				b, err := json.Marshal(&batch.Hello{Version: batch.Version, BootID: id, AgentStartNS: 1,
					ClockNS: s.clock().UnixNano()})
				if err != nil {
					t.Fatal(err)
				}
				return s.c.handleHello("db7", b)
			}
			if a := hello(boot); a.Refused != "" {
				t.Fatal(a.Refused)
			}
			s.waitDurable()
			s.wait("a look at the clock", func() bool { // its first: there is nothing to compare before
				looked := false
				s.c.do(func() { looked = !s.c.step.wall.IsZero() })
				return looked
			})
			s.setClock(start.Add(step))
			s.wait("the word about the clock", func() bool { return s.heard("the clock of this machine was set by") })
			if h := s.host("db7"); h.State == "silent" {
				t.Error("the host is silent")
			}
			for _, p := range all[half:] {
				s.publish("db7", p.Append(nil), 0)
			}
			s.wait("the end of the stream", func() bool { return s.ended("db7", name) != nil })
			if e := s.ended("db7", name); e.Reason != staging.ReasonStop || !e.Complete || e.Events != 50 ||
				string(s.stored("db7", name)) != string(want) {
				t.Errorf("it ended so: %+v", e)
			}
			if a := hello("another boot"); a.Refused == "" {
				t.Error("an agent of another boot is accepted at once")
			}
			later := 2 * duplicateWait
			steady.Add(int64(later))
			s.setClock(start.Add(step + later))
			if a := hello("another boot"); a.Refused != "" {
				t.Errorf("after a while: %s", a.Refused)
			}
			if len(alarms) > 0 {
				t.Error("there was an alarm")
			}
		})
	}
}
