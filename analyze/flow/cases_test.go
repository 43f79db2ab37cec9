// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/analyze/flow/show"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
)

// scene is programs that are recorded beside each other.
type scene struct {
	t           *testing.T
	dir, iotape string
	args        []string // of iotape record
	tapes       []string
}

func newScene(t *testing.T, args ...string) *scene {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--backend", "ptrace"} // it starts in no time
	}
	if !slices.Contains(args, "ptrace") {
		testenv.NeedBPF(t)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &scene{t: t, dir: dir, iotape: testenv.Iotape(t), args: args}
}

var cases struct {
	once sync.Once
	path string
	out  []byte
	err  error
}

// program returns the program of testdata/cases.
func program(t *testing.T) string {
	t.Helper()
	testenv.NeedProgram(t, "go")
	cases.once.Do(func() {
		var dir string
		if dir, cases.err = os.MkdirTemp("", "iotape-flow-"); cases.err != nil {
			return
		}
		cases.path = filepath.Join(dir, "cases")
		cases.out, cases.err = exec.Command("go", "build", "-buildvcs=false", "-o", cases.path,
			"./testdata/cases").CombinedOutput()
	})
	if cases.err != nil {
		t.Fatalf("build the cases: %v\n%s", cases.err, cases.out)
	}
	return cases.path
}

func TestMain(m *testing.M) {
	status := m.Run()
	if cases.path != "" {
		os.RemoveAll(filepath.Dir(cases.path))
	}
	os.Exit(status)
}

// running is a program that is recorded.
type running struct {
	cmd   *exec.Cmd
	stdin *os.File
	err   bytes.Buffer
	out   *bufio.Reader
}

// start records a program to a tape. Words in front are run by it: ip netns exec x.
func (s *scene) start(tape string, argv ...string) *running {
	s.t.Helper()
	s.tapes = append(s.tapes, filepath.Join(s.dir, tape+".tape"))
	r := &running{cmd: exec.CommandContext(s.t.Context(), s.iotape,
		append(append([]string{"record", "--no-index", "-o", tape + ".tape"}, s.args...),
			append([]string{"--"}, argv...)...)...)}
	r.cmd.Dir, r.cmd.Stderr = s.dir, &r.err
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	r.cmd.Stdin, r.stdin, r.out = in, stdin, bufio.NewReader(out)
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	in.Close()
	s.t.Cleanup(func() { stdin.Close() })
	return r
}

// server is start, and waits until the program is ready.
func (s *scene) server(tape string, argv ...string) *running {
	s.t.Helper()
	r := s.start(tape, argv...)
	if line, err := r.out.ReadString('\n'); err != nil || line != "ready\n" {
		s.t.Fatalf("%q: %q, %v\n%s", argv, line, err, r.err.String())
	}
	return r
}

// end waits for a program, and its tape.
func (s *scene) end(r *running) {
	s.t.Helper()
	r.stdin.Close()
	_, _ = r.out.WriteTo(&bytes.Buffer{})
	if err := r.cmd.Wait(); err != nil {
		s.t.Fatalf("%q: %v\n%s", r.cmd.Args, err, r.err.String())
	}
}

// load reads the tapes of a scene.
func (s *scene) load(o *flow.Options) *flow.Flow {
	s.t.Helper()
	return load(s.t, o, s.tapes...)
}

func load(t *testing.T, o *flow.Options, names ...string) *flow.Flow {
	t.Helper()
	var tapes []*trace.Tape
	for _, name := range names {
		tape, err := trace.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tape.Close() })
		tapes = append(tapes, tape)
	}
	f, err := flow.Load(t.Context(), tapes, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// expect fails the test unless an expression holds.
func expect(t *testing.T, f *flow.Flow, p *flow.Path, expr string) {
	t.Helper()
	x, err := predicate.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	ok, err := f.Expect(x, p)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		var b strings.Builder
		for _, n := range f.Numbers(p) {
			fmt.Fprintf(&b, "%s=%d ", n.Name, n.Value)
		}
		for _, x := range f.Findings() {
			fmt.Fprintf(&b, "\n%s: %s", x.Problem, x.Text)
		}
		t.Errorf("not so: %s\n%s", expr, b.String())
	}
}

