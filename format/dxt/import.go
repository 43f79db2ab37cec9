// SPDX-License-Identifier: Apache-2.0

package dxt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// Format is how the program finds this package.
var Format = format.Format{
	Name:     "Darshan DXT text",
	ID:       "dxt",
	Suffixes: []string{".dxt", ".dxt.txt"},
	About:    "reads and writes of MPI jobs, as Darshan traces and darshan-dxt-parser prints them",
	Match: func(head []byte) bool {
		return bytes.Contains(head, []byte("# darshan log version: ")) && bytes.Contains(head, []byte("# DXT"))
	},
	Read: func(ctx context.Context, in *os.File, im *format.Import) error { return Import(ctx, in, im) },
}

// The limits of a text.
const (
	maxLine    = 1 << 16
	maxRank    = 1 << 29
	maxSeconds = 1 << 33
	maxOffset  = 1 << 62
	maxBytes   = 1 << 40 // of a segment
	// firstThread is the first number of threads beyond the first of a process, which
	// Darshan knows by addresses.
	firstThread = 1 << 30
)

// Import writes the segments as calls. Their times are the wall clock's: the job's
// start, to the second, and what Darshan gives of the time since.
func Import(ctx context.Context, in io.Reader, im *format.Import) error {
	lines := format.NewLines(ctx, in, maxLine)
	x := importer{im: im, ranks: map[rankID]*rank{}, posix: map[string]bool{}, nextThread: firstThread}
	for lines.Next() {
		text := lines.Text()
		if lines.Long() {
			im.LeftOut(format.LongLines, 1)
			continue
		}
		if comment, ok := bytes.CutPrefix(text, []byte("#")); ok {
			x.comment(string(bytes.TrimLeft(comment, " ")))
			continue
		}
		words := bytes.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := x.segment(words); err != nil {
			return err
		}
	}
	return lines.Err()
}

type importer struct {
	im *format.Import
	// Of the header.
	command []string
	uid     int
	start   uint64 // of the job, ns since 1970
	// Of the block at hand.
	id, name, host string
	rank           uint64
	ranked         bool
	writes, reads  bool

	ranks      map[rankID]*rank
	posix      map[string]bool // files with POSIX segments, by id
	nextThread uint32
}

type rankID struct {
	host string
	rank uint64
}

// rank is a process.
type rank struct {
	w       *format.Writer
	pid     uint32
	fds     map[string]int32  // by the file's id
	threads map[string]uint32 // by pthread's id
}

// comment takes a line that begins with #: of the header, or of a block's.
func (x *importer) comment(s string) {
	if _, err := fmt.Sscanf(s, "start_time: %d", &x.start); err == nil {
		x.start = min(x.start, maxSeconds) * 1e9
		return
	}
	switch s, dxt := strings.CutPrefix(s, "DXT, "); {
	case !dxt:
		if exe, ok := strings.CutPrefix(s, "exe: "); ok {
			x.command = strings.Fields(exe)
		} else if uid, ok := strings.CutPrefix(s, "uid: "); ok {
			n, _ := strconv.ParseUint(uid, 10, 32)
			x.uid = int(n)
		} else if strings.HasPrefix(s, "*WARNING*: The ") {
			x.im.LeftOut("modules of which Darshan itself has only a part", 1)
		}
	case strings.HasPrefix(s, "file_id: "):
		id, name, _ := strings.Cut(s[len("file_id: "):], ", file_name: ")
		x.id, x.name, x.ranked = id, name, false
	case strings.HasPrefix(s, "rank: "):
		number, host, _ := strings.Cut(s[len("rank: "):], ", hostname: ")
		n, err := strconv.ParseUint(number, 10, 64)
		x.rank, x.host, x.ranked = n, host, err == nil && n < maxRank && x.name != ""
	case strings.HasPrefix(s, "write_count: "):
		w, r, _ := strings.Cut(s[len("write_count: "):], ", read_count: ")
		x.writes, x.reads = w != "0", r != "0"
	}
}

