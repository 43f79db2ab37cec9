// SPDX-License-Identifier: Apache-2.0

package procmon

import (
	"math"
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
)

// Limits of what a hostile file can make the importer hold.
const (
	maxProcesses = 1 << 16
	maxOpen      = 1 << 18 // files, of all processes
	maxMoved     = 1 << 40 // bytes of one operation
)

type importer struct {
	w         *format.Writer
	im        *format.Import
	column    map[string]int
	last      uint64
	days      uint64
	processes map[uint32]*process
	open      int
}

type process struct {
	comm   string
	fds    map[string][]int32 // descriptors by name: a file can be open several times
	free   []int32
	nextFD int32
}

func newImporter(w *format.Writer, im *format.Import, names []string) *importer {
	x := &importer{w: w, im: im, column: map[string]int{}, processes: map[uint32]*process{}}
	for i, n := range names {
		x.column[strings.Trim(n, byteOrderMark+`" `)] = i
	}
	return x
}

// operation is a row that is understood.
type operation struct {
	name, path, result string
	details            string
	pid                uint32
	enter, exit        uint64
	untimed            bool // there is no duration
}

// row takes one operation.
func (x *importer) row(row []string) error {
	cell := func(name string) string {
		if i, ok := x.column[name]; ok && i < len(row) {
			return row[i]
		}
		return ""
	}
	pid, err := strconv.ParseUint(strings.ReplaceAll(cell("PID"), ",", ""), 10, 31)
	at, ok := timeOfDay(cell("Time of Day"))
	if err != nil || !ok {
		x.im.LeftOut(format.BadLines, 1)
		return nil
	}
	o := operation{
		name: cell("Operation"), path: place(cell("Path")), result: cell("Result"), details: cell("Detail"),
		pid: max(uint32(pid), 1),
	}
	const day = 24 * 3600e9
	if at+day/2 < x.last { // it is past midnight
		x.days++
	}
	x.last = at
	o.enter = at + x.days*day
	o.exit = o.enter
	if s, err := strconv.ParseFloat(cell("Duration"), 64); err == nil && s >= 0 && s < 1e6 {
		o.exit += uint64(s * 1e9)
	} else {
		o.untimed = true
	}
	if o.path == "" {
		x.im.LeftOut("operations that are not on files: "+class(o.name), 1)
		return nil
	}
	p, err2 := x.process(&o, cell("Process Name"))
	if err2 != nil || p == nil {
		return err2
	}
	return x.operation(p, &o)
}

// class shortens the name of an operation to what kind it is.
func class(name string) string {
	for _, k := range [...]string{"Reg", "TCP", "UDP", "Thread", "Process"} {
		if strings.HasPrefix(name, k) {
			return k + "…"
		}
	}
	return "others"
}

// process returns the process of an operation, nil if there are too many.
func (x *importer) process(o *operation, comm string) (*process, error) {
	p := x.processes[o.pid]
	if p == nil {
		if len(x.processes) >= maxProcesses {
			x.im.LeftOut("operations of more than 65,536 processes", 1)
			return nil, nil
		}
		p = &process{fds: map[string][]int32{}, nextFD: 3}
		x.processes[o.pid] = p
	}
	if comm == p.comm {
		return p, nil
	}
	p.comm = strings.Clone(comm)
	return p, x.w.Task(&format.Task{PID: o.pid, TID: o.pid, Comm: p.comm}, o.enter)
}

// operation writes the nearest call.
func (x *importer) operation(p *process, o *operation) error {
	c := &format.Call{PID: o.pid, TID: o.pid, Enter: o.enter, Exit: o.exit, Untimed: o.untimed}
	errno, known := results[o.result]
	if !known {
		errno = syscall.EIO
	}
	c.Ret = -int64(errno)
	switch o.name {
	case "CreateFile":
		return x.create(p, o, c)
	case "CloseFile":
		return x.close(p, o, c)
	case "ReadFile", "WriteFile":
		return x.access(p, o, c)
	case "FlushBuffersFile":
		c.Op = event.OpFsync
		return x.onFile(p, o, c)
	case "SetEndOfFileInformationFile":
		c.Op = event.OpFtruncate
		var ok bool
		if c.Args[1], ok = detail(o.details, "EndOfFile"); !ok {
			c.NotKnown(1)
		}
		return x.onFile(p, o, c)
	case "SetRenameInformationFile":
		c.Op = event.OpRename
		c.Text(0, o.path, false)
		to := place(text(o.details, "FileName"))
		if to == "" {
			x.im.LeftOut("renames without a new name", 1)
			return nil
		}
		c.Text(1, to, false)
	case "SetDispositionInformationFile", "SetDispositionInformationEx":
		if !strings.Contains(o.details, "Delete: True") && !strings.Contains(o.details, "FILE_DISPOSITION_DELETE") {
			return x.skip(o)
		}
		c.Op = event.OpUnlink
		c.Text(0, o.path, false)
	case "QueryOpen", "QueryNetworkOpenInformationFile", "QueryBasicInformationFile", "QueryStandardInformationFile":
		c.Op = event.OpStat
		c.Text(0, o.path, false)
		c.Args[1] = 1
	default:
		return x.skip(o)
	}
	return x.call(c)
}