// path follows what moved at one place to another.
func path(t *testing.T, f *flow.Flow, from, to string) *flow.Path {
	t.Helper()
	var ids [2][]int
	for i, what := range []string{from, to} {
		if what == "" {
			continue
		}
		var err error
		if ids[i], err = f.Select(what); err != nil {
			t.Fatal(err)
		}
	}
	p, err := f.Path(t.Context(), ids[0], ids[1])
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bothWays returns the names of the two streams of the only connection to an address.
func bothWays(t *testing.T, f *flow.Flow, addr string) (to, from string) {
	t.Helper()
	ids, err := f.Select("to " + addr)
	if err != nil {
		t.Fatal(err)
	}
	to = f.Move(ids[0]).Object.Name
	client, server, _ := strings.Cut(to, "->")
	if server != addr || client == "" {
		t.Errorf("got a stream %q, want one from its client to %s", to, addr)
	}
	return to, server + "->" + client
}

// steps writes a path in short: the object of each move, and whether it was written.
func steps(f *flow.Flow, p *flow.Path) string {
	var out []string
	for _, id := range p.Moves {
		m := f.Move(id)
		arrow := "<"
		if m.Write {
			arrow = ">"
		}
		out = append(out, arrow+filepath.Base(m.Object.Name))
	}
	return strings.Join(out, " ")
}

// port returns one that is free.
func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// write makes a file of random bytes, which are like nothing else.
func (s *scene) write(name string, n int, seed byte) string {
	s.t.Helper()
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// TestEcho is Figure 1 of CAT's paper: a service that stores what it gets and returns it,
// and one that returns something else.
func TestEcho(t *testing.T) {
	testenv.Short(t, "it records clusters")
	prog := program(t)
	const text = "the quick brown fox jumps over the lazy dog"
	for _, c := range []struct {
		name   string
		more   []string
		expect string
	}{
		{"right", nil, "wrong == 0 and unmatched == 0"},
		{"wrong", []string{"spoil"}, "changed == 1 and wrong == 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			addr := "127.0.0.1:" + port(t)
			server := s.server("server", append([]string{prog, "echo-server", addr, "store.db"}, c.more...)...)
			s.end(s.start("client", prog, "echo-client", addr, text))
			s.end(server)
			f := s.load(nil)
			expect(t, f, nil, c.expect)
			p := path(t, f, "to "+addr, "from "+addr)
			to, from := bothWays(t, f, addr)
			if got, want := steps(f, p), fmt.Sprintf(">%s <%s >store.db <store.db >%s <%s", to, to, from,
				from); got != want {
				t.Errorf("the way is\n%s, want\n%s", got, want)
			}
			want := "similarity == 100"
			if c.more != nil {
				want = "similarity == 97" // 42 of 43 bytes
			}
			expect(t, f, p, want)
			if c.more != nil {
				x := f.Findings()[0]
				if d := x.Diff; d == nil || d.First != len(text)/2 || d.Differ != 1 ||
					d.Before[d.Context] != text[len(text)/2] || d.After[d.Context] != text[len(text)/2]^0x20 {
					t.Errorf("%+v %+v", x, x.Diff)
				}
			}
			wantStory(t, f, c.more != nil)
		})
	}
}

// wantStory holds the story of the echo service against what its programs did.
func wantStory(t *testing.T, f *flow.Flow, wrong bool) {
	t.Helper()
	var b strings.Builder
	if err := show.Stories(&b, f); err != nil {
		t.Fatal(err)
	}
	want := "no finding of data that is not what it should be\n"
	if wrong {
		want = `^changed \(confidence: \w+\): .*
  cases\[\d+\] sent 43 bytes on \S+ \(event \S+\)
→ cases\[\d+\] received 43 bytes on \S+ \(event \S+\)
→ cases\[\d+\] wrote 43 bytes to /\S+/store.db at 0 \(event \S+\)
→ cases\[\d+\] read 43 bytes of /\S+/store.db at 0 \(event \S+\)  ← changed
→ cases\[\d+\] sent 43 bytes on \S+ \(event \S+\)  ← changed: 1 of 43 bytes differ, the first at 21
→ cases\[\d+\] received 43 bytes on \S+ \(event \S+\)
(→ .*
)*$`
	}
	if got := b.String(); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("got the story\n%s\nwant\n%s", got, want)
	}
}

