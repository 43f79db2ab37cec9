// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/pipe/wholefile"
)

// A commit record is appended to a stream's commits when data was appended to it:
//
//	 0 u64 number of the next batch   32 u64 events declared lost by the agent
//	 8 u64 length of the stream        40 u64 events that did not arrive
//	16 u64 length of what was appended 48 u32 flags
//	24 u64 events in the stream        52 u32 CRC-32C of what was appended
//	                                   56 u32 CRC-32C of the 56 bytes before; 60 u32 0
const commitBytes = 64

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// progress is how far a stream is.
type progress struct {
	next   uint64 // number of the next batch
	length int64
	events uint64
	lost   uint64 // declared by the agent
	gap    uint64 // events that did not arrive
	within bool   // the data ends inside a frame
	skip   bool   // after a hole: the next frame has not begun
}

func (p *progress) append(b []byte, chunk []byte) []byte {
	le := binary.LittleEndian
	start := len(b)
	for _, v := range []uint64{p.next, uint64(p.length), uint64(len(chunk)), p.events, p.lost, p.gap} {
		b = le.AppendUint64(b, v)
	}
	var flags uint32
	if p.within {
		flags |= 1
	}
	if p.skip {
		flags |= 2
	}
	b = le.AppendUint32(b, flags)
	b = le.AppendUint32(b, crc32.Checksum(chunk, castagnoli))
	b = le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	return le.AppendUint32(b, 0)
}

func (p *progress) parse(b []byte) (appended uint64, check uint32, ok bool) {
	le := binary.LittleEndian
	if crc32.Checksum(b[:56], castagnoli) != le.Uint32(b[56:]) {
		return 0, 0, false
	}
	flags := le.Uint32(b[48:])
	*p = progress{
		next: le.Uint64(b), length: int64(le.Uint64(b[8:])), events: le.Uint64(b[24:]), lost: le.Uint64(b[32:]),
		gap:    le.Uint64(b[40:]),
		within: flags&1 != 0, skip: flags&2 != 0,
	}
	return le.Uint64(b[16:]), le.Uint32(b[52:]), true
}

// recoverStream finds how far a stream's directory is, and cuts off what is after it.
func recoverStream(dir string) (p progress, err error) {
	stream, err := openStaged(dir, staging.StreamFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return p, err
	}
	defer stream.Close()
	commits, err := openStaged(dir, staging.CommitsFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return p, err
	}
	defer commits.Close()
	size, err := stream.Seek(0, io.SeekEnd)
	if err != nil {
		return p, err
	}
	end, err := commits.Seek(0, io.SeekEnd)
	if err != nil {
		return p, err
	}
	var b [commitBytes]byte
	for n := end / commitBytes; n > 0; n-- {
		if _, err := commits.ReadAt(b[:], (n-1)*commitBytes); err != nil {
			return p, err
		}
		appended, check, ok := p.parse(b[:])
		if !ok || p.length > size || appended > uint64(p.length) {
			continue
		}
		h := crc32.New(castagnoli)
		if _, err := io.Copy(h, io.NewSectionReader(stream, p.length-int64(appended), int64(appended))); err != nil {
			return p, err
		}
		if h.Sum32() == check {
			return p, errors.Join(commits.Truncate(n*commitBytes), stream.Truncate(p.length))
		}
	}
	p = progress{next: 2} // there is an about.json, which is of the first
	return p, errors.Join(commits.Truncate(0), stream.Truncate(0))
}

// open is a stream that is not finished.
type open struct {
	dir   string
	about staging.About
	made  bool // the directory, with about.json
	progress
	committed progress
	chunk     []byte // after committed.length
	held      map[uint64]uint64
	floor     uint64 // the broker had taken batches up to it
	lastNS    int64  // when something came
	end       *staging.End
	endSeq    uint64 // of the message that has it
	// What follows is of a stream that cannot be written: what came of it is held, in the
	// broker, until it can be.
	why     error   // nil: it can
	taken   []taken // since committed
	tried   time.Time
	unknown bool // it is not known how far it is
}

// taken is a batch that was taken, and is not committed.
type taken struct{ number, seq uint64 }

// dirty reports whether there is something to commit: what came before the stream's
// beginning has to wait for it.
func (o *open) dirty() bool {
	return (o.next > 1 || o.end != nil) && (!o.made || o.progress != o.committed)
}

// commit writes what came since the last one. If it fails, the directory is as it was.
// That the stream is there is said in abouts.
func (o *open) commit(abouts *staging.Batch) (err error) {
	if !o.made {
		if err := wholefile.MkdirOwn(o.dir, staging.StreamParts-1, 0o700); err != nil {
			return err
		}
		if err := abouts.Put(filepath.Join(o.dir, staging.AboutFile), staging.StreamParts, &o.about); err != nil {
			return err
		}
	}
	if o.progress == o.committed {
		o.taken = o.taken[:0]
		return nil
	}
	record := o.progress.append(nil, o.chunk)
	if err := appendTo(filepath.Join(o.dir, staging.StreamFile), o.committed.length, o.chunk); err != nil {
		return err
	}
	if err := appendTo(filepath.Join(o.dir, staging.CommitsFile), -1, record); err != nil {
		return errors.Join(err, cut(filepath.Join(o.dir, staging.StreamFile), o.committed.length))
	}
	o.committed, o.chunk, o.taken = o.progress, o.chunk[:0], o.taken[:0]
	if cap(o.chunk) > 4<<20 {
		o.chunk = nil
	}
	return nil
}

// openStaged opens a file of a stream's directory.
func openStaged(dir, name string, flag int) (*os.File, error) {
	return wholefile.OpenOwn(filepath.Join(dir, name), staging.StreamParts, flag, 0o600)
}

// cut makes a file as long as it was.
func cut(name string, length int64) error {
	f, err := wholefile.OpenOwn(name, staging.StreamParts, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(length), f.Close())
}

// appendTo appends to a file, whole or not at all. at is where its end has to be, -1
// anywhere at a multiple of a commit record.
func appendTo(name string, at int64, b []byte) error {
	f, err := wholefile.OpenOwn(name, staging.StreamParts, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if at < 0 {
		at = fi.Size() / commitBytes * commitBytes
	}
	if fi.Size() < at {
		return fmt.Errorf("%s has %d bytes, and should have %d: %w", name, fi.Size(), at, fs.ErrInvalid)
	}
	if _, err = f.WriteAt(b, at); err == nil && fi.Size() > at+int64(len(b)) {
		err = f.Truncate(at + int64(len(b)))
	}
	if err != nil {
		return errors.Join(err, f.Truncate(at))
	}
	return nil
}
