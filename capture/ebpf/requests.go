package ebpf

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"iotape/capture"
	"iotape/event"
)

// Flags of the table of requests (bpf/record.h).
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

// requestTable returns the rows of the catalogue's requests, by their places in the
// programs' table.
func requestTable(arch event.Arch, content capture.Content) map[uint32]iotapeRequestRow {
	t := map[uint32]iotapeRequestRow{}
	for _, s := range event.Catalogue() {
		switch {
		case s.Op.IsUring() && s.Op-event.OpUring < uringRows:
			t[uint32(s.Op-event.OpUring)] = requestRow(&s, arch, content)
		case s.Op.IsAIO() && s.Op-event.OpAIO < requestRows-uringRows:
			t[uringRows+uint32(s.Op-event.OpAIO)] = requestRow(&s, arch, content)
		}
	}
	return t
}

func requestRow(s *event.Spec, arch event.Arch, content capture.Content) iotapeRequestRow {
	r := iotapeRequestRow{S: row(s, arch, content), FdArg: event.NoArg}
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

// withoutUring puts programs that do nothing into the place of those for io_uring
// where the kernel has none. It reports whether it did.
func withoutUring(spec *ebpf.CollectionSpec) bool {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return false
	}
	for _, hook := range uringHooks {
		var t *btf.Typedef
		if kernel.TypeByName("btf_trace_"+hook.tracepoint, &t) == nil {
			continue
		}
		for _, h := range uringHooks {
			spec.Programs[h.program] = &ebpf.ProgramSpec{
				Name: h.program, Type: ebpf.SocketFilter, License: "GPL",
				Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
			}
		}
		return true
	}
	return false
}

var uringHooks = []struct{ program, tracepoint string }{
	{iotapeProgOnUringCreate, "io_uring_create"},
	{iotapeProgOnUringSubmit, "io_uring_submit_req"},
	{iotapeProgOnUringRefused, "io_uring_req_failed"},
	{iotapeProgOnUringLink, "io_uring_link"},
	{iotapeProgOnUringFailLink, "io_uring_fail_link"},
	{iotapeProgOnUringComplete, "io_uring_complete"},
	{iotapeProgOnUringOverflow, "io_uring_cqe_overflow"},
}
