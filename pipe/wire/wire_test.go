// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/iotape/iotape/pipe"
)

// listening is a server that can go away and come back at the same address.
type listening struct {
	network, address string
	tls              *tls.Config
	limits           Limits
	store            Store

	mu    sync.Mutex
	notes []string
	stop  func()
}

func listen(t *testing.T, network string, store Store) *listening {
	t.Helper()
	l := &listening{network: network, address: "127.0.0.1:0", store: store}
	if network == "unix" {
		l.address = filepath.Join(t.TempDir(), "socket")
	}
	l.start(t)
	t.Cleanup(func() { l.stop() })
	return l
}

func (l *listening) start(t *testing.T) {
	t.Helper()
	var ln net.Listener
	var err error
	for range 100 { // the address may be taken for a moment
		if ln, err = net.Listen(l.network, l.address); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.address = ln.Addr().String()
	if l.tls != nil {
		ln = tls.NewListener(ln, l.tls)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{Store: l.store, Limits: l.limits, Note: l.note}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, ln) }()
	l.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		l.stop = func() {}
	}
}

func (l *listening) note(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, line)
}

// noted waits for a note.
func (l *listening) noted(t *testing.T, want string) {
	t.Helper()
	for range 500 {
		l.mu.Lock()
		all := strings.Join(l.notes, "\n")
		l.mu.Unlock()
		if strings.Contains(all, want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no note %q in %q", want, l.notes)
}

func newDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := NewDir(path)
	if err != nil {
		t.Fatal(err)
	}
	d.MinFree, d.NoSync = 1, true
	return d
}

// sending is a stream on its way, and what it should be at the other end.
type sending struct {
	c    *Client
	w    *pipe.Writer
	want bytes.Buffer
}

func send(t *testing.T, l *listening, o *Options) *sending {
	t.Helper()
	s := &sending{}
	var err error
	if s.c, err = Dial(t.Context(), l.network, l.address, o); err != nil {
		t.Fatal(err)
	}
	if s.w, err = pipe.NewWriter(io.MultiWriter(&s.want, s.c), nil, &pipe.Options{BlockBytes: 4096}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sending) write(t *testing.T, blocks int) {
	t.Helper()
	b := make([]byte, 4096)
	for range blocks {
		rand.Read(b)
		if _, err := s.w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *sending) close(t *testing.T) {
	t.Helper()
	if err := s.w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.c.Close(); err != nil {
		t.Fatal(err)
	}
}

// arrived compares what is in the directory with what was sent, byte by byte.
func (s *sending) arrived(t *testing.T, d *Dir) {
	t.Helper()
	got, err := os.ReadFile(d.Name(s.w.Header().Serial))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, s.want.Bytes()) {
		t.Errorf("%d bytes arrived, %d were sent, and they differ", len(got), s.want.Len())
	}
}

// TestDelivery sends a stream over each kind of connection.
func TestDelivery(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			d := newDir(t, t.TempDir())
			l := listen(t, network, d)
			s := send(t, l, nil)
			s.write(t, 300)
			s.close(t)
			s.arrived(t, d)
			l.noted(t, "is complete, blocks 0 to 300")
		})
	}
}

// TestGoesAway stops the listener in the middle, loses the end of its last block, and
// starts another one that has only the directory.
func TestGoesAway(t *testing.T) {
	dir := t.TempDir()
	l := listen(t, "tcp", newDir(t, dir))
	var notes []string
	s := send(t, l, &Options{Note: func(line string) { notes = append(notes, line) }})
	for round := range 4 {
		s.write(t, 50)
		time.Sleep(time.Duration(round) * 20 * time.Millisecond)
		l.stop()
		if round == 2 { // what a killed listener leaves: half a block that it never acknowledged
			f, err := os.OpenFile(newDir(t, dir).Name(s.w.Header().Serial), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			var head [pipe.BlockHeaderBytes]byte
			h := pipe.BlockHeader{Number: 1, Serial: 1, Length: 4096}
			h.Put(head[:])
			if _, err := f.Write(head[:20]); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		s.write(t, 50)
		l.store = newDir(t, dir)
		l.start(t)
	}
	s.close(t)
	s.arrived(t, l.store.(*Dir))
	if all := strings.Join(notes, "\n"); !strings.Contains(all, "the connection is lost") ||
		!strings.Contains(all, "connected again") {
		t.Errorf("notes: %q", notes)
	}
}

// cutter passes connections on, and cuts each after some bytes.
func cutter(t *testing.T, to string) (address string, cuts func() int) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	var wg sync.WaitGroup
	t.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			wg.Go(func() { _, _ = io.Copy(in, out); in.Close() })
			wg.Go(func() {
				_, err := io.CopyN(out, in, 2000+mrand.Int64N(200_000))
				if err == nil {
					mu.Lock()
					n++
					mu.Unlock()
				}
				out.Close()
				in.Close()
			})
		}
	})
	return ln.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return n }
}

