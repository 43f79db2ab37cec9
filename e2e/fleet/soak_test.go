// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// soakProgram is recorded: it makes and removes files until the file stop is there, and says how many.
const soakProgram = `
n=0
while [ ! -e stop ]; do echo $n > file; mv file moved; rm moved; n=$((n+1)); done
echo $n > count
`

// TestSoak records a busy program in tapes that rotate, runs agents and a collector that are killed and cut off, serves
// a page that is asked all the time, and replays, for as long as IOTAPE_SOAK says (make soak; 5 s if it is not set).
// Nothing may be lost or counted twice. In ten minutes or more no program may grow.
func TestSoak(t *testing.T) {
	testenv.Short(t, "it runs for a while")
	long, err := time.ParseDuration(cmp(os.Getenv("IOTAPE_SOAK"), "5s"))
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{world: newWorld(t, 5, 0, ""), long: long}
	s.begin()
	for end := time.Now().Add(long); time.Now().Before(end); {
		s.round()
	}
	s.finish()
	s.table()
}

// soak is what runs, and what was seen of it.
type soak struct {
	*world
	long              time.Duration
	agents, collector *program
	recorder, server  *program
	client            *http.Client
	url               string // of the page
	first             string // the tape that is served and replayed

	tapes, replays, asked, faults int
	restarted                     bool   // the agents, since they were heard
	removed                       uint64 // files, by the tapes
	samples                       map[string][]sample
	names                         []string
}

// sample is what a program uses at one moment.
type sample struct{ memory, descriptors, threads, disk int64 }

func (s *soak) path(name string) string { return filepath.Join(s.dir, name) }

func (s *soak) begin() {
	t := s.t
	s.samples = map[string][]sample{}
	s.names = []string{"record", "agents", "collector", "serve"}
	for _, name := range []string{"work", "tapes"} {
		if err := os.Mkdir(s.path(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.first = s.path("first.tape")
	record := exec.Command(testenv.Iotape(t), "record", "-o", s.first, "--", "sh", "-c",
		"for i in $(seq 200); do echo $i > f$i; done; cat f* > all; rm f*")
	record.Dir = t.TempDir()
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	s.collector = s.collect()
	s.agents = s.simulate()
	s.heard()
	// A test that fails kills the recorder, and its program would go on.
	t.Cleanup(func() { _ = os.WriteFile(s.path("work/stop"), nil, 0o600) })
	s.recorder = s.launch(testenv.Iotape(t), "record", "--rotate", "4M,30s", "--no-index", "-o",
		s.path("tapes/r.tape"), "--", "sh", "-c", "cd '"+s.path("work")+"' && "+soakProgram)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client = &http.Client{Jar: jar, Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.path("page"))
		}}}
	s.server = s.launch(testenv.Iotape(t), "serve", s.first, "--listen", "unix:"+s.path("page"))
	select {
	case line := <-s.server.lines:
		m := regexp.MustCompile(`(/\S*[?#]\S*)`).FindString(line)
		s.url = "http://localhost" + m
	case <-time.After(time.Minute):
		t.Fatal("the page is not there after a minute")
	}
}

// round does everything once, and looks at what the programs use.
func (s *soak) round() {
	t := s.t
	until := time.Now().Add(max(s.long/100, 2*time.Second))
	switch s.faults++; rand.IntN(4) {
	case 0:
		s.agents.kill()
		s.agents, s.restarted = s.simulate(), true
	case 1:
		s.collector.kill()
		s.collector = s.collect()
	case 2:
		s.cut(true)
		time.Sleep(time.Second)
		s.cut(false)
	}
	into := s.path("again")
	out, err := exec.Command(testenv.Iotape(t), "replay", s.first, "--into", into, "--verify").CombinedOutput()
	if err != nil {
		t.Errorf("replay %d: %v\n%s", s.replays, err, out)
	}
	s.replays++
	if err := os.RemoveAll(into); err != nil {
		t.Fatal(err)
	}
	s.count()
	for i := 0; i == 0 || time.Now().Before(until); i++ {
		s.ask()
		time.Sleep(50 * time.Millisecond)
	}
	for name, p := range map[string]*program{"record": s.recorder, "agents": s.agents, "collector": s.collector,
		"serve": s.server} {
		u, err := usage(p.cmd.Process.Pid)
		if err != nil {
			t.Fatalf("%s has ended: %v", name, err)
		}
		switch name {
		case "record":
			u.disk = size(s.path("tapes")) // with the room that is held for sealing, up to 64 MiB
		case "agents":
			for _, h := range s.hosts {
				u.disk += size(s.spool(h))
			}
		case "collector":
			u.disk = size(filepath.Join(s.data, "broker"))
		}
		s.samples[name] = append(s.samples[name], u)
	}
}

