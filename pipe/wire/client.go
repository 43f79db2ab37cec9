// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/iotape/iotape/pipe"
)

// Options for Dial. Nil and zero values are the defaults.
type Options struct {
	TLS *tls.Config // nil is no TLS
	// SpoolBytes limits the unacknowledged blocks in memory; 0 means 64 MiB.
	SpoolBytes int64
	// SpoolFile, if not "", takes further blocks, up to SpoolFileBytes; 0 means 1 GiB.
	// Blocks that were not sent at the end stay in SpoolFile, as a stream that lacks the
	// blocks that were sent.
	SpoolFile      string
	SpoolFileBytes int64
	// GiveUp is how long the listener may be away while blocks wait for it; 0 is 30 s.
	// When the spool is full, Write waits as long.
	GiveUp time.Duration
	// Note, if not nil, is called when a connection is lost and when it is made again.
	Note func(line string)
}

const (
	defaultSpool     = 64 << 20
	defaultSpoolFile = 1 << 30
	defaultGiveUp    = 30 * time.Second
	dialTime         = 10 * time.Second
	pauseMin         = 50 * time.Millisecond
	pauseMax         = 5 * time.Second
)

// Client sends one stream. It is a sink: each Write is the header or a block. After an error
// all further calls return it.
type Client struct {
	network, address string
	o                Options

	mu      sync.Mutex
	changed sync.Cond // signals changes of the fields below
	header  []byte
	spool   spool
	serial  uint64
	have    uint64    // blocks that the listener said it has
	contact time.Time // when the listener last took something, or nothing had to be sent
	conn    net.Conn  // nil is none
	closing bool
	err     error

	ctx    context.Context
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// Dial connects to a listener. It does not try again. The context is for this connection
// only.
func Dial(ctx context.Context, network, address string, o *Options) (*Client, error) {
	c := &Client{network: network, address: address}
	if o != nil {
		c.o = *o
	}
	def := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.o.SpoolBytes, defaultSpool)
	def(&c.o.SpoolFileBytes, defaultSpoolFile)
	def((*int64)(&c.o.GiveUp), int64(defaultGiveUp))
	c.changed.L = &c.mu
	c.spool.most, c.spool.fileMost = c.o.SpoolBytes, c.o.SpoolFileBytes
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	if c.o.SpoolFile != "" {
		if err := c.spool.openFile(c.o.SpoolFile); err != nil {
			conn.Close()
			return nil, err
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.contact = time.Now()
	c.ended.Go(func() { c.run(conn) })
	return c, nil
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second,
		Interval: 5 * time.Second, Count: 3}}
	if c.o.TLS != nil {
		return (&tls.Dialer{NetDialer: &d, Config: c.o.TLS}).DialContext(ctx, c.network, c.address)
	}
	return d.DialContext(ctx, c.network, c.address)
}

// Write takes the header or a block. It waits while the spool is full.
func (c *Client) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return 0, errors.New("send: write after close")
	case c.err != nil:
		return 0, c.err
	case c.header == nil:
		h, err := pipe.ParseHeader(b)
		if err != nil {
			return 0, fmt.Errorf("send: %w", err)
		}
		c.header, c.serial = bytes.Clone(b), h.Serial
		c.changed.Broadcast()
		return len(b), nil
	}
	var h pipe.BlockHeader
	if len(b) < pipe.BlockHeaderBytes || !h.Parse(b) || h.Serial != c.serial {
		return 0, errors.New("send: not a block of the stream")
	}
	if len(c.spool.blocks) == 0 {
		if c.spool.first == 0 {
			c.spool.first = h.Number // the beginning of the stream was sent before
		}
		c.contact = time.Now()
	}
	if h.Number != c.spool.end() {
		return 0, fmt.Errorf("send: block %d where block %d is expected", h.Number, c.spool.end())
	}
	for !c.spool.room(len(b)) && c.err == nil {
		c.changed.Wait()
	}
	if c.err == nil && h.Number < c.have { // sent over an earlier connection, by this program or another
		c.spool.first++
		return len(b), nil
	}
	if c.err == nil {
		c.err = c.spool.push(b)
	}
	if c.err != nil {
		return 0, c.err
	}
	c.changed.Broadcast()
	return len(b), nil
}

// Close waits until the listener has all blocks, at most as long as Options.GiveUp.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closing {
		defer c.mu.Unlock()
		return c.err
	}
	c.closing = true
	c.changed.Broadcast()
	for len(c.spool.blocks) > 0 && c.err == nil {
		c.changed.Wait()
	}
	err := c.err
	if err != nil {
		err = c.keep(err)
		c.err = err
	}
	c.mu.Unlock()
	c.cancel()
	c.hangUp()
	c.ended.Wait()
	c.spool.close()
	return err
}

// keep stores the unsent blocks in the spool's file, so that they can be sent later.
func (c *Client) keep(why error) error {
	left := len(c.spool.blocks)
	if left == 0 || c.o.SpoolFile == "" {
		return fmt.Errorf("%w; %d blocks were not sent", why, left)
	}
	f, err := os.OpenFile(c.o.SpoolFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = f.Write(c.header)
	}
	for n := c.spool.first; err == nil && n < c.spool.end(); n++ {
		var b []byte
		if b, err = c.spool.get(n); err == nil {
			_, err = f.Write(b)
		}
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%w; %d blocks were not sent, and cannot be kept: %w", why, left, err)
	}
	return fmt.Errorf("%w; %d blocks were not sent and are in %s (iotape pipe -o ADDRESS sends them)",
		why, left, c.o.SpoolFile)
}

