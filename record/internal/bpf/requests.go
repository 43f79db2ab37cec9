// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
)

// Flags of the table of requests (include/record.h).
const (
	rowDirect    = 1
	rowShots     = 2
	rowSelect    = 4
	rowSelectMsg = 8
	rowZC        = 16
	rowSlots     = 32
	rowFull      = 64
	rowSplice    = 128
)

// uringRows and requestRows are the sizes of its parts.
const (
	uringRows   = 128
	requestRows = 160
)

// Requests returns the rows of the operation table's requests, by their places in the
// programs' table.
func Requests(arch event.Arch, content capture.Content) map[uint32]RequestRow {
	t := map[uint32]RequestRow{}
	for _, s := range event.Specs() {
		switch {
		case s.Op.IsUring() && s.Op-event.OpUring < uringRows:
			t[uint32(s.Op-event.OpUring)] = requestRow(&s, arch, content)
		case s.Op.IsAIO() && s.Op-event.OpAIO < requestRows-uringRows:
			t[uringRows+uint32(s.Op-event.OpAIO)] = requestRow(&s, arch, content)
		}
	}
	return t
}

func requestRow(s *event.Spec, arch event.Arch, content capture.Content) RequestRow {
	r := RequestRow{S: row(s, arch, content), FdArg: event.NoArg}
	own := uint8(4) // where the request's own descriptor stands: of struct io_uring_sqe,
	if s.Op.IsAIO() {
		own = 20 // of struct iocb
	}
	for i, f := range s.Fields {
		c := &r.Fields[i]
		c.Off, c.Size, c.Alt, c.AltSize = f.Off, f.Size, f.Else, f.ElseSize
		if f.Signed {
			c.Sign = 1
		}
		if f.Off == own && f.Size == 4 && s.Args[i].Kind == event.KindFD {
			r.FdArg = uint8(i)
		}
	}
	switch s.Op {
	case event.OpUringOpenat, event.OpUringOpenat2, event.OpUringSocket:
		r.Flags = rowDirect
	case event.OpUringAccept:
		r.Flags = rowDirect | rowShots
	case event.OpUringReadMultishot:
		r.Flags = rowSelect | rowShots
	case event.OpUringRead, event.OpUringReadv:
		r.Flags = rowSelect
	case event.OpUringRecv:
		r.Flags = rowSelectMsg | rowShots
	case event.OpUringSend:
		r.Flags = rowSelectMsg | rowShots
	case event.OpUringRecvmsg, event.OpUringSendmsg: // a buffer is chosen: not known which
		r.Flags = rowSelectMsg | rowShots
	case event.OpUringPollAdd, event.OpUringTimeout, event.OpUringCmd, event.OpUringRecvZC:
		r.Flags = rowShots
	case event.OpUringSendZC, event.OpUringSendmsgZC:
		r.Flags = rowZC
	case event.OpUringFilesUpdate:
		r.Flags = rowSlots
	case event.OpUringSplice, event.OpUringTee:
		r.Flags = rowSplice
	}
	if s.Class == event.Data && s.Result == event.KindSize {
		r.Flags |= rowFull
	}
	return r
}
