// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/initialtree"
)

// maxBytes returns how many bytes of the target's file system the calls may take, 0 for no limit. It is an
// error if the initial tree takes more already.
func (o *Options) maxBytes(initial *initialtree.Tree, into string) (int64, error) {
	const small = 4 << 30 // a file system of its own, which may be filled
	most := o.MaxBytes
	var fs unix.Statfs_t
	if most <= 0 && unix.Statfs(into, &fs) == nil {
		if free := int64(fs.Bavail) * fs.Bsize; free >= small {
			most = free / 2
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
