// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/iotape/iotape/pipe"
)

// A Store keeps the streams that a Server gets.
type Store interface {
	// Open returns the log of a stream, new or existing. At most one log of a stream is
	// open at a time.
	Open(h *pipe.Header, encoded []byte) (Log, error)
}

// A Log is a stream with the blocks that have arrived.
type Log interface {
	// Next returns how many blocks the log has.
	Next() uint64
	// Append adds the next block, with its header, valid until it returns.
	Append(h *pipe.BlockHeader, block []byte) error
	// Sync makes the appended blocks durable. The server acknowledges them afterwards.
	Sync() error
	Close() error
}

// ErrRefused is wrapped by a Store's errors for streams that it never takes. After other
// errors the client tries again.
var ErrRefused = errors.New("refused")

// Limits limit what peers can make a Server do. Zero values are the defaults.
type Limits struct {
	Conns     int           // at one time; 64
	HelloTime time.Duration // for TLS and the hello; 10 s
	BlockTime time.Duration // for a block, from its first byte to its last; 30 s
	IdleTime  time.Duration // between blocks; 10 min
	Blocks    int           // bytes of a block, at most; 16 MiB, pipe.MaxBlockBytes
}

func (l *Limits) defaults() {
	def := func(v, d time.Duration) time.Duration {
		if v == 0 {
			return d
		}
		return v
	}
	l.HelloTime, l.BlockTime, l.IdleTime = def(l.HelloTime, 10*time.Second), def(l.BlockTime, 30*time.Second),
		def(l.IdleTime, 10*time.Minute)
	if l.Conns == 0 {
		l.Conns = 64
	}
	if l.Blocks == 0 {
		l.Blocks = pipe.MaxBlockBytes
	}
}

// Server takes streams from connections and puts them into a Store.
type Server struct {
	Store  Store
	Limits Limits
	// Note, if not nil, is called when a stream begins, continues or ends, and when a peer
	// is refused. Calls can come from several goroutines at the same time.
	Note func(line string)

	mu    sync.Mutex
	taken map[uint64]*session // by serial
}

// session is a connection that has a stream.
type session struct {
	conn net.Conn
	done chan struct{}
}

// syncBytes is the most that a log gets between two syncs, in bytes.
const syncBytes = 8 << 20

// Serve accepts connections until the context ends. It closes the listener, and returns
// when all connections are closed.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.Limits.defaults()
	s.taken = map[uint64]*session{}
	var conns sync.WaitGroup
	defer conns.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	slots := make(chan struct{}, s.Limits.Conns)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
				errors.Is(err, syscall.ECONNABORTED) {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			return fmt.Errorf("listen: %w", err)
		}
		select {
		case slots <- struct{}{}:
		default:
			s.note("%s: refused: %d connections are open", conn.RemoteAddr(), s.Limits.Conns)
			conn.Close()
			continue
		}
		conns.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			if err := s.serve(conn); err != nil && ctx.Err() == nil {
				s.note("%s: %v", peer(conn), err)
			}
		})
	}
}

func peer(conn net.Conn) string {
	if a := conn.RemoteAddr().String(); a != "" && a != "@" {
		return a
	}
	return "a local client"
}

func (s *Server) note(format string, args ...any) {
	if s.Note != nil {
		s.Note(fmt.Sprintf(format, args...))
	}
}

// serve takes a stream from a connection.
func (s *Server) serve(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(s.Limits.HelloTime))
	r := bufio.NewReaderSize(conn, 64<<10)
	h, encoded, err := readHello(r)
	if err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	if h.MaxPayload() > s.Limits.Blocks+pipe.MaxLayers*64 {
		_, _ = conn.Write(appendAnswer(nil, codeRefused, 0))
		return fmt.Errorf("stream %016x: blocks of %d bytes are too large", h.Serial, h.BlockBytes)
	}
	end := s.take(h.Serial, conn)
	defer end()
	log, err := s.Store.Open(h, encoded)
	if err != nil {
		_, _ = conn.Write(appendAnswer(nil, codeOf(err), 0))
		return fmt.Errorf("stream %016x: %w", h.Serial, err)
	}
	t := &taking{s: s, conn: conn, r: r, h: h, log: log}
	s.note("%s: stream %016x, from block %d", peer(conn), h.Serial, log.Next())
	err = t.run()
	if closeErr := log.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("stream %016x: %w", h.Serial, err)
	}
	return nil
}

