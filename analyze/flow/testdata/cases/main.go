// Cases is the programs of package flow's tests: small servers and clients of which the
// right way of data is known.
//
//	cases echo-server ADDR FILE [spoil]     stores what it gets in FILE, reads it back, and returns it
//	cases echo-client ADDR TEXT             sends TEXT and prints what comes back
//	cases replica ADDR FILE [NEXT]          stores what it gets, and passes it on
//	cases send ADDR FILE                    sends a file
//	cases tls-server ADDR FILE              stores what comes through TLS
//	cases tls-send ADDR FILE                sends a file through TLS
//	cases relay ADDR TO [spoil]             passes on what it gets, with a byte changed
//	cases proxy ADDR TO [WORD]              passes on all connections, with the byte behind WORD changed
//	cases publish ADDR DIR WORD             sends messages to a stream of NATS, and stores what it gets of it
//	cases train FILE SIZE EPOCHS [shuffle]  reads the records of a file, in order or not
//	cases udp-server ADDR FILE              stores the datagrams that it gets, up to an empty one
//	cases udp-send ADDR TEXT                sends TEXT word by word
//
// Servers take one connection, say "ready" on their standard output when they can, and end
// with it.
package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	mrand "math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 4 {
		log.Fatal("usage: cases WHAT ARGUMENT ARGUMENT")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
}

func run(what, a, b string, more []string) error {
	switch what {
	case "echo-server":
		return echoServer(a, b, len(more) > 0)
	case "echo-client":
		return echoClient(a, b)
	case "replica":
		return replica(a, b, more)
	case "send":
		return send(func() (io.ReadWriteCloser, error) { return net.Dial("tcp", a) }, b)
	case "tls-server":
		return tlsServer(a, b)
	case "tls-send":
		return send(func() (io.ReadWriteCloser, error) { return tls.Dial("tcp", a, &tls.Config{InsecureSkipVerify: true}) }, b)
	case "proxy":
		return proxy(a, b, strings.Join(more, " "))
	case "publish":
		return publish(a, b, more)
	case "relay":
		return relay(a, b, len(more) > 0)
	case "udp-server":
		return udpServer(a, b)
	case "udp-send":
		return udpSend(a, b)
	case "train":
		return train(a, b, more)
	}
	return fmt.Errorf("there is no such case")
}

// accept takes one connection.
func accept(addr string) (net.Conn, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	fmt.Println("ready")
	return l.Accept()
}

// all reads up to what was announced in 4 bytes in front, a part at a time, and passes
// each part on.
func all(from io.Reader, part int, to func(b []byte) error) error {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	left := int(head[0])<<24 | int(head[1])<<16 | int(head[2])<<8 | int(head[3])
	for buf := make([]byte, part); left > 0; {
		n, err := io.ReadFull(from, buf[:min(left, part)])
		if err != nil {
			return err
		}
		if err := to(buf[:n]); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func head(n int) []byte { return []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)} }

func echoServer(addr, file string, spoil bool) error {
	c, err := accept(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 4096)
	n, err := c.Read(buf)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, buf[:n], 0o666); err != nil {
		return err
	}
	back, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if spoil {
		back[len(back)/2] ^= 0x20
	}
	_, err = c.Write(back)
	return err
}

func echoClient(addr, text string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		return err
	}
	back, err := io.ReadAll(c)
	fmt.Printf("%s\n", back)
	return err
}

func send(dial func() (io.ReadWriteCloser, error), file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(head(len(data))); err != nil {
		return err
	}
	for part := range 1 + (len(data)-1)/16384 {
		if _, err := c.Write(data[part*16384 : min(len(data), (part+1)*16384)]); err != nil {
			return err
		}
	}
	var ok [2]byte
	if _, err := io.ReadFull(c, ok[:]); err != nil || !bytes.Equal(ok[:], []byte("ok")) {
		return fmt.Errorf("the other side says %q, %v", ok, err)
	}
	return nil
}

func replica(addr, file string, next []string) error {
	c, err := accept(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var to net.Conn
	if len(next) > 0 {
		if to, err = net.Dial("tcp", next[0]); err != nil {
			return err
		}
		defer to.Close()
	}
	var whole bytes.Buffer
	err = all(c, 8192, func(b []byte) error {
		whole.Write(b)
		_, err := f.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	if to != nil {
		if _, err := to.Write(append(head(whole.Len()), whole.Bytes()...)); err != nil {
			return err
		}
		if _, err := io.ReadFull(to, make([]byte, 2)); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if _, err := c.Write([]byte("ok")); err != nil {
		return err
	}
	// Read it back when told to, which is when somebody may have been at it.
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil && err != io.EOF {
		return err
	}
	_, err = os.ReadFile(file)
	return err
}

func tlsServer(addr, file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	raw, err := accept(addr)
	if err != nil {
		return err
	}
	c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	defer c.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := all(c, 8192, func(b []byte) error { _, err := f.Write(b); return err }); err != nil {
		return err
	}
	_, err = c.Write([]byte("ok"))
	return err
}

func relay(addr, to string, spoil bool) error {
	c, err := accept(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer out.Close()
	go func() { _, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{out}); c.Close() }()
	buf := make([]byte, 4096)
	for at := 0; ; {
		n, err := c.Read(buf)
		if err != nil {
			return nil
		}
		if spoil && at <= 1000 && at+n > 1000 {
			buf[1000-at] ^= 0xff
		}
		at += n
		if _, err := out.Write(buf[:n]); err != nil {
			return err
		}
	}
}

func udpServer(addr, file string) error {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("ready")
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 2048)
	for {
		n, _, err := c.ReadFrom(buf)
		if err != nil || n == 0 {
			return err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return err
		}
	}
}

func udpSend(addr, text string) error {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, word := range append(strings.Fields(text), "") {
		if _, err := c.Write([]byte(word)); err != nil {
			return err
		}
	}
	return nil
}

func train(file, size string, more []string) error {
	n, err := strconv.Atoi(size)
	if err != nil || len(more) == 0 {
		return fmt.Errorf("train wants a size and epochs: %v", err)
	}
	epochs, err := strconv.Atoi(more[0])
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	records := int(st.Size()) / n
	buf := make([]byte, n)
	for range epochs {
		order := make([]int, records)
		for i := range order {
			order[i] = i
		}
		if len(more) > 1 {
			mrand.Shuffle(records, func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, i := range order {
			if _, err := f.ReadAt(buf, int64(i*n)); err != nil {
				return err
			}
		}
	}
	return nil
}
