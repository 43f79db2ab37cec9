// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/socket"
	"github.com/iotape/iotape/trace"
)

// socketPiece is the argument's byte of pieces that say the ends of a record's sockets.
var socketPiece = uint8(event.PartSocket.Of(0))

// nameSockets gives the files of a call that are sockets their names, as far as its record says
// their ends.
func nameSockets(ev *event.Event, r *trace.Record) {
	for i := range r.Pieces {
		p := &r.Pieces[i]
		if p.Arg != socketPiece || p.Off >= uint64(len(r.Objects)) {
			continue
		}
		if f := fileOf(ev, r, int(p.Off)); f != nil {
			if name := endsName(p, f.Ino, ev); name != "" {
				f.Path = name
			}
		}
	}
}

// fileOf returns the file of an event that one of its record's objects describes, nil if it has
// none.
func fileOf(ev *event.Event, r *trace.Record, object int) *event.File {
	arg := int(r.Objects[object].Arg)
	if arg != event.MemoryArg {
		return ev.FileArg(arg)
	}
	for i := range ev.Files {
		f := &ev.Files[i]
		if o := &r.Objects[object]; f.Arg == event.MemoryArg && f.FD == o.FD && f.Ino == o.Ino {
			return f
		}
	}
	return nil
}

// endsName returns the name of a socket, "" if its ends cannot be read or it has none. While a
// connection is being made, only the call that asked for it knows the peer.
func endsName(p *trace.Piece, ino uint64, ev *event.Event) string {
	e, ok := socket.Decode(p.Data, ino)
	if !ok {
		return ""
	}
	if ev != nil && ev.Op.Like() == event.OpConnect && !e.Peer.Set && (ev.OK() || ev.Errno == syscall.EINPROGRESS) {
		if to := ev.BufArg(1); to != nil {
			e.Peer = socket.Sockaddr(to.Inline)
		}
	}
	return e.Name(ino)
}
