// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/pipe"
)

// TestHostilePeers does to a server what it must not mind, while an honest client sends.
func TestHostilePeers(t *testing.T) {
	d := newDir(t, t.TempDir())
	l := listen(t, "tcp", d)
	l.stop()
	l.limits = Limits{Conns: 8, HelloTime: 200 * time.Millisecond, BlockTime: 200 * time.Millisecond, Blocks: 1 << 20}
	l.start(t)
	s := send(t, l, nil)
	s.write(t, 5)

	header := func(blockBytes int) []byte {
		h := pipe.Header{Serial: mrand.Uint64(), BlockBytes: blockBytes}
		b, err := h.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	block := func(number, serial uint64, length int) []byte {
		b := make([]byte, pipe.BlockHeaderBytes)
		h := pipe.BlockHeader{Number: number, Serial: serial, Length: length}
		h.Put(b)
		return b
	}
	serialOf := func(header []byte) uint64 {
		h, err := pipe.ParseHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		return h.Serial
	}
	huge, good := header(16<<20), header(4096)
	long := bytes.Clone(good)
	copy(long[12:], []byte{0xff, 0xff, 0xff, 0x7f})
	for _, tt := range []struct {
		name  string
		bytes []byte
		note  string
	}{
		{"garbage", bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 100), "does not speak iotape's protocol"},
		{"another version", append([]byte("iotape W\x07\x00\x00\x00\x00\x00\x00\x00"), good...), "version 7"},
		{"a header without end", appendHello(nil, long), "damaged header"},
		{"slow loris: a hello that does not end", []byte("iotape"), "i/o timeout"},
		{"slow loris: a header that does not end", appendHello(nil, good[:40]), "i/o timeout"},
		{"too large blocks", appendHello(nil, huge), "are too large"},
		{"garbage for a block", append(appendHello(nil, header(4096)), bytes.Repeat([]byte{7}, 100)...), "is not a block of its stream"},
		{"an oversized block", append(appendHello(nil, good), block(0, serialOf(good), 1<<20)...), "is not a block of its stream"},
		{"a block of another stream", append(appendHello(nil, good), block(0, 1, 10)...), "is not a block of its stream"},
		{"a block of the future", append(appendHello(nil, good), block(7, serialOf(good), 10)...), "block 7 where block 0 is expected"},
		{"slow loris: a block that does not end", append(appendHello(nil, good), block(0, serialOf(good), 1000)...), "i/o timeout"},
	} {
		conn, err := net.Dial("tcp", l.address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(tt.bytes); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays open", tt.name)
		}
		conn.Close()
		l.noted(t, tt.note)
		l.mu.Lock()
		l.notes = nil
		l.mu.Unlock()
	}

	// More connections than are let in: the others are closed at once.
	var conns []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", l.address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	l.noted(t, "refused: 8 connections are open")
	for _, c := range conns {
		c.Close()
	}
	s.write(t, 50)
	s.close(t)
	s.arrived(t, d)
}

// TestAnotherHeader refuses a stream that says it is one that is there.
func TestAnotherHeader(t *testing.T) {
	d := newDir(t, t.TempDir())
	l := listen(t, "tcp", d)
	s := send(t, l, nil)
	s.write(t, 3)
	s.close(t)
	h := *s.w.Header()
	h.BlockBytes = 8192
	b, err := h.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), "tcp", l.address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	block := make([]byte, pipe.BlockHeaderBytes)
	bh := pipe.BlockHeader{Serial: h.Serial}
	bh.Put(block)
	_, _ = c.Write(block)
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "refuses the stream") {
		t.Errorf("%v", err)
	}
	s.arrived(t, d)
}

