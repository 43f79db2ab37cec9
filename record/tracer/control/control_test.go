// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// recorded is a Handler that writes down what it is asked for.
type recorded struct {
	mu    sync.Mutex
	asked []string
	fail  error
}

func (r *recorded) do(format string, args ...any) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, fmt.Sprintf(format, args...))
	return "done", r.fail
}

func (r *recorded) Info() Info {
	return Info{PID: os.Getpid(), Name: "n", Tracers: []TracerStatus{{Name: "a b/c", State: "running"}}}
}
func (r *recorded) Start(name string) (string, error)  { return r.do("start %q", name) }
func (r *recorded) Stop(name string) (string, error)   { return r.do("stop %q", name) }
func (r *recorded) Add(toml string) (string, error)    { return r.do("add %d bytes", len(toml)) }
func (r *recorded) Remove(name string) (string, error) { return r.do("remove %q", name) }
func (r *recorded) Set(name string, c *Change) (string, error) {
	if c.Filter == nil {
		return r.do("set %q nothing", name)
	}
	return r.do("set %q %q", name, *c.Filter)
}

// serve serves h at a place of the test's own and returns a client.
func serve(t *testing.T, h Handler) (*Remote, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "control-") // short enough for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	s, err := Listen(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	all, err := Running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if strings.HasPrefix(r.path, dir) {
			return r, r.path
		}
	}
	t.Fatalf("not found: %v", all)
	return nil, ""
}

func TestRequests(t *testing.T) {
	h := &recorded{}
	r, path := serve(t, h)
	ctx := t.Context()
	if r.PID != os.Getpid() || len(r.Tracers) != 1 || r.Tracers[0].Name != "a b/c" {
		t.Errorf("%+v", r.Info)
	}
	text := "op = x"
	for _, ask := range []func() (string, error){
		func() (string, error) { return r.Start(ctx, "a") },
		func() (string, error) { return r.Stop(ctx, "a b/c") },
		func() (string, error) { return r.Add(ctx, strings.Repeat("#", 1000)) },
		func() (string, error) { return r.Remove(ctx, "..") },
		func() (string, error) { return r.Set(ctx, "ä", &Change{Filter: &text}) },
		func() (string, error) { return r.Set(ctx, "a", &Change{}) },
	} {
		if got, err := ask(); got != "done" && err == nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	want := `[start "a" stop "a b/c" add 1000 bytes set "ä" "op = x" set "a" nothing]`
	if got := fmt.Sprint(h.asked); got != want {
		t.Errorf("asked for %s\nwant %s", got, want)
	}
	h.fail = errors.New("no such tracer")
	if _, err := r.Start(ctx, "x"); err == nil || err.Error() != "no such tracer" {
		t.Error(err)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want mode %o", name, fi.Mode(), err, mode)
		}
	}
}

// TestHostile sends what no iotape sends.
func TestHostile(t *testing.T) {
	h := &recorded{}
	_, path := serve(t, h)
	for name, k := range map[string]struct{ send, want string }{
		"garbage":     {"\x00\xff\x01 iotape\r\n\r\n", "400"},
		"no path":     {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "404"},
		"method":      {"PUT /tracers HTTP/1.1\r\nHost: x\r\n\r\n", "405"},
		"not JSON":    {"PATCH /tracers/a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nxyz", "422"},
		"unknown key": {"PATCH /tracers/a HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{\"fliter\": \"x\"}", "422"},
		"too long": {fmt.Sprintf("POST /tracers HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", MaxBytes+1) + strings.Repeat("x", MaxBytes+1),
			"422"},
		"long head": {"GET /tracers HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go io.Copy(conn, strings.NewReader(k.send))
			b := make([]byte, 64)
			n, _ := conn.Read(b)
			if status := strings.Fields(string(b[:n])); len(status) < 2 || status[1] != k.want {
				t.Errorf("answer %q, want status %s", b[:n], k.want)
			}
		})
	}
	if len(h.asked) != 0 {
		t.Error(h.asked)
	}
}

// TestPeers has another user connect, by a socket that the modes would let him use.
func TestPeers(t *testing.T) {
	testenv.NeedRoot(t)
	cred := testenv.NeedUser(t)
	_, path := serve(t, &recorded{})
	for _, name := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	const ask = "GET /tracers HTTP/1.0\\r\\n\\r\\n"
	for _, k := range []struct {
		cred *syscall.Credential
		ok   bool
	}{{cred, false}, {nil, true}} {
		out := connectAs(t, k.cred, path, ask)
		if got := bytes.Contains(out, []byte("200 OK")); got != k.ok {
			t.Errorf("as %+v: %q", k.cred, out)
		}
	}
}

func TestClosing(t *testing.T) {
	block := make(chan struct{})
	h := &slow{recorded: &recorded{}, begun: make(chan struct{}), block: block}
	dir, err := os.MkdirTemp("", "control-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	s, err := Listen(h)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Running(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	answer := make(chan error, 1)
	go func() {
		_, err := all[0].Stop(context.Background(), "a")
		answer <- err
	}()
	<-h.begun
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
		t.Error("closed before the request had its answer")
	case <-time.After(50 * time.Millisecond):
	}
	close(block)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	<-closed
	if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

type slow struct {
	*recorded
	begun, block chan struct{}
}

func (s *slow) Stop(name string) (string, error) {
	close(s.begun)
	<-s.block
	return s.recorded.Stop(name)
}

// connectAs has a user send a request, and returns the answer.
func connectAs(t *testing.T, cred *syscall.Credential, path, ask string) []byte {
	t.Helper()
	const python = "/usr/bin/python3" // one that every user may run
	testenv.NeedProgram(t, python)
	cmd := exec.Command(python, "-c", fmt.Sprintf(`
import socket
s = socket.socket(socket.AF_UNIX)
s.connect(%q)
try:
    s.sendall(b"%s")
    print(s.recv(65536))
except OSError as e:
    print(e)
`, path, ask))
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: cred}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return out
}
