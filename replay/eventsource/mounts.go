// SPDX-License-Identifier: Apache-2.0

package eventsource

import (
	"slices"
	"strconv"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/replay/effect"
)

// mountsDir has a directory for each file system that the recording mounted: a replay mounts nothing,
// and what lies below a mount is not what lies below the directory that it covers.
const mountsDir = "/.iotape-mounts/"

// kernelTypes are file systems whose files the kernel makes up, and where such files are.
var kernelTypes = map[string]string{
	"proc": "/proc", "sysfs": "/sys", "devtmpfs": "/dev", "devpts": "/dev/pts", "mqueue": "/dev/mqueue",
	"cgroup": "/sys/fs/cgroup", "cgroup2": "/sys/fs/cgroup", "bpf": "/sys/fs/bpf", "debugfs": "/sys/kernel/debug",
	"tracefs": "/sys/kernel/tracing", "securityfs": "/sys/kernel/security", "configfs": "/sys/kernel/config",
	"binfmt_misc": "/proc/sys/fs/binfmt_misc", "fusectl": "/sys/fs/fuse", "pstore": "/sys/fs/pstore",
}

// overlays returns where in a replay the files of overlays are of which it is not known where they store changes: that
// may be in the tree, and a replay does not make it.
func overlays(mounts []posix.Mount) (dirs []string) {
	for _, m := range mounts {
		if m.Unsaid {
			dirs = append(dirs, mountsDir+strconv.Itoa(m.Number))
		}
	}
	return dirs
}

// within reports whether an event is about something below one of the directories.
func within(dirs []string, ev *event.Event) bool {
	below := func(name string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool {
			rest, ok := strings.CutPrefix(name, dir)
			return ok && (rest == "" || rest[0] == '/')
		})
	}
	return slices.ContainsFunc(ev.Paths, func(p event.Path) bool { return below(p.Abs) }) ||
		slices.ContainsFunc(ev.Files, func(f event.File) bool { return below(f.Path) || below(f.Real) })
}

// covered returns what mounts make of names: the last one that covers a name counts.
func covered(mounts []posix.Mount) Renames {
	var rs Renames
	for _, m := range slices.Backward(mounts) {
		to, ok := kernelTypes[m.Type]
		if !ok {
			to = mountsDir + strconv.Itoa(m.Number)
		}
		rs = append(rs, Rename{m.At, to})
	}
	return rs
}

// mount gives the names of an event, and the directories that they begin at, the places that they
// have in a replay without mounts. Links keep their text: where they lead is known by name.
func (rs Renames) mount(ev *event.Event, bases []string) {
	for i := range ev.Paths {
		if p := &ev.Paths[i]; p.Real != "" && rs.Path(p.Real) != p.Real {
			p.Raw, p.Abs = p.Real, p.Real // a link outside leads below a mount
		}
	}
	rs.names(ev, bases)
	for i := range bases {
		bases[i] = rs.Path(bases[i])
	}
}

// where lets a getcwd say the working directory as a replay has it, which has neither the mounts nor the root
// directory of the recording. The kernel says of a directory that is not below the root directory that it
// is unreachable.
func where(fs *posix.FS, ev *event.Event) {
	dir, mounts := fs.Dir()
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		if now := covered(mounts).Path(dir); dir != "" && len(b.Refs) > 0 && ev.Ret != int64(len(now)+1) {
			b.Inline, b.Refs = append([]byte(now), 0), nil // a long one, of another length
			b.Len = int64(len(b.Inline))
			resize(ev, b, int(b.Len-ev.Ret))
			continue
		}
		was := strings.TrimPrefix(effect.CString(b.Inline), "(unreachable)")
		if strings.HasPrefix(was, "/") && dir != "" {
			resize(ev, b, rename(b, covered(mounts).Path(dir)))
		}
	}
}

// stored notes where overlays store what is written to them. What the kernel makes there (copies, whiteouts, opaque
// directories) depends on the lower directories; a replay does not make it.
func (r *Reader) stored(model *posix.Model, mounts, renames Renames) {
	list := model.Overlays()
	for _, m := range list[min(r.seen[model], len(list)):] {
		for _, dir := range [...]string{m.Upper, m.Work} {
			if dir == "" {
				continue
			}
			if dir = renames.Path(mounts.Path(dir)); !slices.Contains(r.overlays, dir) {
				r.overlays = append(r.overlays, dir)
			}
		}
	}
	if len(list) > 0 {
		r.seen[model] = len(list)
	}
}

// Overlays returns, after the last event, the directories into which overlays stored, as the replay names them.
func (r *Reader) Overlays() []string { return r.overlays }

// Mounted returns, after the last event, what the mounts that were left then make of names.
func (r *Reader) Mounted() Renames {
	var rs Renames
	for i, m := range r.models {
		host := r.layout.Host(uint32(i))
		for _, c := range covered(m.Host().Own()) {
			rs = append(rs, Rename{host.Renames.Path(c.Old), host.Renames.Path(c.New)})
		}
	}
	return rs
}
