// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/mapped"
)

// mmapMode is the programs' number of a policy (bpf/mapped.h).
func mmapMode(m capture.Mmap) uint32 {
	switch m {
	case capture.MmapOff:
		return 0
	case capture.MmapWritten:
		return 1
	case capture.MmapFull:
		return 3
	}
	return 2
}

// readKeep returns how many bytes of a page that is read are wanted.
func readKeep(content capture.Content) uint32 {
	return content.Of(event.Lookup(event.OpMmapPread), mapped.Arg).Bytes()
}

// faultHooks are the programs that record reads through mappings, by the kernel's
// tracepoint. Only x86 has those of page faults.
var faultHooks = map[string]string{
	"on_page_fault_user": "page_fault_user", "on_page_fault_kernel": "page_fault_kernel",
	"on_map_pages": "mm_filemap_map_pages", "on_filemap_fault": "mm_filemap_fault",
}

// mappedHooks are all programs of mapped files that are attached, in this order.
var mappedHooks = []string{"on_filemap_fault", "on_map_pages", "on_page_fault_kernel", "on_page_fault_user",
	"on_dirty_folio", "on_writeback"}

// dropMissing takes out the programs whose tracepoints this kernel lacks, and those that
// the policy does without. noUring says that those of io_uring are among the former, and
// unseen, in lines for the user, what is not recorded for that.
func dropMissing(spec *ebpf.CollectionSpec, kernel *btf.Spec, mmap capture.Mmap) (unseen []string) {
	for name, hook := range uringHooks {
		prog, old := spec.Programs[name], olderHooks[hook]
		if prog != nil && old != "" && !hasTracepoint(kernel, hook) && hasTracepoint(kernel, old) {
			prog.AttachTo = old
		}
	}
	missing := func(hooks map[string]string) string {
		for _, name := range slices.Sorted(maps.Keys(hooks)) {
			hook := hooks[name]
			if !hasTracepoint(kernel, hook) && !hasTracepoint(kernel, olderHooks[hook]) {
				return hook
			}
		}
		return ""
	}
	if hook := missing(uringHooks); hook != "" {
		for name := range uringHooks {
			delete(spec.Programs, name)
		}
		var request *btf.Struct
		if kernel.TypeByName("io_kiocb", &request) == nil { // else no program can make any
			unseen = append(unseen, "requests to io_uring are not recorded: this kernel has no tracepoint "+hook)
		}
	}
	reads := mmap != capture.MmapOff && mmap != capture.MmapWritten
	if hook := missing(faultHooks); reads && hook != "" {
		unseen = append(unseen, "not all reads of mapped files are recorded: this kernel has no tracepoint "+hook)
	}
	for name, hook := range faultHooks {
		if !reads || !hasTracepoint(kernel, hook) {
			delete(spec.Programs, name)
		}
	}
	if mmap == capture.MmapOff {
		for _, name := range append([]string{countMappings}, mappedHooks...) {
			delete(spec.Programs, name)
		}
	}
	return unseen
}

func hasTracepoint(kernel *btf.Spec, name string) bool {
	var t *btf.Typedef
	return kernel.TypeByName("btf_trace_"+name, &t) == nil
}

// tellsPointer reports whether an argument of a tracepoint, counted from 0, is a pointer.
func tellsPointer(kernel *btf.Spec, name string, arg int) bool {
	var t *btf.Typedef
	if kernel.TypeByName("btf_trace_"+name, &t) != nil {
		return false
	}
	to, _ := t.Type.(*btf.Pointer)
	if to == nil {
		return false
	}
	proto, _ := to.Target.(*btf.FuncProto)
	if proto == nil || len(proto.Params) <= arg+1 { // the first is the tracepoint's own
		return false
	}
	_, is := btf.UnderlyingType(proto.Params[arg+1].Type).(*btf.Pointer)
	return is
}

// prepareMapped maps the ring of touches, if mappings are recorded.
func (p *programs) prepareMapped() error {
	if p.mmap == capture.MmapOff {
		return nil
	}
	m, err := p.Touches.Clone()
	if err != nil {
		return fmt.Errorf("share the ring of stores: %w", err)
	}
	p.touches, err = mapRing(m)
	return err
}

// errNotMapped is returned where nothing is mapped from a file.
var errNotMapped = errors.New("no file is mapped there")

// openMapped opens for reading the file that a thread has mapped at an address.
func openMapped(tid int, addr uint64) (int, area, error) {
	dir := "/proc/" + strconv.Itoa(tid)
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return -1, area{}, err
	}
	a, ok := areaAt(maps, addr)
	if !ok {
		return -1, area{}, errNotMapped
	}
	fd, err := openQuietly(fmt.Sprintf("%s/map_files/%x-%x", dir, a.from, a.to))
	return fd, a, err
}

// area is what a process has mapped at [from, to).
type area struct {
	from, to     uint64
	off          uint64 // in the file
	exec, shared bool
}

// areaAt finds the line of an address in a maps file (proc_pid_maps(5)).
func areaAt(maps []byte, addr uint64) (area, bool) {
	for len(maps) > 0 {
		var from, to uint64
		i := 0
		for ; i < len(maps) && maps[i] != '-'; i++ {
			from = from<<4 | uint64(hexDigit(maps[i]))
		}
		j := min(i+1, len(maps))
		for ; j < len(maps) && maps[j] != ' '; j++ {
			to = to<<4 | uint64(hexDigit(maps[j]))
		}
		if from <= addr && addr < to {
			a := area{from: from, to: to}
			if f := maps[min(j+1, len(maps)):]; len(f) > len("r-xp ") {
				a.exec, a.shared = f[2] == 'x', f[3] == 's'
				for _, c := range f[len("r-xp "):] {
					if c == ' ' {
						break
					}
					a.off = a.off<<4 | uint64(hexDigit(c))
				}
			}
			return a, true
		}
		for ; j < len(maps) && maps[j] != '\n'; j++ {
		}
		maps = maps[min(j+1, len(maps)):]
	}
	return area{}, false
}

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// openQuietly opens a file for reading without changing its access time and, if the
// kernel allows it, through a mount of its own, so that the file system that it is
// on can be unmounted meanwhile.
func openQuietly(path string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_CLOEXEC
	if tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err == nil {
		defer unix.Close(tree)
		own := "/proc/self/fd/" + strconv.Itoa(tree)
		if fd, err := unix.Open(own, flags|unix.O_NOATIME, 0); err == nil {
			return fd, nil
		}
	}
	fd, err := unix.Open(path, flags|unix.O_NOATIME, 0)
	if err != nil {
		fd, err = unix.Open(path, flags, 0)
	}
	return fd, err
}

// pages writes the content of n bytes of pages, as far as it is there and wanted.
func (w *dataWriter) pages(data []byte, n uint64) {
	for _, p := range mapped.Pieces(nil, w.d.content, event.OpMmapPread, data, n) {
		w.off = p.Off
		w.put(p.Flags, uint64(p.Len), p.Data)
	}
}
