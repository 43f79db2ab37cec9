// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
)

// node is what a process of a cluster does: it takes in messages, and gives each out everywhere.
type node struct {
	In      string   // make, listen, serve, ask, or a file
	Count   int      // messages that it makes
	Seed    uint64   // of these
	Kind    string   // and what they are: random, text, or text that is compressed (a name in compressors)
	Outs    []string // addresses and files
	Form    string   // plain (length and content apart), framed (in one), chunked, compressed, or see compressors
	Level   int      // how it chunks and compresses
	Fault   string   // what it does wrong, "" nothing
	Message int      // with which message,
	Out     int      // at which output
	Verify  string   // file that it reads at the end
}

const (
	messageBytes = 1500 // on average
	chunkBytes   = 400
	mostBytes    = 1 << 20
)

// message makes the bytes of message k: random ones, or text that is alike in all messages.
func message(kind string, seed uint64, k int) []byte {
	r := rand.New(rand.NewPCG(seed, uint64(k)))
	n := messageBytes/2 + r.IntN(messageBytes)
	if newCompressor := compressors[kind]; newCompressor != nil {
		return compressed(newCompressor, message("text", seed, k))
	}
	b := fmt.Appendf(nil, "message %d of %d: ", k, seed)
	for len(b) < n {
		switch kind {
		case "text":
			b = fmt.Appendf(b, "level=info request=%d status=%d user=u%d served\n", r.IntN(1e6), 200+r.IntN(9), k)
		default:
			b = binary.LittleEndian.AppendUint64(b, r.Uint64())
		}
	}
	return b[:n]
}

// runNode is the program of a node; arg is a node as JSON. It says on the standard output what
// others have to know: its port, and when it is done.
func runNode(arg string) error {
	var n node
	if err := json.Unmarshal([]byte(arg), &n); err != nil {
		return err
	}
	switch n.In {
	case "serve":
		return n.serve()
	case "ask":
		return n.ask()
	}
	in, err := n.input()
	if err != nil {
		return err
	}
	var outs []*output
	for i, name := range n.Outs {
		o := &output{node: &n, faulty: n.Fault != "" && n.Out == i}
		if strings.HasPrefix(name, "/") {
			o.file = true
			o.w, err = os.Create(name)
		} else {
			o.w, err = net.Dial("tcp", name)
		}
		if err != nil {
			return err
		}
		outs = append(outs, o)
	}
	for k := 0; ; k++ {
		m, err := in(k)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, o := range outs {
			if err := o.give(k, m); err != nil {
				return err
			}
		}
	}
	for _, o := range outs {
		if err := o.close(); err != nil {
			return err
		}
	}
	return n.verify()
}

// verify says that the node is done, waits, and reads what it has stored.
func (n *node) verify() error {
	fmt.Println("done")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if n.Verify == "" {
		return nil
	}
	_, err := os.ReadFile(n.Verify)
	return err
}

// input returns what makes or takes in message k.
func (n *node) input() (func(k int) ([]byte, error), error) {
	switch n.In {
	case "make":
		return func(k int) ([]byte, error) {
			if k == n.Count {
				return nil, io.EOF
			}
			return message(n.Kind, n.Seed, k), nil
		}, nil
	case "listen":
		c, err := accept()
		in := n.opened(c)
		return func(int) ([]byte, error) { return n.receive(in) }, err
	}
	f, err := os.Open(n.In)
	return func(int) ([]byte, error) { return frame(f) }, err
}

// accept takes one connection, and says at which port.
func accept() (net.Conn, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	fmt.Println("port", l.Addr().(*net.TCPAddr).Port)
	return l.Accept()
}

// frame reads bytes with their number in front.
func frame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > mostBytes {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

func framed(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }

// receive takes in a message from a connection. A chunked one ends with an empty chunk.
func (n *node) receive(c io.Reader) ([]byte, error) {
	b, err := frame(c)
	if err != nil {
		return nil, err
	}
	switch n.Form {
	case "chunked":
		for more := b; len(more) > 0; {
			if more, err = frame(c); err != nil {
				return nil, err
			}
			b = append(b, more...)
		}
	case "compressed":
		return io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), mostBytes))
	}
	if name, each := strings.CutSuffix(n.Form, eachAlone); each {
		r, err := decompressors[name](bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(r, mostBytes))
	}
	return b, nil
}

