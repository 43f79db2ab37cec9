// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/layout"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// Names of what a trace uses and does not name.
const (
	unknownDirectory = "/unknown/cwd"
	unknownFile      = "/unknown/fd-%d-of-%d" // descriptor and process
)

const (
	inventedDirectory = "working directories that the trace does not say: " + unknownDirectory + " stands for them"
	inventedFile      = "files that were open before the trace, without a name: /unknown/fd-N-of-PID stands for them"
)

// maxDirectories bounds how many threads findDirectories remembers.
const maxDirectories = 1 << 12

// findDirectories looks in a trace's beginning for the working directories in which threads began:
// what getcwd answered before they changed it, or behind one change to a relative name. Number 0
// is that of the first answer of any thread before any change, or of one that has the first thread's. Without
// an answer, the name that -y writes behind the result of an open of a relative name has it.
func findDirectories(head iter.Seq[string]) map[uint32]string {
	d := directories{found: map[uint32]string{}, changed: map[uint32]string{}, opened: map[uint32]string{},
		makers: map[uint32]uint32{}, first: true}
	for line := range head {
		p := parsePrefix(strings.TrimSuffix(line, "\n"))
		d.root = cmp.Or(d.root, p.tid)
		name, _, _ := strings.Cut(p.body, "(")
		if rest, ok := strings.CutPrefix(name, "<... "); ok {
			name, _, _ = strings.Cut(rest, " ")
		}
		switch name {
		case "clone", "clone3", "fork", "vfork":
			if made := madeThread(p.body); made != 0 && len(d.makers) < maxDirectories {
				d.makers[made] = p.tid
			}
		case "chdir", "fchdir", "getcwd":
			d.call(p.tid, name, p.body)
		case "open", "openat", "openat2", "creat":
			d.opens(p.tid, p.body)
		}
	}
	if len(d.found) == 0 {
		return d.opened
	}
	return d.found
}

// directories are the working directories of threads, by their numbers.
type directories struct {
	found   map[uint32]string // where they began
	changed map[uint32]string // where they went, "" if that is not known
	opened  map[uint32]string // where they began, by the results of opens
	first   bool              // no thread has changed its directory or said it
	root    uint32            // the first thread
	makers  map[uint32]uint32 // of threads
}

// inherited reports whether a thread has the directory in which the first one began: no thread from that one to it
// has changed it.
func (d *directories) inherited(tid uint32) bool {
	for range maxAncestors {
		if _, changed := d.changed[tid]; changed {
			return false
		}
		if tid == d.root {
			return true
		}
		tid = d.makers[tid]
	}
	return false
}

// maxAncestors bounds how far back inherited looks.
const maxAncestors = 64

// opens takes a line of an open.
func (d *directories) opens(tid uint32, body string) {
	if _, again := d.changed[tid]; again || !d.first || len(d.opened) > maxDirectories {
		return
	}
	if dir := openedIn(body); dir != "" {
		d.opened[tid], d.opened[0] = cmp.Or(d.opened[tid], dir), cmp.Or(d.opened[0], dir)
	}
}

// call takes a line of a call that says or changes the directory.
func (d *directories) call(tid uint32, name, body string) {
	_, args, r, err := parseCall(body)
	if err != nil || r.ret < 0 || len(args) == 0 || len(d.changed)+len(d.found) > maxDirectories {
		return
	}
	data := string(args[0].Data)
	if name != "getcwd" {
		d.first = false
		if _, again := d.changed[tid]; again || name == "fchdir" {
			data = ""
		}
		d.changed[tid] = data
		return
	}
	if args[0].Cut || !strings.HasPrefix(data, "/") || d.found[tid] != "" {
		return
	}
	if to, ok := d.changed[tid]; ok {
		if data, ok = strings.CutSuffix(data, "/"+to); !ok || to == "" || strings.Contains(to, "..") {
			return
		}
		data = cmp.Or(data, "/")
	}
	d.found[tid] = data
	if d.first || d.found[0] == "" && d.inherited(tid) {
		d.first, d.found[0] = false, data
	}
}

// openedIn returns the directory in which an open found a relative name, if the line says the whole name:
// openat(AT_FDCWD, "a", O_RDONLY) = 3</home/a>. It is "" if it does not, or a symbolic link was at its end.
func openedIn(body string) string {
	quote := strings.IndexByte(body, '"')
	if quote < 0 || strings.HasPrefix(body[quote:], `"/`) || !strings.Contains(body, "</") {
		return ""
	}
	_, args, r, err := parseCall(body)
	if err != nil || r.ret < 0 || r.note == "" || len(args) == 0 {
		return ""
	}
	name := &args[0]
	if name.Kind != layout.ToldText {
		if name.Text != "AT_FDCWD" && name.Text != "-100" || len(args) == 1 {
			return ""
		}
		name = &args[1]
	}
	_, real := object(r.note)
	given := path.Clean("/" + string(name.Data))
	dir, ok := strings.CutSuffix(real, given)
	if !ok || name.Cut || !strings.HasPrefix(real, "/") || len(name.Data) == 0 || given == "/" ||
		strings.Contains("/"+string(name.Data)+"/", "/../") {
		return ""
	}
	return cmp.Or(dir, "/")
}

// startedIn says in which directory a process without ancestors in the trace was from its
// beginning, as far as the trace knows. Only the first time counts.
func (x *importer) startedIn(p *process, dir string) error {
	if p.cwd {
		return nil
	}
	p.cwd = true
	return x.w.Start(p.pid, dir, defaultUmask, max(p.began, 1)-1)
}

