// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/execute"
	"github.com/iotape/iotape/replay/initialtree"
)

// maxBytes returns how many bytes of the target's file system the calls of several copies may take, 0 for no limit. It
// is an error if the initial tree takes more already.
func (o *Options) maxBytes(initial *initialtree.Tree, into string, several int) (int64, error) {
	const small = 4 << 30 // a file system of its own, which may be filled
	most := o.MaxBytes
	var fs unix.Statfs_t
	if most <= 0 && unix.Statfs(into, &fs) == nil {
		if free := int64(fs.Bavail) * fs.Bsize; free >= small {
			most = min(free/2, enough(initial.Written, int64(several)))
		}
	}
	if most <= 0 {
		return 0, nil
	}
	left := most
	for e := range initial.Entries() {
		for _, c := range e.Chunks {
			if left -= int64(c.Len); left < 0 {
				return 0, fmt.Errorf("the initial tree would take more than %d bytes of %s: --max-bytes allows more",
					most, into)
			}
		}
	}
	return max(left, 1), nil
}

// enough returns how many bytes copies of a tape take at most whose calls write some: space can be asked for that is
// never written, but a line of a tape is no reason to fill a disk.
func enough(written, copies int64) int64 {
	const (
		unwritten = 16 << 30 // of fallocate, and for what file systems need beside the content
		clones    = 4        // content that files share takes space of its own where they cannot
	)
	if written > (math.MaxInt64-unwritten)/clones/copies {
		return math.MaxInt64
	}
	return unwritten + clones*copies*written
}

// limits returns what the calls may take; bytes is as maxBytes returns it.
func (o *Options) limits(bytes int64, into string) execute.Limits {
	l := execute.Limits{
		Bytes: bytes, Files: int64(min(o.MaxFiles, math.MaxInt64)),
		Open: o.MaxOpen, Memory: o.MaxMemory, Time: o.MaxTime,
	}
	const many = 1 << 20 // a file system with less room is one of its own, which may be filled
	var fs unix.Statfs_t
	if l.Files == 0 && unix.Statfs(into, &fs) == nil && fs.Files > 0 && fs.Ffree/2 >= many/2 {
		l.Files = int64(min(fs.Ffree/2, math.MaxInt64))
	}
	if l.Memory == 0 {
		if n := availableMemory(); n > 0 {
			l.Memory = max(n/4*3, 2<<30)
		}
	}
	return l
}

// availableMemory returns how many bytes the machine can give to programs (proc_meminfo(5)), 0 if it
// does not say.
func availableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
