// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Head describes a recording: the payload of a stream's first frame.
type Head struct {
	Version int    `json:"version"`
	Program string `json:"program"` // that wrote it, with its version
	Host    string `json:"host"`
	Kernel  string `json:"kernel"`
	// Addresses are those of the machine's interfaces, as the recorder sees them: of IPv4 and
	// IPv6, without those that every machine has (127.0.0.1).
	Addresses []string `json:"addresses,omitempty"`
	Arch      string   `json:"arch"` // GOARCH name
	BootID    string   `json:"boot_id,omitempty"`
	Backend   string   `json:"backend"` // "ebpf", "ptrace", …
	Command   []string `json:"command,omitempty"`
	Target    string   `json:"target,omitempty"` // what was recorded, if not a command
	Dir       string   `json:"dir,omitempty"`    // working directory of the command
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
	Content   string   `json:"content"`     // what was kept of content: docs/format.md, 1.3
	Overflow  string   `json:"on_overflow"` // "block" or "drop"
	// Redact says by what secrets were masked before the stream was written, "" if they were not.
	Redact string `json:"redact,omitempty"`
	// BlockRequests says that the requests to block devices were recorded, of the whole machine.
	BlockRequests bool `json:"block_requests,omitempty"`
	// Filter is what the recording is to have (package predicate), "" if that is all. A
	// stream can have more: sealing picks.
	Filter string `json:"filter,omitempty"`
	// Clock anchor: at monotonic time ClockNS the wall clock was WallNS (ns since 1970).
	ClockNS int64 `json:"clock_ns"`
	WallNS  int64 `json:"wall_ns"`
	Shards  int   `json:"shards"`
	Ops     int   `json:"ops"` // size of the recorder's operation table
	// Stacks says of which calls the stacks were recorded; nil: of none.
	Stacks *HeadStacks `json:"stacks,omitempty"`
	// Window is set if the stream is only a part of a recording.
	Window *Window `json:"window,omitempty"`
	// Rotation is set if the stream is one of several that a recording was divided into.
	Rotation *Rotation `json:"rotation,omitempty"`
	// ResolutionNS is what the times of events are rounded down to when they are sealed; 0
	// is 1.
	ResolutionNS int64 `json:"resolution_ns,omitempty"`
}

// HeadStacks says which calls have a stack.
type HeadStacks struct {
	Filter string `json:"filter,omitempty"` // that the calls match; "": all
	Every  uint64 `json:"every,omitempty"`  // of these, one of so many; 0 is 1
}

// FilterChange says that another filter holds for what is called from a time on.
type FilterChange struct {
	SinceNS int64  `json:"since_ns"` // monotonic
	Filter  string `json:"filter"`   // "": all
}

// ChangeFilter makes of the head's filter the one of the whole recording: the old one until
// the change, the new one since.
func (h *Head) ChangeFilter(c *FilterChange) {
	host := Host{Head: *h}
	at := time.Unix(0, host.Wall(c.SinceNS)).UTC().Format(time.RFC3339Nano)
	both := func(when, filter string) string {
		if filter == "" {
			return when
		}
		return when + " and (" + filter + ")"
	}
	h.Filter = both(fmt.Sprintf("time < %q", at), h.Filter) + " or " + both(fmt.Sprintf("time >= %q", at), c.Filter)
}

// Window says what a flight recorder kept.
type Window struct {
	// monotonic time of the state that the stream begins with; 0 if that is the recording's start
	SinceNS int64  `json:"since_ns"`
	Reason  string `json:"reason"` // why it was written
}

// Rotation says which part of a recording a stream is. All parts but the first begin with the state of processes and
// descriptors: without these events, the parts joined are the recording.
type Rotation struct {
	Recording string `json:"recording"` // the same for all parts: 16 hexadecimal digits
	Part      int    `json:"part"`      // from 1
	// StateNS is the monotonic time of the events that say the state, 0 in the first part. Events with the numbers of
	// open files have those of the whole recording: Opens is how many were given out before.
	StateNS int64  `json:"state_ns,omitempty"`
	Opens   uint64 `json:"opens,omitempty"`
}

// End is the payload of the frame that closes a stream.
type End struct {
	Lost       uint64 `json:"lost"` // records
	ExitStatus int    `json:"exit_status"`
	Signal     int    `json:"signal,omitempty"`
	Running    bool   `json:"running,omitempty"` // the recording goes on; this is all of it so far
	WallNS     int64  `json:"wall_ns"`
	ClockNS    int64  `json:"clock_ns"`
}

// FrameSink takes frames in place of a file. The payload is the caller's again when
// WriteFrame returns.
type FrameSink interface {
	WriteFrame(f *Frame, payload []byte) error
}

// StreamWriter writes frames. After an error every call returns it again. It is not safe for
// concurrent use, except that Note may be called beside the others.
type StreamWriter struct {
	sink   FrameSink
	stream uint64

	mu    sync.Mutex // of what follows
	round uint32     // of the last frame of records
	ended bool
	seq   uint64
	bytes int64
	err   error
}

