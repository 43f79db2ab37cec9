// SPDX-License-Identifier: Apache-2.0

package format

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// Import takes what a foreign file says. Most files are of one host; those of several
// make a stream for each, since clocks and process numbers are a host's own.
type Import struct {
	Done
	// Program is who converts, with its version, for the streams' heads.
	Program string
	dir     string
	hosts   map[string]*Writer
	order   []*Writer
}

// NewImport returns an Import whose streams are files in dir.
func NewImport(dir, program string) *Import {
	return &Import{Program: program, dir: dir, hosts: map[string]*Writer{}}
}

// maxHosts limits how many files a hostile trace can open.
const maxHosts = 256

// Host returns the Writer of a host; the name is "" where the format has none.
func (im *Import) Host(name string) (*Writer, error) {
	if w := im.hosts[name]; w != nil {
		return w, nil
	}
	if len(im.order) == maxHosts {
		return nil, fmt.Errorf("events of more than %d hosts", maxHosts)
	}
	f, err := os.OpenFile(filepath.Join(im.dir, fmt.Sprintf("host-%d.stream", len(im.order))),
		os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		// Times are the wall clock's, unless the format knows better: both clocks of
		// the anchor are the same.
		Head: trace.Head{Program: im.Program, Host: name, Arch: "amd64", Content: "full", Overflow: "block", Shards: 1,
			Ops: len(event.Specs())},
		file: f,
	}
	im.hosts[name] = w
	im.order = append(im.order, w)
	return w, nil
}

// Close ends all streams and returns the names of their files, in the order of the
// hosts' first appearance.
func (im *Import) Close() (streams []string, err error) {
	for _, w := range im.order {
		if e := w.close(); err == nil {
			err = e
		}
		streams = append(streams, w.file.Name())
	}
	return streams, err
}

// Writer makes the stream of one host. After an error every call returns it again.
// It is not safe for concurrent use.
type Writer struct {
	// Head is what is known of the recording. It counts until the first record.
	Head trace.Head
	// Unsorted says that records come in another order than that of their times; it is
	// to be set before the first. They are then sorted on disk before they are sealed.
	Unsorted bool

	file    *os.File
	buf     *bufio.Writer
	sw      *trace.StreamWriter
	payload []byte
	until   uint64
	round   uint32 // frames written: there is one shard, so each is a round
	err     error

	spool *spool // records as they came, if they are unsorted
}

// frameBytes is when a frame is written.
const frameBytes = 1 << 20

// Record appends a record. Records are ordered by Exit; those of one time keep the
// order in which they were given.
func (w *Writer) Record(r *trace.Record) error { return w.add(r, r.Exit) }

// add appends a record with the time by which it is ordered.
func (w *Writer) add(r *trace.Record, time uint64) error {
	if w.err != nil {
		return w.err
	}
	// Times are ns in 63 bits, which end in 2262: a file can say later ones, which are of no clock.
	time, r.Enter, r.Exit = min(time, math.MaxInt64), min(r.Enter, math.MaxInt64), min(r.Exit, math.MaxInt64)
	if w.Unsorted {
		return w.keep(r, time)
	}
	w.until = max(w.until, time)
	w.payload = trace.AppendRecord(w.payload, r)
	if len(w.payload) >= frameBytes {
		w.flush()
	}
	return w.err
}

func (w *Writer) start() {
	if w.sw != nil || w.err != nil {
		return
	}
	w.buf = bufio.NewWriterSize(w.file, 1<<20)
	w.sw, w.err = trace.NewStreamWriter(w.buf, trace.NewStreamID(), &w.Head)
}

func (w *Writer) flush() {
	if w.start(); w.err != nil || len(w.payload) == 0 {
		return
	}
	w.round++
	w.err = w.sw.WriteRecords(trace.Frame{Until: w.until, Round: w.round}, w.payload)
	w.payload = w.payload[:0]
}

// keep spools a record.
func (w *Writer) keep(r *trace.Record, time uint64) error {
	if w.spool == nil {
		if w.spool, w.err = newSpool(dirOf(w.file)); w.err != nil {
			return w.err
		}
	}
	at := len(w.payload)
	w.payload = trace.AppendRecord(w.payload, r)
	if w.err = w.spool.add(time, at, len(w.payload)-at); w.err == nil && len(w.payload) >= frameBytes {
		w.drain()
	}
	return w.err
}

// drain writes what was kept to the spool.
func (w *Writer) drain() {
	if w.err != nil || w.spool == nil {
		return
	}
	w.err = w.spool.append(w.payload)
	w.payload = w.payload[:0]
}

// sort passes the spooled records on in the order of their times.
func (w *Writer) sort() {
	w.drain()
	if w.err != nil || w.spool == nil {
		return
	}
	err := w.spool.each(func(s *spooled) error {
		at := len(w.payload)
		w.payload = slices.Grow(w.payload, int(s.length))[:at+int(s.length)]
		if _, err := w.spool.records.ReadAt(w.payload[at:], s.offset); err != nil {
			return err
		}
		w.until = max(w.until, s.time)
		if len(w.payload) >= frameBytes {
			w.flush()
		}
		return w.err
	})
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) close() error {
	w.sort()
	w.flush()
	if w.err == nil {
		w.err = w.sw.Close(&trace.End{})
	}
	if w.err == nil {
		w.err = w.buf.Flush()
	}
	if w.spool != nil {
		w.spool.close()
	}
	if err := w.file.Close(); w.err == nil {
		w.err = err
	}
	return w.err
}
