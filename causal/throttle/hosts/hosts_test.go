// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/internal/team"
)

// world is a judge with members that the test plays.
type world struct {
	t      *testing.T
	j      *judge
	orders map[*part]chan *throttle.Order
}

func newWorld(t *testing.T, names ...string) *world {
	t.Helper()
	w := &world{t, &judge{most: time.Hour}, map[*part]chan *throttle.Order{}}
	for _, name := range names {
		hub, member := net.Pipe()
		t.Cleanup(func() { hub.Close() })
		p := &part{Member: &team.Member{Wire: team.NewWire(hub), Name: name}}
		orders := make(chan *throttle.Order, 100)
		go func() {
			wire := team.NewWire(member)
			for {
				_, b, err := wire.Receive()
				o := new(throttle.Order)
				if err != nil || json.Unmarshal(b, o) != nil {
					return
				}
				orders <- o
			}
		}()
		w.j.parts, w.orders[p] = append(w.j.parts, p), orders
	}
	return w
}

func (w *world) says(i int, s throttle.State) {
	w.t.Helper()
	b, err := json.Marshal(s)
	if err == nil {
		err = w.j.hear(&heard{from: w.j.parts[i], kind: kindState, b: b})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) gets(i int) *throttle.Order {
	w.t.Helper()
	select {
	case o := <-w.orders[w.j.parts[i]]:
		return o
	case <-time.After(time.Minute):
		w.t.Fatal("no order came")
		return nil
	}
}

// TestJudge has a call released when all are free since nothing has moved, and were so when
// asked once more.
func TestJudge(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.says(0, throttle.State{Hold: 1})
	for i := range 2 {
		if o := w.gets(i); !o.Look || o.Epoch != 1 {
			t.Fatalf("%+v", o)
		}
	}
	w.says(0, throttle.State{Hold: 1, Epoch: 1, Free: true})
	// What is said of an earlier epoch does not count, and who moves has all count anew.
	w.says(1, throttle.State{Epoch: 0, Free: true})
	w.says(1, throttle.State{Epoch: 1, Moved: true})
	for i := range 2 {
		if o := w.gets(i); !o.Look || o.Epoch != 2 {
			t.Fatalf("%+v", o)
		}
	}
	w.says(1, throttle.State{Epoch: 2, Free: true, Next: map[string]int{"1.2": 7}})
	w.says(0, throttle.State{Hold: 1, Epoch: 2, Free: true})
	for i := range 2 {
		if o := w.gets(i); !o.Ask {
			t.Fatalf("%+v", o)
		}
	}
	w.says(0, throttle.State{Hold: 1, Epoch: 2, Free: true, Asked: true})
	w.says(1, throttle.State{Epoch: 2, Free: true, Asked: true, Next: map[string]int{"1.2": 7}})
	if o := w.gets(0); o.Release != 1 || o.Until != "" || len(o.Next) != 1 || o.Next["b:1.2"] != 7 {
		t.Fatalf("%+v", o)
	}
	w.says(0, throttle.State{Epoch: 2, Moved: true})
	if o := w.gets(1); !o.Rest {
		t.Fatalf("%+v", o)
	}

	// Who never becomes stuck is named when the hold has lasted long enough.
	w.gets(0)
	w.says(0, throttle.State{Hold: 2, Epoch: 2})
	w.says(1, throttle.State{Epoch: 3, On: "1.2"})
	w.j.most = 0
	w.j.tick()
	w.gets(0)
	if o := w.gets(0); o.Release != 2 || o.Until != "b:1.2" {
		t.Fatalf("%+v", o)
	}

	if err := w.j.hear(&heard{from: w.j.parts[0], kind: '?'}); err == nil {
		t.Error("nonsense is taken")
	}
}

// TestPieces puts a directory together again, and nothing outside of it.
func TestPieces(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	big := strings.Repeat("0123456789", pieceBytes/5)
	for name, text := range map[string]string{"a": big, "d/b": "x", "empty": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	hub, member := net.Pipe()
	go func() {
		defer member.Close()
		if err := sendDir(team.NewWire(member), from); err != nil {
			t.Error(err)
		}
	}()
	for w := team.NewWire(hub); ; {
		_, b, err := w.Receive()
		if err != nil {
			break
		}
		if err := takePiece(to, b); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"a": big, "d/b": "x", "empty": ""} {
		if b, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(b) != text {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	for _, name := range []string{"", "../x", "/x", "a/../../x"} {
		if err := takePiece(to, append(binary.LittleEndian.AppendUint16(nil, uint16(len(name))), name...)); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
	for _, b := range [][]byte{nil, {1}, {5, 0, 'a'}} {
		if err := takePiece(to, b); err == nil {
			t.Errorf("%v is taken", b)
		}
	}
}

func TestArgv(t *testing.T) {
	if got := Argv([]string{"./a", "--me={host}", "b"}, "n1"); !slices.Equal(got, []string{"./a", "--me=n1", "b"}) {
		t.Errorf("%q", got)
	}
}