// take makes the connection the only one of a stream. A client that connects again knows
// earlier than the server that the former connection is dead.
func (s *Server) take(serial uint64, conn net.Conn) (end func()) {
	me := &session{conn, make(chan struct{})}
	for {
		s.mu.Lock()
		other := s.taken[serial]
		if other == nil {
			s.taken[serial] = me
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.taken, serial)
				s.mu.Unlock()
				close(me.done)
			}
		}
		s.mu.Unlock()
		other.conn.Close()
		<-other.done
	}
}

func codeOf(err error) code {
	if errors.Is(err, ErrRefused) {
		return codeRefused
	}
	return codeLater
}

// taking is a stream that is being received.
type taking struct {
	s     *Server
	conn  net.Conn
	r     *bufio.Reader
	h     *pipe.Header
	log   Log
	buf   []byte
	since int // bytes appended and not synced
}

// run takes blocks until the peer closes the connection, which is no error between blocks.
func (t *taking) run() error {
	if err := t.answer(codeHave); err != nil {
		return err
	}
	for {
		_ = t.conn.SetReadDeadline(time.Now().Add(t.s.Limits.IdleTime))
		if _, err := t.r.Peek(1); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		final, err := t.block()
		if err == nil && (t.r.Buffered() == 0 || t.since >= syncBytes || final) {
			err = t.sync()
		}
		var bad protocolError
		switch {
		case errors.As(err, &bad):
			return err
		case err != nil:
			_ = t.answer(codeOf(err))
			return err
		case final:
			t.s.note("%s: stream %016x is complete, blocks 0 to %d", peer(t.conn), t.h.Serial, t.log.Next()-1)
		}
	}
}

// protocolError is an error of the peer. The server does not answer it.
type protocolError struct{ error }

func (p protocolError) Unwrap() error { return p.error }

// block takes one block.
func (t *taking) block() (final bool, err error) {
	_ = t.conn.SetReadDeadline(time.Now().Add(t.s.Limits.BlockTime))
	if cap(t.buf) < pipe.BlockHeaderBytes {
		t.buf = make([]byte, pipe.BlockHeaderBytes)
	}
	b := t.buf[:pipe.BlockHeaderBytes]
	if _, err := io.ReadFull(t.r, b); err != nil {
		return false, protocolError{fmt.Errorf("block %d: %w", t.log.Next(), err)}
	}
	var h pipe.BlockHeader
	if !h.Parse(b) || h.Serial != t.h.Serial || h.Length > t.h.MaxPayload() {
		return false, protocolError{errors.New("the peer sent something that is not a block of its stream")}
	}
	if h.Number > t.log.Next() {
		return false, protocolError{fmt.Errorf("block %d where block %d is expected", h.Number, t.log.Next())}
	}
	if n := pipe.BlockHeaderBytes + h.Length; cap(t.buf) < n {
		t.buf = append(make([]byte, 0, pipe.BlockHeaderBytes+t.h.MaxPayload()), b...)
	}
	b = t.buf[:pipe.BlockHeaderBytes+h.Length]
	if _, err := io.ReadFull(t.r, b[pipe.BlockHeaderBytes:]); err != nil {
		return false, protocolError{fmt.Errorf("block %d: %w", h.Number, err)}
	}
	if h.Number < t.log.Next() {
		return false, nil // a repeated block
	}
	t.since += len(b)
	return h.Final, t.log.Append(&h, b)
}

// sync acknowledges what was appended.
func (t *taking) sync() error {
	if t.since > 0 {
		if err := t.log.Sync(); err != nil {
			return err
		}
		t.since = 0
	}
	return t.answer(codeHave)
}

func (t *taking) answer(c code) error {
	_ = t.conn.SetWriteDeadline(time.Now().Add(t.s.Limits.HelloTime))
	_, err := t.conn.Write(appendAnswer(nil, c, t.log.Next()))
	return err
}
