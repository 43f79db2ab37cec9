// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const text = "a secret of enough bytes"

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// gathered is what Gather returned.
type gathered struct {
	names []string
	err   error
}

// gather runs a hub whose members the test plays. Its launch command does nothing for long.
func gather(t *testing.T, wait time.Duration, names ...string) (addr, secret string, result chan gathered) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, secret = l.Addr().String(), secretFile(t, text)
	l.Close()
	h, err := New(&Options{Names: names, Launch: "sh -c exec${IFS}sleep${IFS}60 {command}", Listen: addr,
		Secret: secret, Wait: wait, Command: "none", Helper: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	result = make(chan gathered, 1)
	go func() {
		ctx, cancel := context.WithCancelCause(t.Context())
		members, end, err := h.Gather(ctx, cancel)
		g := gathered{err: err}
		for _, m := range members {
			g.names = append(g.names, m.Name)
		}
		cancel(nil)
		if err == nil {
			end()
		}
		result <- g
	}()
	return addr, secret, result
}

// connect connects to a hub, as soon as it listens.
func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	for try := 0; ; try++ {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			return c
		}
		if try == 1000 {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func joins(t *testing.T, addr, secret, name string) *Wire {
	t.Helper()
	connect(t, addr).Close()
	w, err := Join(t.Context(), addr, secret, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// TestGather: members are greeted while somebody has connected who says nothing.
func TestGather(t *testing.T) {
	addr, secret, result := gather(t, time.Minute, "a", "b", "c")
	connect(t, addr)
	connect(t, addr)
	t.Setenv("PMI_RANK", "1")
	joins(t, addr, secret, "c")
	joins(t, addr, secret, "") // b, says its launcher
	joins(t, addr, secret, "a")
	if g := <-result; g.err != nil || strings.Join(g.names, " ") != "a b c" {
		t.Errorf("%+v", g)
	}
}

// TestJoin: who has another secret, or another name, is nobody, and the wait has a bound
// that names who is missing.
func TestJoin(t *testing.T) {
	addr, secret, result := gather(t, 3*time.Second, "a", "b")
	joins(t, addr, secret, "a")
	if w, err := Join(t.Context(), addr, secretFile(t, text+"!"), "b"); err == nil {
		if _, _, err = w.Receive(); err == nil {
			t.Error("another secret is taken")
		}
	}
	joins(t, addr, secret, "c")
	joins(t, addr, secret, "a")
	if g := <-result; g.err == nil || g.err.Error() != "host b did not join within 3s" {
		t.Error(g.err)
	}
}

func TestBadOptions(t *testing.T) {
	open := secretFile(t, text)
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "names of hosts"},
		{Options{Names: []string{"a"}, Launch: "ssh {host}"}, "has no word {command}"},
		{Options{Names: []string{"a"}, Launch: "no-such-launcher {host} {command}"}, `no-such-launcher: executable file not found in $PATH`},
		{Options{Names: []string{"a"}, Listen: "0.0.0.0:0"}, "name an address that the hosts reach"},
		{Options{Names: []string{"a"}, Listen: "here"}, "listen on"},
		{Options{Names: []string{"a"}, Secret: open}, "is not its owner's alone: chmod 600"},
		{Options{Names: []string{"a"}, Secret: secretFile(t, "short")}, "less than 16 bytes"},
	} {
		if _, err := New(&c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// TestSecret has each way in which members get a secret that the hub makes up. None of them
// leaves a file, and none is on a command line.
func TestSecret(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, launch := range []string{"sh -c exec${IFS}cat {command}", "sh -c exec${IFS}cat {n} {command}"} {
		h, err := New(&Options{Names: []string{"a"}, Launch: launch, Command: "none", Helper: "helper"})
		if err != nil {
			t.Fatal(err)
		}
		var secret []byte
		if h.once {
			secret, err = readSecret(h.secret)
		} else if secret, err = lineSecret(strings.NewReader(string(h.input))); h.secret != FromInput {
			t.Errorf("%s: the secret is told as %q", launch, h.secret)
		}
		if err != nil || len(secret) < minSecret || strings.Contains(h.secret, string(secret)) {
			t.Errorf("%s: %q in %s: %v", launch, secret, h.secret, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(h.secret); err == nil {
			t.Errorf("%s: %s is left", launch, h.secret)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("%v is left, %v", list, err)
	}
	if _, err := lineSecret(strings.NewReader("")); err == nil ||
		!strings.Contains(err.Error(), "did not come on the standard input") {
		t.Error(err)
	}
}

// TestEnds: a helper whose launcher ends before it has joined is not waited for, whatever
// the launcher found.
func TestEnds(t *testing.T) {
	for _, c := range []struct{ name, launch, want string }{
		{"failed", "sh -c exit${IFS}3 {command}", "its helper ended: exit status 3"},
		{"did nothing for b", "sh -c test${IFS}{host}${IFS}=${IFS}b&&echo${IFS}nobody>&2||exec${IFS}sleep${IFS}60 {command}", "host b: its helper did not join, and what launched it has ended: nobody"},
		{"did nothing for all", "sh -c : {n} {command}", "sh has ended, and 2 of 2 members did not join"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := New(&Options{Names: []string{"a", "b"}, Launch: c.launch, Wait: time.Hour,
				Command: "none", Helper: "helper"})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if _, _, err := h.Gather(ctx, cancel); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

// TestHuge: a frame that is longer than any is refused before memory is taken for it.
func TestHuge(t *testing.T) {
	a, z := net.Pipe()
	defer a.Close()
	go z.Write([]byte{'X', 255, 255, 255, 255})
	if _, _, err := NewWire(a).Receive(); err == nil || err.Error() != "a frame of 4294967295 bytes" {
		t.Error(err)
	}
}

// FuzzFrame reads what anybody may send.
func FuzzFrame(f *testing.F) {
	f.Add([]byte("S\x0c\x00\x00\x00............"))
	f.Add([]byte("P\x00\x00\x00\x00J\x01\x00\x00\x00a"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, z := net.Pipe()
		go func() { z.Write(b); z.Close() }()
		w := NewWire(a)
		for n := 0; ; n++ {
			_, payload, err := w.Receive()
			if err != nil {
				break
			}
			if len(payload) > len(b) || n > len(b) {
				t.Fatal("more than was sent")
			}
		}
		a.Close()
	})
}
