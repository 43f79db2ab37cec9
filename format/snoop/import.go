// SPDX-License-Identifier: Apache-2.0

package snoop

import (
	"math"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxProcesses = 1 << 16
	maxFiles     = 1 << 18
)

// What is left out, by the names that a user sees.
const (
	crowd   = "rows of more than 65,536 processes"
	crowded = "rows of more than 262,144 files"
	rows    = "rows of kinds that are not known"
)

type importer struct {
	w       *format.Writer
	im      *format.Import
	tool    *tool
	columns []column
	now     uint64 // ns, of the row before
	last    uint64 // time of the day of the row before, ns
	days    uint64
	comms   map[uint32]string
	files   map[key]int32
	next    map[uint32]int32
}

// key is a file of a process.
type key struct {
	pid  uint32
	name string
}

// begin takes the time and the process of a row. ok is false if it is not understood.
func (x *importer) begin(r row, pidColumn string) (c *format.Call, ok bool, err error) {
	pid, perr := strconv.ParseUint(r[pidColumn], 10, 32)
	at, timed := x.time(r)
	if perr != nil || !timed {
		x.im.LeftOut(format.BadLines, 1)
		return nil, false, nil
	}
	c = &format.Call{PID: uint32(pid), TID: uint32(pid), Exit: at, Untimed: true}
	c.Enter = at
	if s := r["LAT(ms)"]; s != "" {
		ms, err := strconv.ParseFloat(s, 64)
		if ns := ms * 1e6; err == nil && ns >= 0 && ns <= float64(at) {
			c.Enter, c.Untimed = at-uint64(ns), false
		}
	}
	comm, known := x.comms[c.PID]
	if !known && len(x.comms) >= maxProcesses {
		x.im.LeftOut(crowd, 1)
		return nil, false, nil
	}
	x.im.Records++
	if known && comm == r["COMM"] {
		return c, true, nil
	}
	x.comms[c.PID] = strings.Clone(r["COMM"])
	return c, true, x.w.Task(&format.Task{PID: c.PID, TID: c.TID, Comm: r["COMM"]}, c.Enter)
}

// time returns when a row's event ended: seconds, a time of the day, or 1 µs behind the row before.
func (x *importer) time(r row) (ns uint64, ok bool) {
	const base = 1e9 // so that what began before the first row has a time
	s, said := r["TIME(s)"]
	if !said {
		x.now += 1000
		return base + x.now, true
	}
	parts := strings.Split(s, ":")
	total := 0.0
	for _, p := range parts {
		v, err := strconv.ParseFloat(p, 64)
		if err != nil || !(v >= 0 && v < 1e9) {
			return 0, false
		}
		total = total*60 + v
	}
	if len(parts) > 3 || total > 1e9 {
		return 0, false
	}
	ns = uint64(math.Round(total * 1e9))
	if len(parts) == 1 {
		return base + ns, true
	}
	const day = 24 * 3600e9
	if ns+day/2 < x.last { // it is past midnight
		x.days += day
	}
	x.last = ns
	if ns += x.days; ns <= x.now { // whole seconds: rows of one keep their order
		ns = x.now + 1000
	}
	x.now = ns
	return base + ns, true
}

// open writes a row of opensnoop.
func (x *importer) open(r row) error {
	fd, err1 := strconv.ParseInt(r["FD"], 10, 32)
	errno, err2 := strconv.ParseInt(r["ERR"], 10, 32)
	if err1 != nil || err2 != nil || errno < 0 || errno > 4095 {
		x.im.LeftOut(format.BadLines, 1)
		return nil
	}
	c, ok, err := x.begin(r, "PID")
	if !ok || err != nil {
		return err
	}
	c.Op = event.OpOpenat
	cwd := int64(event.AtFDCWD)
	c.Args[0] = uint64(cwd)
	c.Text(1, r["PATH"], false)
	flags, err := strconv.ParseUint(r["FLAGS"], 8, 32)
	if c.Args[2] = flags; err != nil {
		c.NotKnown(2)
	}
	c.NotKnown(3)
	if c.Ret = fd; errno != 0 {
		c.Ret = -errno
	}
	return x.w.Call(c)
}

// slower writes a row of fileslower, or of ext4slower and its likes.
func (x *importer) slower(r row) error {
	pid := "PID"
	if r[pid] == "" {
		pid = "TID"
	}
	c, ok, err := x.begin(r, pid)
	if !ok || err != nil {
		return err
	}
	kind := r["T"] + r["D"]
	bytes, errBytes := strconv.ParseUint(r["BYTES"], 10, 40)
	kb, errAt := strconv.ParseUint(r["OFF_KB"], 10, 50)
	switch kind {
	case "R", "W":
		c.Op = event.OpPread64
		if kind == "W" {
			c.Op = event.OpPwrite64
		}
		c.Ret, c.Interrupted = int64(bytes), errBytes != nil
		c.Args[2] = bytes // at least
		if errBytes != nil {
			c.NotKnown(2)
		}
		if c.Args[3] = kb << 10; errAt != nil {
			c.NotKnown(3)
		}
	case "S":
		c.Op = event.OpFsync
	case "O":
		c.Op = event.OpOpen
		c.Text(0, r["FILENAME"], false)
		c.NotKnown(1)
		c.NotKnown(2)
		c.Interrupted = true // its descriptor is not known
		return x.w.Call(c)
	default:
		x.im.Records--
		x.im.LeftOut(rows, 1)
		return nil
	}
	return x.onFile(c, r["FILENAME"], trace.Object{})
}

// block writes a row of biosnoop.
func (x *importer) block(r row) error {
	c, ok, err := x.begin(r, "PID")
	if !ok || err != nil {
		return err
	}
	sector, err1 := strconv.ParseUint(r["SECTOR"], 10, 50)
	bytes, err2 := strconv.ParseUint(r["BYTES"], 10, 40)
	kind := r["T"]
	if err1 != nil || err2 != nil || kind == "" || !strings.Contains("RWD", kind[:1]) {
		x.im.Records--
		x.im.LeftOut(rows, 1)
		return nil
	}
	const sectorSize, punchHole, blockMode = 512, 2 | 1, 0o060000
	at := sector * sectorSize
	switch kind[0] {
	case 'R', 'W':
		c.Op = event.OpPread64
		if kind[0] == 'W' {
			c.Op = event.OpPwrite64
		}
		c.Args[2], c.Args[3], c.Ret = bytes, at, int64(bytes)
	case 'D':
		c.Op = event.OpFallocate
		c.Args[1], c.Args[2], c.Args[3] = punchHole, at, bytes
	}
	return x.onFile(c, "/dev/"+r["DISK"], trace.Object{Mode: blockMode})
}

// onFile writes a call on a file, which the process had open: the tables have no descriptors.
func (x *importer) onFile(c *format.Call, name string, o trace.Object) error {
	k := key{c.PID, name}
	fd, ok := x.files[k]
	if !ok {
		if len(x.files) >= maxFiles {
			x.im.LeftOut(crowded, 1)
			return nil
		}
		fd = madeUp + x.next[c.PID]
		x.next[c.PID]++
		k.name = strings.Clone(name)
		x.files[k] = fd
		o.FD = fd
		if err := x.w.Open(c.PID, o, name, c.Enter); err != nil {
			return err
		}
	}
	c.Args[0] = uint64(fd)
	if c.Ret > 0 {
		c.Bytes(1, nil, c.Ret)
	}
	return x.w.Call(c)
}

// madeUp is the first of the descriptors of files, of which the tables have no numbers.
const madeUp = 1 << 20
