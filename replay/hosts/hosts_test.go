package hosts

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"iotape/replay"
)

// speaker is a member that says what a test wants.
type speaker struct{ *wire }

func secretFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const text = "a secret of enough bytes"

// team runs a hub whose members the test plays. Its launch command does nothing for long.
func team(t *testing.T, wait time.Duration, names ...string) (addr string, result chan error, answers *[]replay.Answer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	tm, err := New(&Options{Names: names, Launch: "sh -c exec${IFS}sleep${IFS}60 {command}", Listen: addr, Secret: secretFile(t, text), Wait: wait})
	if err != nil {
		t.Fatal(err)
	}
	result, answers = make(chan error, 1), new([]replay.Answer)
	go func() {
		var err error
		*answers, err = tm.Run(t.Context(), []byte(`{}`))
		result <- err
	}()
	return addr, result, answers
}

func dial(t *testing.T, addr, secret string) (speaker, error) {
	t.Helper()
	config, err := tlsOf([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	var c net.Conn
	for range 100 { // until the hub listens
		if c, err = net.Dial("tcp", addr); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	conn := tls.Client(c, config)
	return speaker{newWire(conn)}, conn.Handshake()
}

func joins(t *testing.T, addr, name string) speaker {
	t.Helper()
	s, err := dial(t, addr, text)
	if err == nil {
		err = s.send(kindJoin, []byte(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s speaker) wants(t *testing.T, kind byte) []byte {
	t.Helper()
	got, b, err := s.receive()
	if err != nil || got != kind {
		t.Fatalf("got %c %q, %v; want %c", got, b, err, kind)
	}
	return b
}

func record(lane uint32, pos uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, lane), pos)
}

// TestRelay has two members tell each other how far they are, once both are ready.
func TestRelay(t *testing.T) {
	addr, result, answers := team(t, 0, "a", "b")
	b, a := joins(t, addr, "b"), joins(t, addr, "a")
	if got := string(a.wants(t, kindPart)); got != `{"part":0,"of":2,"config":{}}` {
		t.Errorf("%s", got)
	}
	b.wants(t, kindPart)
	// A record may come with others.
	if err := a.send(kindSignal, append(record(7, 3), record(replay.ControlLane, replay.Ready)...)); err != nil {
		t.Fatal(err)
	}
	if got := b.wants(t, kindSignal); string(got) != string(record(7, 3)) {
		t.Errorf("%x", got)
	}
	if err := b.send(kindSignal, record(replay.ControlLane, replay.Ready)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []speaker{a, b} {
		if got := s.wants(t, kindSignal); string(got) != string(record(replay.ControlLane, replay.Go)) {
			t.Errorf("%x", got)
		}
	}
	b.send(kindAnswer, []byte("2"))
	a.send(kindAnswer, []byte("1"))
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if x := *answers; len(x) != 2 || x[0].Member != "a" || string(x[0].Data) != "1" || x[1].Member != "b" {
		t.Errorf("%v", x)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(t *testing.T, a, b speaker)
		want string
	}{
		{"fails", func(t *testing.T, a, b speaker) { b.send(kindFail, []byte("no room")) }, "host b: no room"},
		{"goes away", func(t *testing.T, a, b speaker) { a.conn.Close() }, "host a: it ended without a report"},
		{"babbles", func(t *testing.T, a, b speaker) { a.send('?', nil) }, "host a: it said something that makes no sense"},
		{"cuts", func(t *testing.T, a, b speaker) { a.send(kindSignal, make([]byte, replay.RecordBytes-1)) }, "host a: it said something that makes no sense"},
		{"is huge", func(t *testing.T, a, b speaker) { a.conn.Write([]byte{kindAnswer, 255, 255, 255, 255}) }, "host a: a frame of 4294967295 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, result, _ := team(t, 0, "a", "b")
			a, b := joins(t, addr, "a"), joins(t, addr, "b")
			a.wants(t, kindPart)
			b.wants(t, kindPart)
			c.do(t, a, b)
			if err := <-result; err == nil || err.Error() != c.want {
				t.Errorf("%v; want %s", err, c.want)
			}
			for { // the other one is ended
				if _, _, err := b.receive(); err != nil {
					break
				}
			}
		})
	}
}

// TestJoin: who has another secret, or another name, is nobody, and the wait has a bound
// that names who is missing.
func TestJoin(t *testing.T) {
	addr, result, _ := team(t, 2*time.Second, "a", "b")
	joins(t, addr, "a")
	if s, err := dial(t, addr, text+"!"); err == nil {
		if _, _, err = s.receive(); err == nil {
			t.Error("another secret is taken")
		}
	}
	joins(t, addr, "c")
	if err := <-result; err == nil || err.Error() != "host b did not join within 2s" {
		t.Error(err)
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
	tm, err := New(&Options{Names: []string{"a", "b"}, Launch: "sh -c exit${IFS}3 {command}"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tm.Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "its replayer ended: exit status 3") {
		t.Error(err)
	}
	if err := tm.Close(); err != nil {
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
		w := newWire(a)
		for n := 0; ; n++ {
			_, payload, err := w.receive()
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
