// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
)

// TestDamaged: a stream's directory, a host's file and a position that cannot be read are
// quarantined, counted and named, and all others are served.
func TestDamaged(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	name, all, want := sequence(1, 6)
	hosts := []string{"db7", "db8", "db9"}
	for _, host := range hosts {
		for _, p := range all[:4] {
			s.publish(host, p.Append(nil), 0)
		}
	}
	finished, whole, _ := sequence(2, 3)
	for _, p := range whole {
		s.publish("db8", p.Append(nil), 0)
	}
	s.wait("storing", func() bool {
		f := s.c.Fleet()
		return f.Events == 120 && f.Behind == 0 && s.ended("db8", finished) != nil
	})
	s.stop()
	for _, file := range []string{filepath.Join(staging.Dir(s.data, "db7", name), staging.AboutFile),
		hostFile(s.data, "db8"), positionFile(s.data)} {
		if err := os.WriteFile(file, []byte("{garbage"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s.run(nil)
	for _, host := range hosts {
		for _, p := range all[4:] {
			s.publish(host, p.Append(nil), p.Number-1)
		}
	}
	for _, host := range hosts {
		s.wait("the end of "+host, func() bool { return s.ended(host, name) != nil })
		e := s.ended(host, name)
		if host == "db7" {
			if e.Complete || e.Events != 30 || e.Lost() != 30 {
				t.Errorf("the stream whose beginning was quarantined ended so: %+v", e)
			}
			continue
		}
		if !e.Complete || e.Events != 60 || string(s.stored(host, name)) != string(want) {
			t.Errorf("%s ended so: %+v", host, e)
		}
	}
	if f := s.c.Fleet(); f.Refusals.Aside != 3 {
		t.Errorf("%d are counted as quarantined", f.Refusals.Aside)
	}
	if h := s.host("db8"); h.Stored != 90 || h.Streams != 2 || h.Lost != 0 {
		t.Errorf("the host whose file was damaged is %+v", h)
	}
	for _, text := range []string{"position.json cannot be read", "db8.json cannot be read",
		"stream " + name + " of db7 cannot be read, and is quarantined in "} {
		if !s.heard(text) {
			t.Errorf("nobody said: %s", text)
		}
	}
	if _, err := os.Stat(filepath.Join(quarantineDir(s.data), "db7", name+".why")); err != nil {
		t.Error(err)
	}
}

// TestUnwritable: streams that cannot be written, from their beginning, in their middle or
// at their end, wait in the broker while others are stored, also when the collector is
// started again; and then nothing is missing.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	s := newBench(t)
	s.run(nil)
	name, all, want := sequence(1, 40)
	hosts := []string{"begins", "middle", "ends", "fine"}
	dir := func(host string) string { return staging.Dir(s.data, host, name) }
	for _, host := range []string{"middle", "ends", "fine"} {
		for _, p := range all[:10] {
			s.publish(host, p.Append(nil), 0)
		}
	}
	s.wait("storing", func() bool { f := s.c.Fleet(); return f.Events == 270 && f.Behind == 0 })
	s.stop()
	obstacles := []string{filepath.Join(staging.Root(s.data), "begins"),
		filepath.Join(dir("middle"), staging.CommitsFile), filepath.Join(dir("ends"), staging.EndFile) + ".next"}
	commits, err := os.ReadFile(obstacles[1])
	if err != nil {
		t.Fatal(err)
	}
	s.run(nil)
	if err := os.Remove(obstacles[1]); err != nil {
		t.Fatal(err)
	}
	for i, o := range obstacles {
		if i == 0 {
			err = os.WriteFile(o, nil, 0o666)
		} else {
			err = os.Mkdir(o, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	send := func(batches []batch.Batch) {
		for _, host := range hosts {
			for _, p := range batches {
				s.publish(host, p.Append(nil), p.Number-1)
			}
		}
	}
	send(all[:20])
	send(all[20:])
	s.wait("the end of who can be written", func() bool { return s.ended("fine", name) != nil })
	if string(s.stored("fine", name)) != string(want) {
		t.Error("the stream that can be written is not what was sent")
	}
	for _, host := range hosts[:3] {
		s.wait("the problem of "+host, func() bool { return s.host(host).Problem != "" })
		if s.ended(host, name) != nil {
			t.Errorf("%s has an end", host)
		}
	}
	if f := s.c.Fleet(); !f.Storing || s.host("fine").Problem != "" {
		t.Errorf("the collector is %+v", f)
	}
	s.stop() // and what waits is still there
	if err := os.Remove(obstacles[2]); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(obstacles[2], 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(obstacles[1]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(obstacles[1], commits, 0o666); err != nil {
		t.Fatal(err)
	}
	s.run(nil)
	s.wait("the end of middle", func() bool { return s.ended("middle", name) != nil })
	for _, o := range []string{obstacles[0], obstacles[2]} {
		if err := os.Remove(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, host := range hosts {
		s.wait("the end of "+host, func() bool { return s.ended(host, name) != nil })
		if e := s.ended(host, name); !e.Complete || e.Events != 400 || e.Lost() != 0 ||
			string(s.stored(host, name)) != string(want) {
			t.Errorf("%s ended so: %+v", host, e)
		}
		if h := s.host(host); h.Stored != 400 || h.Lost != 0 || h.Problem != "" {
			t.Errorf("%s is %+v", host, h)
		}
	}
	s.wait("purging", func() bool { return s.c.Fleet().Behind == 0 })
}

// TestEndAgain: when the collector is killed after a stream's last batch was committed, and
// before the end was written, that batch is taken again.
func TestEndAgain(t *testing.T) {
	_, all, _ := sequence(1, 3)
	c := &Collector{o: Options{Clock: time.Now, Note: func(string) {}}, hosts: map[string]*host{}}
	o := &open{dir: t.TempDir(), made: true, held: map[uint64]uint64{}, progress: progress{next: 1}}
	for i := range all {
		c.take(c.host("db7"), o, &all[i], uint64(i+1))
	}
	if o.end == nil || o.end.LastBatch != 5 || !o.end.Complete {
		t.Fatalf("the end is %+v", o.end)
	}
	if err := o.commit(nil); err != nil {
		t.Fatal(err)
	}
	if p, err := recoverStream(o.dir); err != nil || p.next != 5 || p.events != 30 {
		t.Errorf("after a kill it is at %+v, %v", p, err)
	}
}
