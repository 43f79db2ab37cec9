// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/mapped"
	"github.com/iotape/iotape/trace"
)

// blockHooks are the programs of requests to block devices, and of pages that come into the page cache.
// The end comes first: a beginning without its end would stay in its map.
var blockHooks = []string{"on_block_complete", "on_block_issue", "on_page_added"}

// Operations of requests, and the bits of their flags (linux/blk_types.h).
const (
	reqRead        = 0
	reqWrite       = 1
	reqFlush       = 2
	reqDiscard     = 3
	reqSecureErase = 5
	reqWriteZeroes = 9

	reqOpMask     = 0xff
	reqSync       = 1 << 11
	reqMeta       = 1 << 12
	reqFUA        = 1 << 17
	reqPreFlush   = 1 << 18
	reqAhead      = 1 << 19
	reqBackground = 1 << 20
)

var blockOps = map[uint32]event.Op{reqRead: event.OpBlockRead, reqWrite: event.OpBlockWrite,
	reqFlush: event.OpBlockFlush, reqDiscard: event.OpBlockDiscard, reqSecureErase: event.OpBlockDiscard, reqWriteZeroes: event.OpBlockDiscard}

var blockFlags = []struct {
	of uint32
	is uint64
}{
	{reqSync, event.BlockSync}, {reqMeta, event.BlockMeta}, {reqFUA, event.BlockFUA},
	{reqPreFlush, event.BlockPreFlush}, {reqAhead, event.BlockAhead}, {reqBackground, event.BlockBackground},
}

// blockErrors are the errors of a device that are no EIO (block/blk-core.c, blk_errors).
var blockErrors = map[uint32]unix.Errno{1: unix.EOPNOTSUPP, 2: unix.ETIMEDOUT, 3: unix.ENOSPC,
	4: unix.ENOLINK, 5: unix.EREMOTEIO, 6: unix.EBADE, 7: unix.ENODATA, 8: unix.EILSEQ, 9: unix.ENOMEM, 12: unix.EAGAIN}

// blocks makes events of the requests to block devices. Its methods do nothing when it is nil.
type blocks struct {
	d       *drain
	spans   []span
	threads map[uint32][16]byte // the names of those that are not recorded otherwise
}

func newBlocks(d *drain) *blocks {
	if d.p.blocks == nil {
		return nil
	}
	return &blocks{d: d, threads: map[uint32][16]byte{}}
}

// prepareBlocks maps the ring of requests, if they are recorded.
func (p *programs) prepareBlocks(o *capture.Options) error {
	if !o.BlockRequests {
		return nil
	}
	m, err := p.BlockIos.Clone()
	if err != nil {
		return fmt.Errorf("share the ring of block requests: %w", err)
	}
	p.blocks, err = mapRing(m)
	return err
}

// listen records the requests that are done. It reports whether one is still being told.
func (b *blocks) listen() (busy bool) {
	if b == nil {
		return false
	}
	r := b.d.p.blocks
	b.spans, busy = r.scan(b.spans[:0], r.produced())
	for _, s := range b.spans {
		p := r.bytes(s.from, s.to)
		for len(p) >= trace.WordBytes+int(unsafe.Sizeof(iotapeBlockIo{})) {
			io := *(*iotapeBlockIo)(unsafe.Pointer(&p[trace.WordBytes]))
			p = p[trace.WordBytes+int(unsafe.Sizeof(io)):]
			b.add(&io)
		}
		r.consume(s.to)
	}
	b.d.flushOwn()
	return busy
}

func (b *blocks) add(io *iotapeBlockIo) {
	op, ok := blockOps[io.Flags&reqOpMask]
	if !ok {
		return // of zones, or of the driver
	}
	comm := *(*[16]byte)(unsafe.Pointer(&io.Comm))
	if name, known := b.threads[io.Tid]; io.Followed == 0 && (!known || name != comm) {
		b.threads[io.Tid] = comm
		b.d.addOwn(&trace.Record{Type: trace.RecTask, PID: io.Pid, TID: io.Tid, Exit: io.Start,
			UID: io.Uid, GID: io.Uid, Comm: comm})
	}
	flags := uint64(0)
	for _, f := range blockFlags {
		if io.Flags&f.of != 0 {
			flags |= f.is
		}
	}
	if io.Flags&reqOpMask == reqWriteZeroes {
		flags |= event.BlockZeroes
	}
	position := io.Sector << 9
	if io.Bytes == 0 {
		position = 0
	}
	rec := &trace.Record{
		Type: trace.RecCall, Op: uint16(op), NR: mapped.NoNumber, PID: io.Pid, TID: io.Tid,
		Enter: io.Start, Exit: io.End, Ret: int64(io.Bytes),
		Args: [6]uint64{mapped.NoDescriptor, unix.Mkdev(io.Dev>>20, io.Dev&0xfffff), position, uint64(io.Bytes),
			io.Off, flags},
	}
	if io.Queued != 0 {
		rec.Flags, rec.DelayBefore = trace.CallDelays, uint32(min(io.Queued, math.MaxUint32))
	}
	if io.Status != 0 {
		errno := unix.EIO
		if e, ok := blockErrors[io.Status]; ok {
			errno = e
		}
		rec.Ret = -int64(errno)
	}
	if io.Ino != 0 && io.Mode&unix.S_IFMT != unix.S_IFBLK {
		rec.Objects = []trace.Object{{Ino: io.Ino, Dev: io.FileDev, Mode: io.Mode, FD: -1}}
	}
	b.d.addOwn(rec)
	b.d.events++
}
