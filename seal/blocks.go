// SPDX-License-Identifier: Apache-2.0

package seal

import "github.com/iotape/iotape/event"

// mostBlockFiles bounds the files whose names are kept for requests to block devices.
const mostBlockFiles = 1 << 18

// blocks names the files of requests to block devices, of which the kernel says device and
// inode only: by what calls said of these before. Nil: nobody recorded such requests.
type blocks map[fileNumber]fileName

type fileNumber struct {
	dev, ino uint64
}

type fileName struct{ given, real string }

// see takes an event whose files are resolved.
func (b blocks) see(ev *event.Event) {
	if b == nil || ev.Kind != event.Call && ev.Kind != event.Inherited {
		return
	}
	block := ev.Kind == event.Call && ev.Spec().Class == event.Block
	for i := range ev.Files {
		f := &ev.Files[i]
		id := fileNumber{f.Dev, f.Ino}
		switch {
		case f.Ino == 0:
		case !block:
			if f.Path != "" && event.FileType(f.Mode) == event.TypeRegular && len(b) < mostBlockFiles {
				b[id] = fileName{f.Path, f.Real}
			}
		case f.Path == "" && f.Real == "":
			f.Path, f.Real = b[id].given, b[id].real
		}
	}
}
