// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bufio"
	"debug/elf"
	"io"
	"math"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

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

// Readlink returns what is known of a symbolic link; the zero Link if the name is not one.
func (here) Readlink(name string) (k posix.Link) {
	target, err := os.Readlink(name)
	if err != nil {
		return k
	}
	var st unix.Statx_t
	const wanted = unix.STATX_CTIME | unix.STATX_BTIME
	if unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW, wanted, &st) != nil {
		return k
	}
	k.Target, k.Since = target, monotonic(&st.Ctime)
	k.Born = k.Since
	if st.Mask&unix.STATX_BTIME != 0 {
		k.Born = monotonic(&st.Btime)
	}
	return k
}

// monotonic returns a time of this machine as the clock of recordings has it (CLOCK_MONOTONIC).
func monotonic(at *unix.StatxTimestamp) int64 {
	var clock, wall unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock) != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &wall) != nil {
		return math.MinInt64
	}
	return at.Sec*1e9 + int64(at.Nsec) - wall.Nano() + clock.Nano()
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
