// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bufio"
	"debug/elf"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/iotape/iotape/model/posix"
	"github.com/iotape/iotape/trace"
)

// Here is the file system of this machine, for recordings that were made on it.
var Here posix.FileSystem = here{}

type here struct{}

// isHere reports whether a recording was made on this machine since it started. A container has the machine's
// number of that, and another name.
func isHere(h *trace.Head) bool {
	name, err := os.Hostname()
	if err != nil || h.Host != name || h.BootID == "" {
		return false
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return err == nil && strings.TrimSpace(string(id)) == h.BootID
}

// Readlink returns the target of a symbolic link; "" if the name is not one.
func (here) Readlink(name string) string {
	target, err := os.Readlink(name)
	if err != nil {
		return ""
	}
	return target
}

// Inode returns the device and the number of the file that a name without links leads to.
func (here) Inode(name string) (dev, ino uint64) {
	var st syscall.Stat_t
	if syscall.Lstat(name, &st) != nil {
		return 0, 0
	}
	return st.Dev, st.Ino
}

// maxScripts is how many interpreters of interpreters the kernel follows (execve(2)).
const maxScripts = 5

// Loaders returns the interpreter of a script, and the dynamic loader of a program.
func (h here) Loaders(name string) []string {
	var list []string
	for len(list) < maxScripts {
		loader := h.loader(name)
		if loader == "" {
			break
		}
		list = append(list, loader)
		name = loader
	}
	return list
}

func (here) loader(name string) string {
	const firstLine = 256 // BINPRM_BUF_SIZE
	// A FIFO would let an open wait.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return ""
	}
	line, _ := bufio.NewReader(io.LimitReader(f, firstLine)).ReadString('\n')
	if rest, ok := strings.CutPrefix(line, "#!"); ok {
		if words := strings.Fields(rest); len(words) > 0 {
			return words[0]
		}
		return ""
	}
	program, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz <= syscall.PathMax {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err == nil {
				return strings.TrimRight(string(b), "\x00")
			}
		}
	}
	return ""
}
