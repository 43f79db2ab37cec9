package hosts

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
const (
	kindJoin   = 'J' // member: its name
	kindPart   = 'C' // hub: what to do, JSON
	kindSignal = 'S' // both: records of replay.RecordBytes
	kindAnswer = 'A' // member: its report
	kindFail   = 'F' // member: why there is none
	kindPing   = 'P' // both: it is still there
	headBytes  = 5
	maxFrame   = 256 << 20
)

// Bounds of what is waited for.
const (
	pingEvery = 2 * time.Second
	silence   = 30 * time.Second // after which the other side is taken for gone
)

// wire is a connection that frames are sent on.
type wire struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex
}

func newWire(c net.Conn) *wire { return &wire{conn: c, in: bufio.NewReader(c)} }

// send sends a frame. It is safe from any goroutine.
func (w *wire) send(kind byte, payload []byte) error {
	b := make([]byte, headBytes, headBytes+len(payload))
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], uint32(len(payload)))
	b = append(b, payload...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(silence))
	_, err := w.conn.Write(b)
	return err
}

// receive returns the next frame that is no ping.
func (w *wire) receive() (kind byte, payload []byte, err error) {
	for {
		_ = w.conn.SetReadDeadline(time.Now().Add(silence))
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

// ping says regularly that this side is there, until the connection ends.
func (w *wire) ping() {
	for w.send(kindPing, nil) == nil {
		time.Sleep(pingEvery)
	}
}