// output is where messages are given out.
type output struct {
	node   *node
	w      io.WriteCloser
	file   bool
	faulty bool
	held   []byte
	wire   compressor // of a stream that is compressed
}

// give gives out message k, with the fault.
func (o *output) give(k int, m []byte) error {
	n := o.node
	if !o.faulty || k != n.Message && (n.Fault != "reordered" || k != n.Message+1) {
		return o.put(m)
	}
	switch n.Fault {
	case "lost":
		return nil
	case "truncated":
		return o.put(m[:len(m)*2/3])
	case "duplicated":
		if err := o.put(m); err != nil {
			return err
		}
	case "changed":
		m = bytes.Clone(m)
		m[len(m)/2] ^= 0x20
	case "reordered":
		if k == n.Message {
			o.held = m
			return nil
		}
		if err := o.put(m); err != nil {
			return err
		}
		m = o.held
	}
	return o.put(m)
}

// put writes a message in the form of connections, to files as it is.
func (o *output) put(m []byte) error {
	write := func(b []byte) error {
		_, err := o.w.Write(b)
		return err
	}
	name, each := strings.CutSuffix(o.node.Form, eachAlone)
	newCompressor := compressors[name]
	switch {
	case newCompressor != nil && !o.file && each:
		return write(framed(compressed(newCompressor, m)))
	case newCompressor != nil && !o.file:
		if o.wire == nil {
			o.wire = newCompressor(o.w)
		}
		if _, err := o.wire.Write(framed(m)); err != nil {
			return err
		}
		return o.wire.Flush()
	case o.node.Form == "plain":
		if err := write(framed(m)[:4]); err != nil {
			return err
		}
		return write(m)
	case o.file || o.node.Form == "framed":
		return write(framed(m))
	case o.node.Form == "compressed":
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, 1+o.node.Level%9)
		if err != nil {
			return err
		}
		if _, err := w.Write(m); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return write(framed(b.Bytes()))
	}
	for at, size := 0, chunkBytes+150*o.node.Level; at < len(m); at += size {
		if err := write(framed(m[at:min(at+size, len(m))])); err != nil {
			return err
		}
	}
	return write(framed(nil))
}

// slotBytes is the room of a value in the file of a server.
const slotBytes = 4096

// serve answers requests: "put K" and a value, which it stores, and "get K", which it answers from
// memory.
func (n *node) serve() error {
	c, err := accept()
	if err != nil {
		return err
	}
	f, err := os.Create(n.Outs[0])
	if err != nil {
		return err
	}
	in, o := n.opened(c), &output{node: n, w: c}
	values := map[int][]byte{}
	puts := map[int]int{}
	for {
		line, err := frame(in)
		if errors.Is(err, io.EOF) {
			break
		}
		var op string
		var k int
		if err == nil {
			_, err = fmt.Sscan(string(line), &op, &k)
		}
		if err != nil {
			return err
		}
		answer := values[k]
		if op == "put" {
			v, err := n.receive(in)
			if err != nil {
				return err
			}
			if _, err := f.WriteAt(v, int64(k)*slotBytes); err != nil {
				return err
			}
			if puts[k]++; n.Fault != "stale" || k != n.Message || puts[k] == 1 {
				values[k] = v
			}
			answer = []byte("stored")
		} else if n.Fault == "changed" && k == n.Message {
			answer = bytes.Clone(answer)
			answer[len(answer)/2] ^= 0x20
		}
		if err := o.put(answer); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	return n.verify()
}

// ask is the client of serve: it stores values, gets them, stores new ones, and gets these.
func (n *node) ask() error {
	c, err := net.Dial("tcp", n.Outs[0])
	if err != nil {
		return err
	}
	o := &output{node: n, w: c}
	r := n.opened(bufio.NewReader(c))
	for round := range 2 {
		for _, op := range []string{"put", "get"} {
			for k := range n.Count {
				if err := o.ask(fmt.Appendf(nil, "%s %d", op, k)); err != nil {
					return err
				}
				if op == "put" {
					if err := o.put(message(n.Kind, n.Seed, k+round*n.Count)); err != nil {
						return err
					}
				}
				if _, err := n.receive(r); err != nil {
					return err
				}
			}
		}
	}
	if err := o.close(); err != nil {
		return err
	}
	return n.verify()
}
