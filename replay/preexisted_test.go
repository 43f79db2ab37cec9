// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/internal/tapescript"
)

// An open with O_CREAT found its file if the file has permissions that the open did not ask for: the recording began
// after it was made, by mkstemp(3) for example.
func TestPreexistedByPermissions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		mode  uint32 // of the opened file
		found bool
	}{
		{"of mkstemp", 0o600, true},
		{"asked for", 0o644, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tapescript.New(t)
			s.Add(event.Event{Op: event.OpOpenat, Ret: 3,
				Args:  [6]uint64{tapescript.AtFDCWD(), 0x1000, event.OpenCreat | event.OpenTrunc | 2, 0o644},
				Paths: []event.Path{{Arg: 1, Raw: "f"}},
				Files: []event.File{{Arg: event.ResultArg, FD: 3, Known: true, Mode: tapescript.IsFile&^0o777 | c.mode,
					Ino: 77, Nlink: 1, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Flags: 2}}})
			into := filepath.Join(t.TempDir(), "out")
			if _, err := Restore(t.Context(), s.Close(), into, &RestoreOptions{}); err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(filepath.Join(into, "work/f"))
			if found := err == nil; found != c.found || found && st.Mode().Perm() != os.FileMode(c.mode) {
				t.Errorf("%v, %v; it is to be there: %v, with %o", st, err, c.found, c.mode)
			}
		})
	}
}
