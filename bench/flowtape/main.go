// SPDX-License-Identifier: Apache-2.0

// Flowtape makes the tapes that iotape flow is measured on, in seconds and a few hundred
// megabytes of disk: a client and a server with eight connections between them, over
// which records are sent, stored, read again, and answered.
//
//	flowtape [-events N] [-record BYTES] [-unique PART] DIR
//
// It writes DIR/client.tape and DIR/server.tape: N events in all, each of which moves one
// record. UNIQUE is the part of the bytes that are different; of the records one in a
// hundred is another one with a byte changed, and one in a thousand comes back changed.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

const (
	connections = 8
	steps       = 6 // events of a record: send, receive, write, read, answer, receive
)

type maker struct {
	record int
	bases  int // different records
	tapes  [2]*trace.TapeWriter
	chunks [2][]uint64 // of each record, by its number; 0: not written yet
	buf    []byte
	ev     event.Event
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("flowtape: ")
	events := flag.Int("events", 10_000_000, "events of both tapes together")
	record := flag.Int("record", 1024, "bytes of a record")
	unique := flag.Float64("unique", 0.05, "part of the bytes that are different")
	flag.Parse()
	if flag.NArg() != 1 || *events < steps*connections || *record < 64 || *record > 4096 ||
		*unique <= 0 || *unique > 1.0/steps {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *events, *record, *unique); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, events, record int, unique float64) error {
	m := &maker{record: record, bases: max(int(float64(events)*unique), 1), buf: make([]byte, record)}
	for i, name := range []string{"client", "server"} {
		tw, err := trace.CreateTape(filepath.Join(dir, name+".tape"))
		if err != nil {
			return err
		}
		defer tw.Abort()
		m.tapes[i] = tw
		// Records that come back changed have numbers behind the others.
		m.chunks[i] = make([]uint64, m.bases+events/1000/steps+2)
	}
	if err := m.events(events); err != nil {
		return err
	}
	for i, name := range []string{"client", "server"} {
		host := trace.Host{Head: trace.Head{Host: name, Arch: "amd64", BootID: name, Content: "full",
			Backend: "flowtape", WallNS: 1_700_000_000_000_000_000 + int64(i)*3600_000_000_000}}
		if err := m.tapes[i].Close(&trace.Manifest{Program: "flowtape", Hosts: []trace.Host{host}}); err != nil {
			return err
		}
	}
	return nil
}

// events writes rounds: in each, every connection carries one record.
func (m *maker) events(n int) error {
	const us = 1000
	now, changed, record := int64(1_000_000), m.bases, 0
	for c := range connections {
		if err := m.write(0, event.OpConnect, c, now, 0, 0); err != nil {
			return err
		}
		now += us
	}
	random := rand.New(rand.NewPCG(1, 2))
	for done := connections; done+steps*connections <= n; {
		var sent, back [connections]int
		for c := range connections {
			// New records come evenly among repeated ones.
			if float64(record) < float64(done)*float64(m.bases)/float64(n) {
				sent[c] = record
				record++
			} else {
				sent[c] = random.IntN(max(record, 1))
			}
			if back[c] = sent[c]; random.IntN(1000) == 0 && changed < len(m.chunks[0])-1 {
				back[c] = changed
				changed++
			}
		}
		for step := range steps {
			for c := range connections {
				now += us
				at := int64(sent[c]) * int64(m.record)
				var err error
				switch step {
				case 0:
					err = m.write(0, event.OpSendto, c, now, sent[c], -1)
				case 1:
					err = m.write(1, event.OpRecvfrom, c, now, sent[c], -1)
				case 2:
					err = m.write(1, event.OpPwrite64, c, now, sent[c], at)
				case 3:
					err = m.write(1, event.OpPread64, c, now, sent[c], at)
				case 4:
					err = m.write(1, event.OpSendto, c, now, m.is(back[c], sent[c]), -1)
				case 5:
					err = m.write(0, event.OpRecvfrom, c, now, m.is(back[c], sent[c]), -1)
				}
				if err != nil {
					return err
				}
				done++
			}
		}
	}
	return nil
}

// is returns the number of a record, and fills buf with its bytes.
func (m *maker) is(n, of int) int {
	if n < m.bases {
		return n
	}
	m.fill(of)
	m.buf[m.record/3] ^= 0x55
	return n
}

// fill makes the bytes of a record: one in a hundred is the one before with a byte
// changed.
func (m *maker) fill(n int) {
	base := n
	if n%100 == 99 {
		base--
	}
	s := uint64(base)*0x9e3779b97f4a7c15 + 1
	for i := 0; i+8 <= len(m.buf); i += 8 {
		s ^= s << 13
		s ^= s >> 7
		s ^= s << 17
		binary.LittleEndian.PutUint64(m.buf[i:], s*0x2545f4914f6cdd1d)
	}
	if base != n {
		m.buf[len(m.buf)/2] ^= 0xaa
	}
}

var ops = map[event.Op][2]int{ // the argument of the memory, and its direction
	event.OpSendto: {1, int(event.In)}, event.OpRecvfrom: {1, int(event.Out)}, event.OpPwrite64: {1, int(event.In)}, event.OpPread64: {1, int(event.Out)},
}

// write writes an event of the thread of a connection.
func (m *maker) write(host int, op event.Op, c int, now int64, record int, offset int64) error {
	e := &m.ev
	*e = event.Event{Op: op, PID: 1000, TID: uint32(1000 + c), Enter: now, Exit: now + 500, Offset: offset,
		Count: int64(m.record), Comm: []string{"client", "server"}[host],
		Files: e.Files[:0], Bufs: e.Bufs[:0], NR: uint32(event.Number(event.AMD64, op))}
	a, b := fmt.Sprintf("10.0.0.1:%d", 4000+c), "10.0.0.2:80"
	f := event.File{FD: int32(10 + c), Open: event.OpenID(10 + c), Known: true, Mode: 0o140777, Ino: uint64(100 + c),
		Path: "TCP:[" + a + "->" + b + "]"}
	if host == 1 {
		f.Path = "TCP:[" + b + "->" + a + "]"
	}
	if offset >= 0 && op != event.OpConnect {
		f = event.File{FD: 5, Open: 5, Known: true, Dev: 1, Ino: 7, Mode: 0o100644, Path: "/srv/store"}
	}
	e.Files = append(e.Files, f)
	if op == event.OpConnect {
		e.Offset, e.Count = -1, -1
		return m.tapes[host].Write(e)
	}
	e.Ret = int64(m.record)
	if m.chunks[host][record] == 0 {
		if record < m.bases {
			m.fill(record)
		}
		id, err := m.tapes[host].AddChunk(m.buf)
		if err != nil {
			return err
		}
		m.chunks[host][record] = id
	}
	e.Bufs = append(e.Bufs, event.Buf{Arg: int8(ops[op][0]), Dir: event.Dir(ops[op][1]), Kind: event.KindBuf,
		Len: int64(m.record), Refs: []event.Ref{{Chunk: m.chunks[host][record], Len: uint32(m.record)}}})
	return m.tapes[host].Write(e)
}
