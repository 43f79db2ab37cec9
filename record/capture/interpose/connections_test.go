// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/ptrace"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// connections records the program of connections to itself, in a directory of its own.
func connections(
	t *testing.T, backend capture.Backend, dir string, rounds int, filter *predicate.Prefilter,
) *recording {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command := []string{program(t, "connections"), strconv.Itoa(rounds), dir}
	rec := recordWith(t, backend, &capture.Options{Command: command, Prefilter: filter}).succeeded(t)
	if rec.output != "done\n" {
		t.Fatalf("the program wrote %q", rec.output)
	}
	return rec
}

// shortDir returns a new directory whose name fits into the address of a local socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// TestConnections records a program that makes connections and looks at them in all ways: with the
// same events as ptrace, and without a stop for any of them.
func TestConnections(t *testing.T) {
	dir := shortDir(t)
	few, more := connections(t, Backend{}, dir, 10, nil), connections(t, Backend{}, dir, 60, nil)
	// A ring may be full now and then.
	if few.result.Stops == 0 || more.result.Stops >= few.result.Stops+25 {
		t.Errorf("%d stops in 10 rounds, %d in 60: want about as many, and more than 0", few.result.Stops,
			more.result.Stops)
	}
	got := plain(few)
	same(t, got, plain(connections(t, ptrace.Backend{}, dir, 10, nil)))
	if len(got) < 1000 {
		t.Errorf("%d calls recorded, want more", len(got))
	}
}

// TestPrefilter records the program with filters that are decided in its process: it has the same
// calls as with ptrace, and what is left out costs no stop.
func TestPrefilter(t *testing.T) {
	dir := shortDir(t)
	all := plain(connections(t, Backend{}, dir, 3, nil))
	for filter, some := range map[string]bool{ // whether it leaves some calls of the program
		"result > 5": true, "errno != EAGAIN": true, "op != getsockopt": true, "op = write and count = 1": true,
		"comm = connections and result = 0": true, "uid = 12345": false, "ppid != 1 and pid > 1 and not failed": true,
	} {
		t.Run(filter, func(t *testing.T) {
			p := prefilter(t, filter)
			few, more := connections(t, Backend{}, dir, 3, p), connections(t, Backend{}, dir, 9, p)
			if more.result.Stops >= few.result.Stops+6 {
				t.Errorf("%d stops in 3 rounds, %d in 9", few.result.Stops, more.result.Stops)
			}
			got := plain(few)
			same(t, got, plain(connections(t, ptrace.Backend{}, dir, 3, p)))
			if len(got) >= len(all) || some && len(got) == 0 {
				t.Errorf("%d calls recorded, %d without the filter", len(got), len(all))
			}
		})
	}
}

// prefilter returns what of a filter can be decided where calls are recorded.
func prefilter(t *testing.T, filter string) *predicate.Prefilter {
	t.Helper()
	x, err := predicate.Parse(filter)
	if err != nil {
		t.Fatal(err)
	}
	g, err := predicate.Compile(x, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g.Prefilter(slice.MayLeaveOut)
}

// same compares the calls of a recording with those by ptrace.
func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want) || i >= len(got):
			t.Fatalf("%d calls recorded, %d by ptrace", len(got), len(want))
		case want[i] != got[i]:
			t.Fatalf("call %d:\n%s\nby ptrace:\n%s", i, got[i], want[i])
		}
	}
}

// plain returns the calls of a program from its first socket to its last as text, without what differs from
// one run to the next: inodes, ports and process ids are numbered in order, addresses left out. A port that the
// kernel gives to another socket later has another number then.
func plain(rec *recording) (list []string) {
	names, last, bound := map[string]string{}, 0, map[uint64]bool{}
	number := func(kind string, n uint64) string {
		if n == 0 {
			return "0"
		}
		key := fmt.Sprint(kind, n)
		if names[key] == "" {
			last++
			names[key] = fmt.Sprint(kind, last)
		}
		return names[key]
	}
	begun := false
	for i := range rec.records {
		r := &rec.records[i]
		op := event.Op(r.Op)
		if begun && (op == event.OpNewfstatat || op == event.OpWrite && r.Args[0] == 1) {
			break // it is done, and says so
		}
		if begun = begun || event.Lookup(op).Class == event.Socket; r.Type != trace.RecCall || !begun {
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%v = %d, flags %#x;", op, r.Ret, r.Flags)
		for k := range r.Objects {
			o := &r.Objects[k]
			fmt.Fprintf(&b, " object %d: fd %d, inode %s, mode %#o, flags %#o, links %d, uid %d, pos %d", o.Arg,
				o.FD, number("ino", o.Ino), o.Mode, o.Flags, o.Nlink, o.UID, o.Pos)
		}
		for _, p := range r.Pieces {
			data := fmt.Sprintf("%x", p.Data)
			switch le := binary.LittleEndian; {
			case int(p.Arg) == event.PartSocket.Of(0):
				ino := r.Objects[p.Off].Ino
				e, ok := socket.Decode(p.Data, ino)
				if e.Local.Port != 0 && !bound[ino] {
					bound[ino] = true
					if op != event.OpAccept && op != event.OpAccept4 { // they have the port of their listener
						delete(names, fmt.Sprint("port", e.Local.Port))
					}
				}
				data = fmt.Sprintf("%v family %d, type %d, protocol %d, %s to %s (%s), process %s, uid %d", ok,
					e.Family, e.Type, e.Protocol, address(&e.Local, number), address(&e.Peer, number),
					number("ino", e.PeerIno), number("pid", uint64(e.PID)), e.UID)
				p.Len = 0 // that of its data
			case len(p.Data) >= 4 && le.Uint16(p.Data) == unix.AF_INET:
				data = "port " + number("port", uint64(binary.BigEndian.Uint16(p.Data[2:]))) + data[8:]
			case len(p.Data) == unix.SizeofUcred:
				data = number("pid", uint64(le.Uint32(p.Data))) + data[8:]
			}
			fmt.Fprintf(&b, " piece %d: flags %d, %d bytes at %d, %s;", p.Arg, p.Flags, p.Len, p.Off, data)
		}
		list = append(list, b.String())
	}
	return list
}

// address returns the text of an address with its port numbered.
func address(a *socket.Address, number func(string, uint64) string) string {
	if a.Path != "" {
		return strconv.Quote(a.Path)
	}
	return a.IP.String() + ":" + number("port", uint64(a.Port))
}