// ask gets the page.
func (s *soak) ask() {
	r, err := s.client.Get(s.url)
	if err != nil {
		s.t.Fatalf("the page: %v", err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		s.t.Errorf("the page: %s, %v", r.Status, err)
	}
	s.asked++
}

// count counts the files that the program removed, by the tapes that are there, and removes these.
func (s *soak) count() {
	t := s.t
	names, err := filepath.Glob(s.path("tapes/*.tape"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		tape, err := trace.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range tape.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if (e.Op == event.OpUnlinkat || e.Op == event.OpUnlink) && e.Ret == 0 {
				s.removed++
			}
		}
		if err := tape.Close(); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(testenv.Iotape(t), "check", name).CombinedOutput(); err != nil {
			t.Errorf("check: %v\n%s", err, out)
		}
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
		s.tapes++
	}
}

// finish ends everything in order, and closes the balances.
func (s *soak) finish() {
	t := s.t
	if s.restarted {
		s.heard()
	}
	if err := os.WriteFile(s.path("work/stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-s.recorder.done
	if s.recorder.err != nil {
		t.Errorf("record: %v", s.recorder.err)
	}
	s.count()
	b, err := os.ReadFile(s.path("work/count"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("balance, recording: the program removed %d files = %d in %d tapes", made, s.removed, s.tapes)
	if made != s.removed {
		t.Errorf("the program removed %d files, and the tapes have %d", made, s.removed)
	}
	_ = s.server.stop()
	s.world.finish(s.agents, s.collector)
	s.balance(fmt.Sprintf("%d rounds of faults", s.faults), s.hosts)
	t.Logf("%d replays without a difference, the page was asked %d times", s.replays, s.asked)
}

// table prints what the programs used by thirds of the time, and looks whether it grew.
func (s *soak) table() {
	t := s.t
	t.Logf("%-10s %-12s %12s %12s %12s", "program", "uses", "first third", "second third", "last third")
	for _, name := range s.names {
		list := s.samples[name]
		for _, of := range []struct {
			what  string
			value func(sample) int64
			slack int64
		}{
			{"KiB", func(u sample) int64 { return u.memory }, 16 << 10},
			{"descriptors", func(u sample) int64 { return u.descriptors }, 16},
			{"threads", func(u sample) int64 { return u.threads }, 16},
			{"KiB on disk", func(u sample) int64 { return u.disk >> 10 }, 64 << 10},
		} {
			var third [3]int64 // the least of each: what a program needs at any moment
			for i := range third {
				part := list[len(list)*i/3 : max(len(list)*(i+1)/3, len(list)*i/3+1)]
				third[i] = of.value(part[0])
				for _, u := range part {
					third[i] = min(third[i], of.value(u))
				}
			}
			t.Logf("%-10s %-12s %12d %12d %12d", name, of.what, third[0], third[1], third[2])
			if s.long >= 10*time.Minute && third[2] > third[1]+third[1]/4+of.slack {
				t.Errorf("%s grows: %v %s", name, third, of.what)
			}
		}
	}
}

// usage returns what a process uses, without its disk.
func usage(pid int) (u sample, err error) {
	dir := "/proc/" + strconv.Itoa(pid)
	f, err := os.Open(dir + "/status")
	if err != nil {
		return u, err
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		words := strings.Fields(sc.Text())
		switch {
		case len(words) < 2:
		case words[0] == "RssAnon:":
			u.memory, _ = strconv.ParseInt(words[1], 10, 64)
		case words[0] == "Threads:":
			u.threads, _ = strconv.ParseInt(words[1], 10, 64)
		}
	}
	fds, err := os.ReadDir(dir + "/fd")
	u.descriptors = int64(len(fds))
	return u, err
}

// size returns how many bytes the files of a directory take. Files may go meanwhile.
func size(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
			n += st.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return n
}