// segment takes a line of a block:
//
//	X_POSIX 0 write 0 120 10 0.0019 0.0020 [3] 139822945752832
//	module rank what number offset length start end OSTs… thread
func (x *importer) segment(words [][]byte) error {
	if len(words) < 8 || !x.ranked || string(words[1]) != strconv.FormatUint(x.rank, 10) {
		x.im.LeftOut(format.BadLines, 1)
		return nil
	}
	offset, length, ok := extent(words[4], words[5])
	start, ok2 := seconds(words[6])
	end, ok3 := seconds(words[7])
	if !ok || !ok2 || !ok3 {
		x.im.LeftOut(format.BadLines, 1)
		return nil
	}
	switch string(words[0]) {
	case "X_POSIX":
		x.posix[x.id] = true
	case "X_MPIIO":
		if x.posix[x.id] {
			x.im.LeftOut("MPI-IO segments of files that have POSIX segments", 1)
			return nil
		}
	default:
		x.im.LeftOut("segments of unknown modules", 1)
		return nil
	}
	c := format.Call{Enter: x.start + start, Exit: x.start + max(start, end), Ret: length}
	switch what := string(words[2]); {
	case what == "write" && offset >= 0:
		c.Op = event.OpPwrite64
	case what == "read" && offset >= 0:
		c.Op = event.OpPread64
	case what == "write":
		c.Op = event.OpWrite
	case what == "read":
		c.Op = event.OpRead
	default:
		x.im.LeftOut(format.BadLines, 1)
		return nil
	}
	r, err := x.process()
	if err != nil {
		return err
	}
	fd, err := x.file(r)
	if err != nil {
		return err
	}
	c.PID, c.TID = r.pid, x.thread(r, words[8:])
	c.Args = [event.MaxArgs]uint64{uint64(fd), 0, uint64(length)}
	if offset >= 0 {
		c.Args[3] = uint64(offset)
	}
	c.Bytes(1, nil, length)
	x.im.Records++
	return r.w.Call(&c)
}

// extent reads the place of a segment in its file; offset is -1 if Darshan does not know it.
func extent(at, size []byte) (offset, length int64, ok bool) {
	offset, err := strconv.ParseInt(string(at), 10, 64)
	length, err2 := strconv.ParseInt(string(size), 10, 64)
	ok = err == nil && err2 == nil && offset >= -1 && length >= 0 && offset <= maxOffset && length <= maxBytes
	return offset, length, ok
}

// seconds reads a time; it becomes ns.
func seconds(b []byte) (uint64, bool) {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil || !(f >= 0 && f < maxSeconds) {
		return 0, false
	}
	return uint64(math.Round(f * 1e9)), true
}

// process returns the process of the block's rank.
func (x *importer) process() (*rank, error) {
	id := rankID{x.host, x.rank}
	if r := x.ranks[id]; r != nil {
		return r, nil
	}
	w, err := x.im.Host(x.host)
	if err != nil {
		return nil, err
	}
	if w.Head.Backend == "" {
		w.Head.Backend, w.Head.Content, w.Head.Command, w.Head.UID, w.Unsorted = "darshan", "none", x.command,
			x.uid, true
	}
	r := &rank{w: w, pid: uint32(x.rank) + 1, fds: map[string]int32{}, threads: map[string]uint32{}}
	x.ranks[id] = r
	return r, w.Task(&format.Task{PID: r.pid, TID: r.pid, Comm: fmt.Sprintf("rank %d", x.rank)}, x.start)
}

// file returns the rank's descriptor of the block's file. DXT does not say when a file
// was opened, nor how often: it is open since the job's start.
func (x *importer) file(r *rank) (int32, error) {
	fd, ok := r.fds[x.id]
	if ok {
		return fd, nil
	}
	fd = int32(len(r.fds) + 3)
	r.fds[x.id] = fd
	flags := uint64(os.O_RDWR)
	switch {
	case !x.writes:
		flags = uint64(os.O_RDONLY)
	case !x.reads:
		flags = uint64(os.O_WRONLY)
	}
	c := format.Call{Op: event.OpOpen, PID: r.pid, TID: r.pid, Enter: x.start, Untimed: true, Ret: int64(fd),
		Args: [event.MaxArgs]uint64{1: flags}}
	c.Text(0, x.name, false)
	return fd, r.w.Call(&c)
}

// thread returns the number of a segment's thread. What stands before it are OSTs of
// Lustre; old logs have none.
func (x *importer) thread(r *rank, words [][]byte) uint32 {
	name := ""
	if len(words) > 0 {
		name = string(words[len(words)-1])
	}
	if name == "" || name == "N/A" || name == "-1" || name[0] == '[' {
		return r.pid
	}
	tid, ok := r.threads[name]
	if !ok {
		if tid = r.pid; len(r.threads) > 0 {
			tid = x.nextThread
			x.nextThread++
		}
		r.threads[name] = tid
	}
	return tid
}
