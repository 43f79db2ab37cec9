// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/team"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/replay/schedule"
)

// speaker is a member that says what a test wants.
type speaker struct{ *team.Wire }

func secretFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte("a secret of enough bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// hub runs a hub whose members the test plays: join makes one. Its launch command does
// nothing for long.
func hub(t *testing.T, names ...string) (join func(name string) speaker, result chan error, answers *[]replay.Answer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, secret := l.Addr().String(), secretFile(t)
	l.Close()
	tm, err := New(&Options{
		Names: names, Launch: "sh -c exec${IFS}sleep${IFS}60 {command}", Listen: addr, Secret: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
	result, answers = make(chan error, 1), new([]replay.Answer)
	go func() {
		var err error
		*answers, err = tm.Run(t.Context(), []byte(`{}`))
		result <- err
	}()
	return func(name string) speaker {
		t.Helper()
		for try := 0; ; try++ { // until the hub listens
			w, err := team.Join(t.Context(), addr, secret, name)
			if err == nil {
				t.Cleanup(func() { w.Close() })
				return speaker{w}
			}
			if try == 1000 {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}, result, answers
}

func (s speaker) wants(t *testing.T, kind byte) []byte {
	t.Helper()
	got, b, err := s.Receive()
	if err != nil || got != kind {
		t.Fatalf("got %c %q, %v; want %c", got, b, err, kind)
	}
	return b
}

func record(slot uint32, pos uint64) []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, slot), pos)
}

// TestRelay has two members tell each other how far they are, once both are ready.
func TestRelay(t *testing.T) {
	join, result, answers := hub(t, "a", "b")
	b, a := join("b"), join("a")
	if got := string(a.wants(t, kindPart)); got != `{"part":0,"members":["a","b"],"config":{}}` {
		t.Errorf("%s", got)
	}
	b.wants(t, kindPart)
	// A record may come with others.
	if err := a.Send(kindSignal, append(record(7, 3), record(schedule.ControlQueue, schedule.Ready)...)); err != nil {
		t.Fatal(err)
	}
	if got := b.wants(t, kindSignal); string(got) != string(record(7, 3)) {
		t.Errorf("%x", got)
	}
	if err := b.Send(kindSignal, record(schedule.ControlQueue, schedule.Ready)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []speaker{a, b} {
		if got := s.wants(t, kindSignal); string(got) != string(record(schedule.ControlQueue, schedule.Go)) {
			t.Errorf("%x", got)
		}
	}
	b.Send(kindAnswer, []byte("2"))
	a.Send(kindAnswer, []byte("1"))
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
		{"fails", func(t *testing.T, a, b speaker) { b.Send(kindFail, []byte("no room")) }, "host b: no room"},
		{"goes away", func(t *testing.T, a, b speaker) { a.Close() }, "host a: it ended without a report"},
		{"babbles", func(t *testing.T, a, b speaker) { a.Send('?', nil) },
			"host a: it said something that makes no sense"},
		{"cuts", func(t *testing.T, a, b speaker) { a.Send(kindSignal, make([]byte, schedule.RecordBytes-1)) },
			"host a: it said something that makes no sense"},
	} {
		t.Run(c.name, func(t *testing.T) {
			join, result, _ := hub(t, "a", "b")
			a, b := join("a"), join("b")
			a.wants(t, kindPart)
			b.wants(t, kindPart)
			c.do(t, a, b)
			if err := <-result; err == nil || err.Error() != c.want {
				t.Errorf("%v; want %s", err, c.want)
			}
			for { // the other one is ended
				if _, _, err := b.Receive(); err != nil {
					break
				}
			}
		})
	}
}
