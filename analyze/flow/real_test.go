// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/internal/testenv"
)

// through runs a test of real programs twice: with a proxy between them that passes on everything, where
// nothing may be wrong, and with one that changes the byte behind a word, which has to be found there.
func through(t *testing.T, word string, run func(t *testing.T, s *scene, to string)) {
	t.Helper()
	testenv.Short(t, "it runs servers")
	prog := program(t)
	for name, word := range map[string]string{"clean": "", "one byte flipped": word} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			to, at := "127.0.0.1:"+port(t), "127.0.0.1:"+port(t)
			p := s.server("proxy", prog, "proxy", at, to, word)
			run(t, s, to+" "+at)
			s.end(p)
			f := s.load(nil)
			if word == "" {
				expect(t, f, nil, "wrong == 0 and contradictions == 0")
				return
			}
			found := false
			for _, x := range f.Findings() {
				m := f.Move(x.Moves[len(x.Moves)-1])
				found = found || x.Problem == flow.Changed && x.Diff.Differ == 1 && m.Process.Comm == "cases"
				if x.Problem == flow.Changed && m.Process.Comm != "cases" || x.Problem.Wrong() &&
					x.Problem != flow.Changed && x.Problem != flow.Differing {
					t.Errorf("%s: %s, want the byte that the proxy changed, and what follows of it", x.Problem, x.Text)
				}
			}
			if !found {
				t.Errorf("found %q, want one byte that the proxy changed", wrong(f))
			}
		})
	}
}