// unseen says what a call uses and no line before has told: what it proves of descriptors by
// its success, and the working directory of relative names.
func (x *importer) unseen(t *thread, c *format.Call) error {
	spec := event.Lookup(c.Op)
	if c.Op == event.OpUnknown {
		return nil
	}
	if c.Op == event.OpGetcwd && c.Ret > 0 && t.p == t.p.first && x.cwds[t.p.pid] != "" {
		if err := x.unseenDirectory(t.p); err != nil {
			return err
		}
	}
	dirfd := int32(event.AtFDCWD)
	for i := range x.fields {
		told := x.fields[i]
		if told == nil {
			continue
		}
		a := spec.Argument(i, &c.Args)
		var err error
		switch a.Kind {
		case event.KindDirFD:
			if dirfd = int32(c.Args[i]); dirfd >= 0 {
				err = x.unseenFile(t, c, i)
			}
		case event.KindPath:
			if told.Kind == layout.ToldText && len(told.Data) > 0 && told.Data[0] != '/' && dirfd == event.AtFDCWD {
				err = x.unseenDirectory(t.p.first)
			}
			dirfd = event.AtFDCWD
		case event.KindFD:
			err = x.unseenFile(t, c, i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unseenDirectory invents the working directory of a process, unless it is known.
func (x *importer) unseenDirectory(p *process) error {
	if p.cwd {
		return nil
	}
	dir := x.cwds[p.pid]
	if dir == "" && (len(x.threads) == 1 || p.pid == x.main) {
		dir = x.cwds[0]
	}
	if dir == "" {
		dir = unknownDirectory
		x.done.LeftOut(inventedDirectory, 1)
	}
	return x.startedIn(p, dir)
}

// proof is what a call that succeeded proves of a descriptor.
type proof struct {
	mode  uint32 // file type, 0 if any
	named bool   // a file of a file system
	size  int64  // bytes, as far as that is said
}

// provedByName returns what success proves of a directory's descriptor in argument i: nothing
// but what stat says, if the name behind it is empty (AT_EMPTY_PATH).
func (x *importer) provedByName(i int) proof {
	if i+1 < len(x.fields) && x.fields[i+1] != nil && x.fields[i+1].Kind == layout.ToldText &&
		len(x.fields[i+1].Data) > 0 {
		return proof{mode: event.TypeDir, named: true}
	}
	return x.provedByStat()
}

// provedByStat returns what the structure that stat filled says of a file.
func (x *importer) provedByStat() (is proof) {
	for _, f := range x.fields {
		if f == nil || f.Kind != layout.ToldFields {
			continue
		}
		for i := range f.Parts {
			switch p := &f.Parts[i]; p.Name {
			case "st_mode", "stx_mode":
				mode, _ := layout.ParseMode(p.Text)
				is.mode = event.FileType(uint32(mode))
			case "st_size", "stx_size":
				size, _ := event.ParseNumber(p.Text)
				is.size = int64(min(size, maxMoved))
			}
		}
	}
	is.named = is.mode == event.TypeRegular || is.mode == event.TypeDir
	return is
}

// proof returns what the success of a call proves of the descriptor in argument i.
func (x *importer) proof(c *format.Call, i int) proof {
	spec := event.Lookup(c.Op)
	if c.Ret < 0 || c.Interrupted || i >= len(spec.Args) {
		return proof{}
	}
	if spec.Argument(i, &c.Args).Kind == event.KindDirFD {
		return x.provedByName(i)
	}
	return x.proves(c, spec, i)
}

// give gives what is proved to an open file and its object.
func (is proof) give(f *format.OpenFile, o *trace.Object) {
	if o.Mode = is.mode; !is.named || is.mode != event.TypeRegular {
		return
	}
	f.Pos, f.Regular, f.Flags = 0, true, 2
	if o.FD == 1 || o.FD == 2 { // output goes to the end
		f.Pos = is.size
	}
	o.Pos, o.Flags = f.Pos, 2 // O_RDWR: what it was opened for is not known
}

// proves returns what the success of a call proves of the descriptor in argument i.
func (x *importer) proves(c *format.Call, spec *event.Spec, i int) proof {
	switch c.Op {
	case event.OpFstat:
		return x.provedByStat()
	case event.OpGetdents, event.OpGetdents64, event.OpFchdir:
		return proof{mode: event.TypeDir, named: true}
	case event.OpPread64, event.OpPwrite64, event.OpPreadv, event.OpPwritev, event.OpPreadv2, event.OpPwritev2,
		event.OpLseek, event.OpFtruncate, event.OpFallocate, event.OpCopyFileRange, event.OpMmap:
		return proof{mode: event.TypeRegular, named: true}
	case event.OpSendfile:
		if i == 1 {
			return proof{mode: event.TypeRegular, named: true}
		}
	}
	if spec.Class == event.Socket {
		return proof{mode: event.TypeSocket}
	}
	return proof{}
}

// unseenFile says that a descriptor was open before the trace: a call used it, and succeeded.
func (x *importer) unseenFile(t *thread, c *format.Call, i int) error {
	fd := int32(c.Args[i])
	if fd < 0 || c.Ret < 0 || c.Interrupted || t.p.fds[fd] != nil || len(t.p.fds) >= maxFDs {
		return nil
	}
	f := &format.OpenFile{Pos: -1}
	is, o, name := x.proof(c, i), trace.Object{FD: fd}, ""
	if is.named {
		name = fmt.Sprintf(unknownFile, fd, t.p.pid)
		x.done.LeftOut(inventedFile, 1)
	}
	is.give(f, &o)
	t.p.fds[fd] = f
	return x.w.Open(t.p.pid, o, name, c.Enter)
}