func (c *Client) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
	}
}

func (c *Client) note(format string, args ...any) {
	if c.o.Note != nil {
		c.o.Note(fmt.Sprintf(format, args...))
	}
}

// fail ends the client with an error.
func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	c.changed.Broadcast()
}

// permanent marks errors after which the client does not connect again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// run connects, and connects again, until the client ends.
func (c *Client) run(conn net.Conn) {
	defer context.AfterFunc(c.ctx, c.wake)()
	if !c.await(func() bool { return c.header != nil }) {
		conn.Close()
		return
	}
	pause, lost := pauseMin, false
	for {
		var err error
		if conn == nil {
			conn, err = c.dial(c.ctx)
		}
		if err == nil {
			var got bool
			got, err = c.session(conn, lost)
			conn.Close()
			conn = nil
			if got {
				pause = pauseMin
			}
		}
		var p permanent
		if errors.As(err, &p) {
			c.fail(fmt.Errorf("send to %s: %w", c.address, p.error))
			return
		}
		if c.ctx.Err() != nil {
			return
		}
		if !lost {
			c.note("%s: the connection is lost: %v", c.address, err)
		}
		lost = true
		if c.givenUp() {
			c.fail(fmt.Errorf("send to %s: given up after %v: %w", c.address, c.o.GiveUp, err))
			return
		}
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, pauseMax)
	}
}

// givenUp reports whether blocks have waited too long.
func (c *Client) givenUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spool.blocks) == 0 {
		c.contact = time.Now()
	}
	return time.Since(c.contact) > c.o.GiveUp
}

// await waits for a condition or the end of the client, with the lock held. It reports
// whether the condition is true.
func (c *Client) await(ready func() bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !ready() {
		if c.ctx.Err() != nil || c.err != nil {
			return false
		}
		c.changed.Wait()
	}
	return true
}

// session uses a connection until it breaks. It reports whether the listener answered.
func (c *Client) session(conn net.Conn, again bool) (answered bool, err error) {
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.conn = nil
		c.mu.Unlock()
	}()
	if c.ctx.Err() != nil {
		return false, c.ctx.Err()
	}
	_ = conn.SetDeadline(time.Now().Add(dialTime))
	if _, err := conn.Write(appendHello(nil, c.header)); err != nil {
		return false, err
	}
	answers := bufio.NewReader(conn)
	have, err := c.answer(answers)
	if err != nil {
		return false, err
	}
	if again {
		c.note("%s: connected again, %d blocks are there", c.address, have)
	}
	_ = conn.SetDeadline(time.Time{})
	var receiver sync.WaitGroup
	broken := make(chan error, 1)
	receiver.Go(func() {
		broken <- c.answers(conn, answers)
		conn.Close()
		c.wake()
	})
	err = c.sendFrom(conn, have, broken)
	conn.Close()
	receiver.Wait()
	select {
	case why := <-broken: // has more information than the failed write
		err = why
	default:
	}
	return true, err
}

// answers reads answers until the connection ends, or none came for too long.
func (c *Client) answers(conn net.Conn, r *bufio.Reader) error {
	for {
		_ = conn.SetReadDeadline(time.Now().Add(c.o.GiveUp/2 + time.Millisecond))
		_, err := r.Peek(answerBytes)
		if errors.Is(err, os.ErrDeadlineExceeded) && !c.givenUp() {
			continue
		}
		if err == nil {
			_, err = c.answer(r)
		}
		if err != nil {
			return err
		}
	}
}

func (c *Client) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// answer reads how many blocks the listener has, and drops them from the spool.
func (c *Client) answer(r io.Reader) (uint64, error) {
	code, have, err := readAnswer(r)
	if errors.Is(err, errNoPeer) {
		return 0, permanent{err}
	}
	if err != nil {
		return 0, err
	}
	switch code {
	case codeRefused:
		return 0, permanent{errors.New(codeText[code])}
	case codeLater:
		return 0, errors.New(codeText[code])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if have < c.spool.first {
		return 0, permanent{fmt.Errorf("the listener has %d blocks, but those from there to %d are no longer here",
			have, c.spool.first)}
	}
	if have > c.have {
		c.have, c.contact = have, time.Now()
	}
	c.spool.drop(have)
	c.changed.Broadcast()
	return have, nil
}

// sendFrom sends the blocks from a number on, until the connection breaks.
func (c *Client) sendFrom(conn net.Conn, next uint64, broken chan error) error {
	for {
		var b []byte
		var err error
		ok := c.await(func() bool {
			next = max(next, c.spool.first)
			if len(broken) > 0 {
				return true
			}
			if next >= c.spool.end() {
				return false
			}
			b, err = c.spool.get(next)
			return true
		})
		switch {
		case !ok:
			return c.ctx.Err()
		case len(broken) > 0:
			return errors.New("the listener closed the connection")
		case err != nil:
			return permanent{err}
		}
		// A listener that does not read for so long counts as lost.
		_ = conn.SetWriteDeadline(time.Now().Add(c.o.GiveUp))
		if _, err := conn.Write(b); err != nil {
			return err
		}
		next++
	}
}