// TestReplicas is three replicas that pass on what they get (Figure 9 of CAT's paper):
// as they should; with the disk of one changed behind its back; and with one byte changed
// by the network, whose checksum is put right.
func TestReplicas(t *testing.T) {
	testenv.Short(t, "it records clusters")
	prog := program(t)
	const size = 100_000
	t.Run("right", func(t *testing.T) {
		s, f := replicas(t, prog, size, nil)
		expect(t, f, nil, "replicas == 3 and wrong == 0")
		p := path(t, f, filepath.Join(s.dir, "source"), "")
		expect(t, f, p, "replicas == 3 and path_hosts == 1")
	})
	t.Run("disk", func(t *testing.T) {
		_, f := replicas(t, prog, size, func(s *scene) {
			file, err := os.OpenFile(filepath.Join(s.dir, "two.db"), os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteAt([]byte("spoiled"), 50_000); err != nil {
				t.Fatal(err)
			}
		})
		expect(t, f, nil, "replicas == 3 and corrupted == 1 and wrong == 1")
		x := f.Findings()[0]
		if x.Diff == nil || string(x.Diff.After[x.Diff.Context:][:7]) != "spoiled" ||
			!strings.Contains(x.Text, "two.db at 50000 ") {
			t.Errorf("%+v %+v", x, x.Diff)
		}
	})
	t.Run("network", func(t *testing.T) {
		testenv.NeedRoot(t)
		testenv.NeedProgram(t, "ip")
		s := newScene(t)
		between(t, func(payload []byte, at int) {
			if i := 60_000 - at; i >= 0 && i < len(payload) {
				payload[i] ^= 0xff
			}
		})
		in := func(argv ...string) []string { return append([]string{"ip", "netns", "exec", spaces[1]}, argv...) }
		file := s.write("source", size, 1)
		three := s.server("three", in(prog, "replica", addrs[1]+":4003", "three.db")...)
		two := s.server("two", in(prog, "replica", addrs[1]+":4002", "two.db", addrs[1]+":4003")...)
		one := s.server("one", "ip", "netns", "exec", spaces[0], prog, "replica", addrs[0]+":4001", "one.db",
			addrs[1]+":4002")
		client := s.start("client", "ip", "netns", "exec", spaces[0], prog, "send", addrs[0]+":4001", file)
		for _, r := range []*running{client, one, two, three} {
			s.end(r)
		}
		f := s.load(nil)
		expect(t, f, nil, "replicas == 3 and altered == 1 and differing >= 1 and corrupted == 0 and changed == 0")
		for _, x := range f.Findings() {
			if x.Problem == flow.Differing && !strings.Contains(x.Text, "one.db is not like") {
				t.Errorf("two have the altered byte, one has not: %s", x.Text)
			}
			if x.Problem == flow.Altered &&
				(x.Bytes != 1 || x.Diff.Before[x.Diff.Context] != x.Diff.After[x.Diff.Context]^0xff) {
				t.Errorf("%+v %+v", x, x.Diff)
			}
		}
	})
}

// replicas runs a client and three replicas, and does something before they read back
// what they have.
func replicas(t *testing.T, prog string, size int, meanwhile func(s *scene)) (*scene, *flow.Flow) {
	t.Helper()
	s := newScene(t)
	a, b, c := "127.0.0.1:"+port(t), "127.0.0.1:"+port(t), "127.0.0.1:"+port(t)
	file := s.write("source", size, 1)
	three := s.server("three", prog, "replica", c, "three.db")
	two := s.server("two", prog, "replica", b, "two.db", c)
	one := s.server("one", prog, "replica", a, "one.db", b)
	s.end(s.start("client", prog, "send", a, file))
	if meanwhile != nil {
		meanwhile(s)
	}
	for _, r := range []*running{one, two, three} {
		s.end(r)
	}
	return s, s.load(nil)
}

// TestTraining is Figure 8 of CAT's paper: a program that reads the records of a file
// several times, in the same order or shuffled.
func TestTraining(t *testing.T) {
	prog := program(t)
	for _, c := range []struct {
		name, expect string
		more         []string
	}{
		{"in order", "same_order == 1 and shuffled == 0 and wrong == 0", nil},
		{"shuffled", "same_order == 0 and shuffled == 1 and wrong == 0", []string{"shuffle"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			file := s.write("records", 64*1000, 2)
			s.end(s.start("train", append([]string{prog, "train", file, "1000", "3"}, c.more...)...))
			f := s.load(nil)
			expect(t, f, nil, c.expect)
			for _, x := range f.Findings() {
				if (x.Problem == flow.Shuffled || x.Problem == flow.SameOrder) &&
					!strings.Contains(x.Text, "64 parts of "+file+" 3 times") {
					t.Error(x.Text)
				}
			}
		})
	}
}

// TestTLS has the same data in two files, and something else on the wire; and the same
// without TLS, where nothing should be readable.
func TestTLS(t *testing.T) {
	prog := program(t)
	for _, c := range []struct{ name, server, client, expect string }{
		{"tls", "tls-server", "tls-send", "plaintext == 0 and wrong == 0"},
		{"plain", "replica", "send", "plaintext > 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			addr := "127.0.0.1:" + port(t)
			source := s.write("source", 40_000, 3)
			server := s.server("server", prog, c.server, addr, "stored")
			s.end(s.start("client", prog, c.client, addr, source))
			s.end(server)
			f := s.load(&flow.Options{Encrypted: []string{addr}})
			expect(t, f, nil, c.expect)
			if c.server != "tls-server" {
				return
			}
			// What was sent is like nothing that was read, but what was stored is.
			sent, err := f.Select("to " + addr)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range sent {
				if m := f.Move(id); m.Write {
					for _, e := range f.Before(id) {
						t.Errorf("%d bytes of ciphertext came from %s", e.Bytes, f.Move(e.From).Object.Name)
					}
				}
			}
			p := path(t, f, source, filepath.Join(s.dir, "stored"))
			if got := steps(f, p); !strings.HasPrefix(got, "<source >stored") {
				t.Errorf("the way is %s", got)
			}
			for _, e := range p.Edges {
				if e.Why != flow.Elsewhere {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// TestSignatures has no content in the tapes, and not in the streams that they are made
// of: the ways are the same, and what was changed is found.
func TestSignatures(t *testing.T) {
	prog := program(t)
	text := "the quick brown fox jumps over the lazy dog, and then it goes home and sleeps all of the night and " +
		"half the day"
	for _, c := range []struct {
		name, expect string
		more         []string
	}{
		{"right", "wrong == 0 and unknown == 0", nil},
		{"wrong", "changed == 1 and wrong == 1", []string{"spoil"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, "--backend", "ptrace", "--content", "signature", "--keep-stream")
			addr := "127.0.0.1:" + port(t)
			server := s.server("server", append([]string{prog, "echo-server", addr, "store.db"}, c.more...)...)
			s.end(s.start("client", prog, "echo-client", addr, text))
			s.end(server)
			for _, name := range []string{"server.stream", "server.tape/events", "server.tape/content"} {
				b, err := os.ReadFile(filepath.Join(s.dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if bytes.Contains(b, []byte("jumps over")) {
					t.Errorf("%s has the content", name)
				}
			}
			f := s.load(nil)
			expect(t, f, nil, c.expect)
			p := path(t, f, "to "+addr, "from "+addr)
			to, from := bothWays(t, f, addr)
			if got, want := steps(f, p), fmt.Sprintf(">%s <%s >store.db <store.db >%s <%s", to, to, from,
				from); got != want {
				t.Errorf("the way is\n%s, want\n%s", got, want)
			}
		})
	}
}

// TestDatagrams has each datagram come from the one that was sent with its bytes.
func TestDatagrams(t *testing.T) {
	prog := program(t)
	s := newScene(t)
	addr := "127.0.0.1:" + port(t)
	server := s.server("server", prog, "udp-server", addr, "store")
	s.end(s.start("client", prog, "udp-send", addr, "pack-my-box with-five-dozen pack-my-box liquor-jugs"))
	s.end(server)
	f := s.load(nil)
	var words []string
	p := path(t, f, "", filepath.Join(s.dir, "store"))
	for _, e := range p.Edges {
		if e.Why == flow.Sent {
			b, err := f.Bytes(e.To)
			if err != nil {
				t.Fatal(err)
			}
			words = append(words, string(b))
		}
	}
	if got := strings.Join(words, " "); got != "pack-my-box with-five-dozen pack-my-box liquor-jugs" {
		t.Errorf("datagrams that came from somewhere: %s", got)
	}
	expect(t, f, p, "similarity == 100 and wrong == 0 and path == 12")
}