// TestCutConnections cuts connections at random places: each block arrives once.
func TestCutConnections(t *testing.T) {
	d := newDir(t, t.TempDir())
	l := listen(t, "tcp", d)
	address, cuts := cutter(t, l.address)
	s := send(t, &listening{network: "tcp", address: address}, nil)
	s.write(t, 400)
	s.close(t)
	s.arrived(t, d)
	if cuts() == 0 {
		t.Error("nothing was cut: the test tests nothing")
	}
}

// slowly is a store that takes its time, until it is told not to.
type slowly struct {
	Store
	gate chan struct{}
}

func (s *slowly) Open(h *pipe.Header, encoded []byte) (Log, error) {
	l, err := s.Store.Open(h, encoded)
	return &slowLog{l, s.gate}, err
}

type slowLog struct {
	Log
	gate chan struct{}
}

func (l *slowLog) Append(h *pipe.BlockHeader, b []byte) error {
	<-l.gate
	return l.Log.Append(h, b)
}

// TestSlow has a listener that takes nothing for a while: the client keeps as much as it
// may, in memory and in its file, and its writer waits.
func TestSlow(t *testing.T) {
	d := newDir(t, t.TempDir())
	gate := make(chan struct{})
	l := listen(t, "tcp", &slowly{d, gate})
	file := filepath.Join(t.TempDir(), "spool")
	s := send(t, l, &Options{SpoolBytes: 20_000, SpoolFile: file, SpoolFileBytes: 30_000})
	if _, err := os.Stat(file); err == nil {
		t.Error("the spool has a name: it would stay behind")
	}
	written := make(chan int, 100)
	go func() {
		for i := range 60 {
			s.write(t, 1)
			written <- i
		}
		close(written)
	}()
	for n := range written {
		if n >= 10 { // 4 in memory, 7 in the file
			break
		}
	}
	s.c.mu.Lock()
	if m, f := s.c.spool.memory, s.c.spool.fileEnd; m > 20_000 || f > 30_000 || f == 0 {
		t.Errorf("%d bytes in memory, %d in the file", m, f)
	}
	s.c.mu.Unlock()
	select {
	case <-time.After(50 * time.Millisecond):
	case n := <-written:
		if n > 13 {
			t.Errorf("block %d was taken", n)
		}
	}
	close(gate)
	for range written {
	}
	s.close(t)
	s.arrived(t, d)
}

// TestFull has a listener without room, which then gets some.
func TestFull(t *testing.T) {
	d := newDir(t, t.TempDir())
	d.MaxBytes = 100_000
	l := listen(t, "tcp", d)
	s := send(t, l, nil)
	s.write(t, 60)
	l.noted(t, "the directory has 100000 bytes already")
	d.mu.Lock()
	d.MaxBytes = 0
	d.mu.Unlock()
	s.close(t)
	s.arrived(t, d)
}

// TestGivenUp has a listener that does not come back: writing and closing end in an
// error, and what was not sent is in the spool's file, from where it can be sent.
func TestGivenUp(t *testing.T) {
	dir := t.TempDir()
	l := listen(t, "tcp", newDir(t, dir))
	file := filepath.Join(t.TempDir(), "spool")
	s := send(t, l, &Options{GiveUp: 300 * time.Millisecond, SpoolFile: file})
	s.write(t, 10)
	for range 500 { // until some have arrived
		if st, err := os.Stat(newDir(t, dir).Name(s.w.Header().Serial)); err == nil && st.Size() > 20000 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	l.stop()
	s.write(t, 30)
	if err := s.w.Close(); err != nil {
		t.Fatal(err)
	}
	err := s.c.Close()
	if err == nil || !strings.Contains(err.Error(), "given up after 300ms") ||
		!strings.Contains(err.Error(), "are in "+file) {
		t.Fatalf("%v", err)
	}
	if _, again := s.c.Write([]byte("x")); again == nil {
		t.Error("written after the end")
	}

	d := newDir(t, dir)
	l.store = d
	l.start(t)
	c, err := Dial(t.Context(), l.network, l.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer left.Close()
	scan, err := pipe.NewScanner(left)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(scan.Encoded()); err != nil {
		t.Fatal(err)
	}
	for {
		h, payload, err := scan.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, pipe.BlockHeaderBytes)
		h.Put(b)
		if _, err := c.Write(append(b, payload...)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.arrived(t, d)
}

// TestSentTwice sends a whole stream again: nothing is added, and it ends well.
func TestSentTwice(t *testing.T) {
	d := newDir(t, t.TempDir())
	l := listen(t, "tcp", d)
	s := send(t, l, nil)
	s.write(t, 30)
	s.close(t)
	c, err := Dial(t.Context(), l.network, l.address, &Options{SpoolBytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	scan, err := pipe.NewScanner(bytes.NewReader(s.want.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(scan.Encoded()); err != nil {
		t.Fatal(err)
	}
	for from := scan.Offset(); ; from = scan.Offset() {
		if _, _, err := scan.Next(); err == io.EOF {
			break
		}
		if _, err := c.Write(s.want.Bytes()[from:scan.Offset()]); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.arrived(t, d)
}