func (x *importer) skip(o *operation) error {
	x.im.LeftOut("operations on files without a like call: "+o.name[:min(len(o.name), 48)], 1)
	return nil
}

func (x *importer) call(c *format.Call) error {
	x.im.Records++
	return x.w.Call(c)
}

// readsContent reports whether an access to a file is more than to its attributes.
func readsContent(access string) bool {
	return strings.Contains(access, "Generic Read") || strings.Contains(access, "Read Data")
}

// create writes an open, or the making of a directory.
func (x *importer) create(p *process, o *operation, c *format.Call) error {
	access, options := text(o.details, "Desired Access"), o.details
	directory := strings.Contains(options, "Options: Directory") || strings.Contains(options, ", Directory,")
	result := text(o.details, "OpenResult")
	flags := uint64(syscall.O_RDONLY)
	switch write, read := strings.Contains(access, "Write"), readsContent(access); {
	case strings.Contains(access, "All Access") || write && read:
		flags = syscall.O_RDWR
	case write:
		flags = syscall.O_WRONLY
	}
	if directory {
		flags = syscall.O_RDONLY | syscall.O_DIRECTORY
		if result == "Created" {
			made := *c
			made.Op, made.Ret = event.OpMkdir, 0
			made.Text(0, o.path, false)
			made.Args[1] = 0o777
			if err := x.call(&made); err != nil {
				return err
			}
			x.im.Records-- // of one row
		}
	} else {
		switch text(o.details, "Disposition") {
		case "Create":
			flags |= syscall.O_CREAT | syscall.O_EXCL
		case "OpenIf":
			flags |= syscall.O_CREAT
		case "OverwriteIf", "Supersede":
			flags |= syscall.O_CREAT | syscall.O_TRUNC
		case "Overwrite":
			flags |= syscall.O_TRUNC
		}
	}
	c.Op = event.OpOpen
	c.Text(0, o.path, false)
	c.Args[1] = flags
	if flags&syscall.O_CREAT != 0 {
		c.Args[2] = 0o666
	}
	if c.Ret == 0 {
		if x.open >= maxOpen {
			x.im.LeftOut("opens of files, of which there are too many", 1)
			return nil
		}
		c.Ret = int64(x.descriptor(p, o.path))
	}
	return x.call(c)
}

// descriptor gives a file of a process a number.
func (x *importer) descriptor(p *process, path string) int32 {
	fd := p.nextFD
	if n := len(p.free); n > 0 {
		fd, p.free = p.free[n-1], p.free[:n-1]
	} else {
		p.nextFD++
	}
	path = strings.Clone(path)
	p.fds[path] = append(p.fds[path], fd)
	x.open++
	return fd
}

// onFile writes a call on an open file. One that is not open was open before the trace.
func (x *importer) onFile(p *process, o *operation, c *format.Call) error {
	fds := p.fds[o.path]
	if len(fds) == 0 {
		if x.open >= maxOpen {
			x.im.LeftOut("opens of files, of which there are too many", 1)
			return nil
		}
		fd := x.descriptor(p, o.path)
		if err := x.w.Open(o.pid, object(fd), o.path, o.enter); err != nil {
			return err
		}
		fds = p.fds[o.path]
	}
	c.Args[0] = uint64(fds[len(fds)-1])
	return x.call(c)
}

func (x *importer) close(p *process, o *operation, c *format.Call) error {
	fds := p.fds[o.path]
	if len(fds) == 0 {
		x.im.LeftOut("closes of files that were open before the trace", 1)
		return nil
	}
	fd := fds[len(fds)-1]
	if p.fds[o.path] = fds[:len(fds)-1]; len(fds) == 1 {
		delete(p.fds, o.path)
	}
	p.free = append(p.free, fd)
	x.open--
	c.Op, c.Args[0] = event.OpClose, uint64(fd)
	return x.call(c)
}

// access writes a read or a write.
func (x *importer) access(p *process, o *operation, c *format.Call) error {
	n, sized := detail(o.details, "Length")
	at, placed := detail(o.details, "Offset")
	n, at = min(n, maxMoved), min(at, math.MaxInt64-maxMoved)
	c.Op = event.OpPread64
	if o.name == "WriteFile" {
		c.Op = event.OpPwrite64
	}
	c.Args[2], c.Args[3] = n, at
	if !sized {
		c.NotKnown(2)
	}
	if !placed {
		c.NotKnown(3)
	}
	switch {
	case o.result == "END OF FILE":
		c.Ret = 0
	case c.Ret == 0 && !sized:
		c.Interrupted = true // how much it moved is not known
	case c.Ret == 0:
		c.Ret = int64(n)
		c.Bytes(1, nil, int64(n))
	}
	return x.onFile(p, o, c)
}
