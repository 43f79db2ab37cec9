// SPDX-License-Identifier: Apache-2.0

package team

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// What is sent is a frame: kind(u8) length(u32, little-endian) payload.
// The kinds are the users', but for these.
const (
	kindJoin  = 'J' // member: its name
	kindPing  = 'P' // both: it is still there
	headBytes = 5
	maxFrame  = 256 << 20
)

// Bounds of what is waited for.
const (
	pingEvery = 2 * time.Second
	greetTime = 10 * time.Second // that somebody who connects may take to say who it is
	// Silence is after what time without a word the other side is taken for gone.
	Silence = 30 * time.Second
)

// Wire is a connection that frames are sent on.
type Wire struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex
}

// NewWire returns a Wire on a connection.
func NewWire(c net.Conn) *Wire { return &Wire{conn: c, in: bufio.NewReader(c)} }

// Close ends the connection.
func (w *Wire) Close() error { return w.conn.Close() }

// Send sends a frame. It is safe from any goroutine.
func (w *Wire) Send(kind byte, payload []byte) error {
	b := make([]byte, headBytes, headBytes+len(payload))
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], uint32(len(payload)))
	b = append(b, payload...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(Silence))
	_, err := w.conn.Write(b)
	return err
}

// Receive returns the next frame that is no ping.
func (w *Wire) Receive() (kind byte, payload []byte, err error) { return w.receive(time.Time{}) }

// receive is Receive with another bound, if it is not zero.
func (w *Wire) receive(end time.Time) (kind byte, payload []byte, err error) {
	for {
		if end.IsZero() {
			_ = w.conn.SetReadDeadline(time.Now().Add(Silence))
		}
		var head [headBytes]byte
		if _, err := io.ReadFull(w.in, head[:]); err != nil {
			return 0, nil, err
		}
		n := binary.LittleEndian.Uint32(head[1:])
		if n > maxFrame {
			return 0, nil, fmt.Errorf("a frame of %d bytes", n)
		}
		// Memory is taken as bytes arrive, not as the head promises.
		payload, err = io.ReadAll(io.LimitReader(w.in, int64(n)))
		if err != nil {
			return 0, nil, err
		}
		if len(payload) < int(n) {
			return 0, nil, io.ErrUnexpectedEOF
		}
		if head[0] != kindPing {
			return head[0], payload, nil
		}
	}
}

// Ping says regularly that this side is there, until the connection ends.
func (w *Wire) Ping() {
	for w.Send(kindPing, nil) == nil {
		time.Sleep(pingEvery)
	}
}
