// SPDX-License-Identifier: Apache-2.0

package scap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "scap",
	ID:       "scap",
	Suffixes: []string{".scap", ".scap.gz"},
	About:    "captures of sysdig and Falco",
	Marked:   true,
	Match:    match,
	Read: func(ctx context.Context, in *os.File, im *format.Import) error {
		return Import(ctx, in, im)
	},
}

// Types of blocks; those of lists of processes are in versions.
const (
	sectionBlock  = 0x0a0d0d0a
	sectionMagic  = 0x1a2b3c4d
	machineBlock  = 0x201
	machineBlock0 = 0x8002abcd // before the format's first release, as are the other 0's
	filesBlock    = 0x203
	filesBlock0   = 0x8001abcd
	filesBlock2   = 0x218
)

// eventBlocks are the types of events' blocks.
var eventBlocks = map[uint32]struct{ flags, counted bool }{
	0x204: {}, 0x8010abcd: {}, 0x208: {flags: true}, 0x216: {counted: true}, 0x217: {true, true}, 0x221: {counted: true}, 0x222: {true, true},
}

// Sizes in bytes.
const (
	blockHead   = 8
	blockLeast  = blockHead + 4
	sectionHead = 16
	maxBlock    = 64 << 20
)

// match recognises a section that begins with the machine: other files of pcapng do not.
func match(head []byte) bool {
	if len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b {
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return false
		}
		head = make([]byte, 4096)
		n, _ := io.ReadFull(z, head) // it may be cut off
		head = head[:n]
	}
	if len(head) < blockLeast+sectionHead || binary.LittleEndian.Uint32(head) != sectionBlock ||
		binary.LittleEndian.Uint32(head[8:]) != sectionMagic {
		return false
	}
	next := binary.LittleEndian.Uint32(head[4:])
	if int64(next)+4 > int64(len(head)) {
		return false
	}
	typ := binary.LittleEndian.Uint32(head[next:])
	return typ == machineBlock || typ == machineBlock0
}

// Import reads a capture.
func Import(ctx context.Context, in io.Reader, fi *format.Import) error {
	r := bufio.NewReaderSize(in, 64<<10)
	if b, err := r.Peek(2); err == nil && b[0] == 0x1f && b[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			return err
		}
		r = bufio.NewReaderSize(z, 64<<10)
	}
	im := &importer{im: fi, threads: map[uint32]*thread{}}
	var body []byte
	at := int64(0)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var head [blockHead]byte
		_, err := io.ReadFull(r, head[:])
		if errors.Is(err, io.EOF) {
			break
		}
		typ, length := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
		switch {
		case err != nil:
		case n == 0 && typ != sectionBlock:
			return errors.New("it does not begin with a section header")
		case length < blockLeast || length > maxBlock:
			return fmt.Errorf("block at %d of %d bytes: %d to %d were expected", at, length, blockLeast, maxBlock)
		default:
			body, err = fill(r, body[:0], int(length)-blockHead)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			if im.w == nil {
				return fmt.Errorf("block at %d: the file ends within it, before the first event", at)
			}
			fi.LeftOut("blocks that are cut off", 1)
			break
		}
		if err != nil {
			return fmt.Errorf("block at %d: %w", at, err)
		}
		end := len(body) - 4
		if tail := binary.LittleEndian.Uint32(body[end:]); tail != length {
			return fmt.Errorf("block at %d: its length is %d at its beginning and %d at its end", at, length, tail)
		}
		if err := im.block(typ, body[:end], n == 0); err != nil {
			return fmt.Errorf("block at %d: %w", at, err)
		}
		at += int64(length)
	}
	return im.end()
}

// fill reads n bytes, a piece at a time: lengths can lie.
func fill(r io.Reader, b []byte, n int) ([]byte, error) {
	const piece = 1 << 20
	for n > 0 {
		at, k := len(b), min(n, piece)
		b = append(b, make([]byte, k)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b, err
		}
		n -= k
	}
	return b, nil
}

var errList = errors.New("a list whose entries do not fit into it")

// block takes a block's body.
func (im *importer) block(typ uint32, b []byte, first bool) error {
	if e, ok := eventBlocks[typ]; ok {
		return im.event(b, e.flags, e.counted)
	}
	if v := versions[typ]; v != 0 {
		if !im.processes(b, v) {
			return errList
		}
		return nil
	}
	switch typ {
	case sectionBlock:
		if len(b) < sectionHead || binary.LittleEndian.Uint32(b) != sectionMagic {
			return errors.New("a section of another byte order, or damaged")
		}
		if major := binary.LittleEndian.Uint16(b[4:]); major != 1 {
			return fmt.Errorf("version %d of the format; 1 is known", major)
		}
		if !first {
			im.im.LeftOut("further sections' headers", 1)
		}
	case machineBlock, machineBlock0:
		im.host = hostName(b)
	case filesBlock, filesBlock0, filesBlock2:
		if !im.descriptors(b, typ == filesBlock2) {
			return errList
		}
	}
	return nil // users, interfaces
}