// pki makes a certificate for 127.0.0.1 that signs itself, and returns its files.
func pki(t *testing.T, name string) Files {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := Files{Cert: filepath.Join(t.TempDir(), "cert"), Key: filepath.Join(t.TempDir(), "key")}
	for file, block := range map[string]*pem.Block{f.Cert: {Type: "CERTIFICATE", Bytes: cert},
		f.Key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// TestTLS sends over TLS, with and without a certificate of the client's, and is turned
// away where one does not trust the other.
func TestTLS(t *testing.T) {
	server, client, stranger := pki(t, "server"), pki(t, "client"), pki(t, "stranger")
	for _, tt := range []struct {
		name   string
		server Files
		client Files
		ok     bool
	}{
		{"server alone", server, Files{CA: server.Cert}, true},
		{"both", Files{CA: client.Cert, Cert: server.Cert, Key: server.Key}, Files{CA: server.Cert, Cert: client.Cert, Key: client.Key}, true},
		{"no trust in the server", server, Files{CA: stranger.Cert}, false},
		{"no certificate", Files{CA: client.Cert, Cert: server.Cert, Key: server.Key}, Files{CA: server.Cert}, false},
		{"a stranger's certificate", Files{CA: client.Cert, Cert: server.Cert, Key: server.Key}, Files{CA: server.Cert, Cert: stranger.Cert, Key: stranger.Key}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDir(t, t.TempDir())
			l := listen(t, "tcp", d)
			l.stop()
			var err error
			if l.tls, err = ServerTLS(tt.server); err != nil {
				t.Fatal(err)
			}
			l.start(t)
			config, err := ClientTLS(tt.client)
			if err != nil {
				t.Fatal(err)
			}
			o := &Options{TLS: config, GiveUp: 200 * time.Millisecond}
			if tt.ok {
				o.GiveUp = 0
				s := send(t, l, o)
				s.write(t, 20)
				s.close(t)
				s.arrived(t, d)
				return
			}
			c, err := Dial(t.Context(), "tcp", l.address, o)
			if err != nil {
				return // turned away at once
			}
			h := pipe.Header{BlockBytes: 4096}
			b, _ := h.Append(nil)
			_, _ = c.Write(b)
			block := make([]byte, pipe.BlockHeaderBytes)
			bh := pipe.BlockHeader{Final: true}
			bh.Put(block)
			_, _ = c.Write(block)
			if err := c.Close(); err == nil {
				t.Error("taken")
			}
			if names, _ := filepath.Glob(filepath.Join(d.Path, "*")); len(names) > 0 {
				t.Errorf("it has left %q", names)
			}
		})
	}
	open := server
	open.Key = filepath.Join(t.TempDir(), "key")
	b, _ := os.ReadFile(server.Key)
	if err := os.WriteFile(open.Key, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ServerTLS(open); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("%v", err)
	}
}

// TestNobodyThere fails at once.
func TestNobodyThere(t *testing.T) {
	if _, err := Dial(t.Context(), "unix", filepath.Join(t.TempDir(), "none"), nil); err == nil {
		t.Error("connected to nothing")
	}
}

// memory is a store for fuzzing.
type memory struct {
	bytes.Buffer
	next uint64
}

func (m *memory) Open(*pipe.Header, []byte) (Log, error) { return m, nil }
func (m *memory) Next() uint64                           { return m.next }
func (m *memory) Sync() error                            { return nil }
func (m *memory) Close() error                           { return nil }
func (m *memory) Append(h *pipe.BlockHeader, b []byte) error {
	if h.Number != m.next {
		return fmt.Errorf("block %d after %d", h.Number, m.next)
	}
	m.next++
	_, err := m.Write(b)
	return err
}

// recorded is a connection whose peer has said all that it says.
type recorded struct {
	net.Conn
	io.Reader
}

func (r recorded) Read(b []byte) (int, error)       { return r.Reader.Read(b) }
func (r recorded) Write(b []byte) (int, error)      { return len(b), nil }
func (r recorded) SetDeadline(time.Time) error      { return nil }
func (r recorded) SetReadDeadline(time.Time) error  { return nil }
func (r recorded) SetWriteDeadline(time.Time) error { return nil }
func (r recorded) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// FuzzServe has a server listen to anything: it ends, and takes only blocks that fit.
func FuzzServe(f *testing.F) {
	var stream bytes.Buffer
	w, err := pipe.NewWriter(&stream, nil, &pipe.Options{BlockBytes: 1024})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 3000)); err != nil {
		f.Fatal(err)
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(appendHello(nil, stream.Bytes()))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &memory{}
		s := &Server{Store: m, taken: map[uint64]*session{}}
		s.Limits.defaults()
		_ = s.serve(recorded{Reader: bytes.NewReader(b)})
		if m.Len() > len(b) {
			t.Error("more was stored than came")
		}
	})
}

// FuzzAnswer reads anything as an answer: error or value, and the value is what it says.
func FuzzAnswer(f *testing.F) {
	f.Add(appendAnswer(nil, codeHave, 7))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, have, err := readAnswer(bytes.NewReader(b))
		if err == nil && !bytes.HasPrefix(b, appendAnswer(nil, c, have)) {
			t.Errorf("%v, %d of %x", c, have, b)
		}
	})
}