// eventually waits until a command writes some words.
func eventually(t *testing.T, words string, argv ...string) {
	t.Helper()
	var out []byte
	for range 600 {
		out, _ = exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if strings.Contains(string(out), words) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%q wrote %q, want %q", argv, out, words)
}

// ports takes apart two addresses.
func ports(addrs string) (a, b string) {
	a, b, _ = strings.Cut(addrs, " ")
	_, a, _ = strings.Cut(a, ":")
	_, b, _ = strings.Cut(b, ":")
	return a, b
}

// TestRedis has a Redis server with a replica, which asks it through the proxy. Both keep logs of commands.
func TestRedis(t *testing.T) {
	testenv.NeedProgram(t, "redis-server", "redis-cli")
	through(t, "the value of key 7", func(t *testing.T, s *scene, to string) {
		server, proxied := ports(to)
		own := port(t)
		args := func(dir, port string, more ...string) []string {
			dir = filepath.Join(s.dir, dir)
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			return append([]string{"redis-server", "--port", port, "--dir", dir, "--save", "", "--appendonly", "yes",
				"--repl-diskless-sync-delay", "0", "--bind", "127.0.0.1"}, more...)
		}
		primary := s.start("primary", args("primary", server)...)
		eventually(t, "PONG", "redis-cli", "-p", server, "ping")
		replica := s.start("replica", args("replica", own, "--replicaof", "127.0.0.1 "+proxied)...)
		eventually(t, "master_link_status:up", "redis-cli", "-p", own, "info", "replication")
		for k := range 30 {
			eventually(t, "OK", "redis-cli", "-p", server, "set", fmt.Sprint("key", k),
				strings.Repeat(fmt.Sprintf("the value of key %d, %d; ", k, k*k*7919), 3+k))
		}
		eventually(t, "the value of key 29", "redis-cli", "-p", own, "get", "key29")
		for _, p := range []string{own, server} {
			_ = exec.Command("redis-cli", "-p", p, "shutdown", "nosave").Run()
		}
		s.end(replica)
		s.end(primary)
	})
}

// TestNATS has a client publish messages to a stream of JetStream through the proxy, and store what it gets.
func TestNATS(t *testing.T) {
	testenv.NeedProgram(t, "nats-server")
	through(t, "message 7 of the flow test, ", func(t *testing.T, s *scene, to string) {
		server, proxied := ports(to)
		n := s.start("nats", "nats-server", "-a", "127.0.0.1", "-p", server, "-js", "-sd", filepath.Join(s.dir, "js"),
			"-P", filepath.Join(s.dir, "pid"))
		eventually(t, "INFO", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+server+" && head -n1 <&3")
		s.end(s.start("client", program(t), "publish", "127.0.0.1:"+proxied, s.dir, "part "))
		pid, err := os.ReadFile(filepath.Join(s.dir, "pid"))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("kill", "-INT", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s.end(n)
	})
}

// TestStunnel has one program send a file through two stunnels to another one that stores it. Between them is
// TLS: it is named, and nothing of it is wrong.
func TestStunnel(t *testing.T) {
	testenv.Short(t, "it runs servers")
	testenv.NeedProgram(t, "stunnel4", "openssl")
	prog := program(t)
	s := newScene(t)
	key := filepath.Join(s.dir, "key.pem")
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
		filepath.Join(s.dir, "cert.pem"), "-days", "2", "-subj", "/CN=localhost").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	store, wire, local := "127.0.0.1:"+port(t), "127.0.0.1:"+port(t), "127.0.0.1:"+port(t)
	tunnel := func(name, accept, connect, more string) *running {
		conf := filepath.Join(s.dir, name+".conf")
		text := fmt.Sprintf("foreground = yes\npid = %s/%s.pid\n[x]\naccept = %s\nconnect = %s\n%s", s.dir, name,
			accept, connect, more)
		if err := os.WriteFile(conf, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r := s.start(name, "stunnel4", conf)
		for range 600 {
			if b, err := os.ReadFile(filepath.Join(s.dir, name+".pid")); err == nil && len(b) > 0 {
				return r
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("%s does not begin: %s", name, r.err.String())
		return nil
	}
	server := s.server("server", prog, "replica", store, "stored")
	there := tunnel("there", wire, store, fmt.Sprintf("cert = %s/cert.pem\nkey = %s\n", s.dir, key))
	here := tunnel("here", local, wire, "client = yes\n")
	source := s.write("source", 40_000, 3)
	s.end(s.start("client", prog, "send", local, source))
	s.end(server)
	for name, r := range map[string]*running{"here": here, "there": there} {
		pid, err := os.ReadFile(filepath.Join(s.dir, name+".pid"))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("kill", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		s.end(r)
	}
	f := s.load(nil)
	expect(t, f, nil, "wrong == 0 and contradictions == 0")
	has(t, f, "TLS stream")
	has(t, f, "cannot be compared beyond here")
	if got := steps(f, path(t, f, source, filepath.Join(s.dir, "stored"))); !strings.Contains(got, " >stored") {
		t.Errorf("the way is %q, want one to the file that was stored", got)
	}
}

// TestOpenSSL has openssl s_client send a file to openssl s_server.
func TestOpenSSL(t *testing.T) {
	testenv.Short(t, "it runs servers")
	testenv.NeedProgram(t, "openssl", "sh")
	s := newScene(t)
	addr := "127.0.0.1:" + port(t)
	key, cert := filepath.Join(s.dir, "key.pem"), filepath.Join(s.dir, "cert.pem")
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out",
		cert, "-days", "2", "-subj", "/CN=localhost").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	source := s.write("source", 40_000, 3)
	server := s.start("server", "sh", "-c", "exec openssl s_server -quiet -naccept 1 -accept "+addr+" -cert "+cert+
		" -key "+key+" >stored")
	_, number, _ := strings.Cut(addr, ":")
	eventually(t, "LISTEN", "sh", "-c", fmt.Sprintf("grep -qi :%04X /proc/net/tcp && echo LISTEN", atoi(t, number)))
	s.end(s.start("client", "sh", "-c", "cat "+source+" | openssl s_client -quiet -no_ign_eof -connect "+addr))
	s.end(server)
	f := s.load(nil)
	expect(t, f, nil, "wrong == 0 and contradictions == 0")
	has(t, f, "TLS stream")
}

// atoi reads a number.
func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