// NewStreamID returns a random number for a stream.
func NewStreamID() uint64 {
	var id [8]byte
	rand.Read(id[:])
	return binary.LittleEndian.Uint64(id[:])
}

// NewStreamWriter starts a stream with its head frame. The id should be random, as that of
// NewStreamID is.
func NewStreamWriter(w io.Writer, id uint64, head *Head) (*StreamWriter, error) {
	return NewStreamWriterTo(fileSink{w}, id, head)
}

// NewStreamWriterTo is NewStreamWriter for frames that do not go into a file.
func NewStreamWriterTo(sink FrameSink, id uint64, head *Head) (*StreamWriter, error) {
	sw := &StreamWriter{sink: sink, stream: id}
	head.Version = StreamVersion
	if err := sw.writeJSON(FrameHead, head); err != nil {
		return nil, err
	}
	return sw, nil
}

// Bytes returns what was written so far, in whole frames.
func (sw *StreamWriter) Bytes() int64 {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.bytes
}

// WriteRecords writes one frame of records: payload is a sequence of record
// words and bodies. Frame numbers are assigned here.
func (sw *StreamWriter) WriteRecords(f Frame, payload []byte) error {
	f.Kind = FrameRecords
	return sw.write(f, payload)
}

// MaxNoteBytes is the longest note.
const MaxNoteBytes = 4096

// Note writes a note of a process, as of now (CLOCK_MONOTONIC, ns), in a frame of its own.
func (sw *StreamWriter) Note(pid uint32, now uint64, text string) error {
	if len(text) > MaxNoteBytes {
		return fmt.Errorf("a note of %d bytes: it has up to %d", len(text), MaxNoteBytes)
	}
	r := Record{Type: RecNote, PID: pid, TID: pid, Exit: now,
		Pieces: []Piece{{Len: uint32(len(text)), Data: []byte(text)}}}
	sw.mu.Lock()
	defer sw.mu.Unlock()
	if sw.ended {
		return errors.New("the recording has ended")
	}
	// The frame belongs to the present round, so that readers still wait for what has happened before.
	return sw.writeLocked(Frame{Kind: FrameRecords, Round: sw.round}, AppendRecord(nil, &r))
}

// ChangeFilter says that another filter holds from a time on.
func (sw *StreamWriter) ChangeFilter(c *FilterChange) error { return sw.writeJSON(FrameFilter, c) }

// Close writes the end frame. It does not close the underlying writer.
func (sw *StreamWriter) Close(end *End) error { return sw.writeJSON(FrameEnd, end) }

func (sw *StreamWriter) writeJSON(kind FrameKind, v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	return sw.write(Frame{Kind: kind}, b)
}

func encodeJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode frame: %w", err)
	}
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	return b, nil
}

// EncodeCounters makes the payload of a frame of counters, by the names of operations.
func EncodeCounters(counts map[string]uint64) ([]byte, error) { return encodeJSON(counts) }

func (sw *StreamWriter) write(f Frame, payload []byte) error {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	return sw.writeLocked(f, payload)
}

func (sw *StreamWriter) writeLocked(f Frame, payload []byte) error {
	if sw.err != nil {
		return sw.err
	}
	if len(payload) > MaxFrameBytes || len(payload)%8 != 0 {
		return fmt.Errorf("write frame of %d bytes: not a multiple of 8 up to %d", len(payload), MaxFrameBytes)
	}
	f.Stream, f.Seq = sw.stream, sw.seq
	if err := sw.sink.WriteFrame(&f, payload); err != nil {
		sw.err = fmt.Errorf("write stream: %w", err)
		return sw.err
	}
	sw.bytes += FrameHeaderBytes + int64(len(payload))
	sw.seq++
	sw.ended = sw.ended || f.Kind == FrameEnd
	if f.Kind == FrameRecords {
		sw.round = f.Round
	}
	return nil
}

// fileSink writes frames as bytes.
type fileSink struct{ w io.Writer }

func (s fileSink) WriteFrame(f *Frame, payload []byte) error {
	var h [FrameHeaderBytes]byte
	f.Put(h[:], payload)
	for _, part := range [][]byte{h[:], payload} {
		if _, err := s.w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// ReadHead decodes the payload of a head frame.
func ReadHead(payload []byte) (*Head, error) { return readObject[Head](payload, "head") }

// ReadEnd decodes the payload of an end frame.
func ReadEnd(payload []byte) (*End, error) { return readObject[End](payload, "end") }

// ReadFilterChange decodes the payload of a filter frame.
func ReadFilterChange(payload []byte) (*FilterChange, error) {
	return readObject[FilterChange](payload, "filter")
}

func readObject[T any](payload []byte, what string) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(bytes.TrimRight(payload, " "), v); err != nil {
		return nil, fmt.Errorf("stream %s: %w: %w", what, err, ErrCorrupt)
	}
	return v, nil
}
