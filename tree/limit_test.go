// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A time that nanoseconds in 64 bits cannot hold is unknown, not another time.
func TestTakeTimeBeyondRange(t *testing.T) {
	root := t.TempDir()
	tests := []struct {
		name  string
		sec   int64
		known bool
	}{
		{"1901", -1 << 31, true}, {"2242", 1 << 33, true}, {"2446", 1<<34 - 1<<31 - 1, false},
	}
	for _, test := range tests {
		file := filepath.Join(root, test.name)
		write(t, file, "x")
		times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: test.sec}}
		must(t, unix.UtimesNanoAt(unix.AT_FDCWD, file, times, 0))
		var st unix.Stat_t
		must(t, unix.Stat(file, &st))
		if st.Mtim.Sec != test.sec {
			t.Skipf("skipped: this file system cannot keep a time in %s", test.name)
		}
	}
	m := take(t, root, nil)
	for _, test := range tests {
		if e := m.Lookup(test.name); e.Has(KnownMTime) != test.known || e.Has(KnownMTime) != (e.MTime != 0) {
			t.Errorf("%s: time %d, knows %s", test.name, e.MTime, e.Known)
		}
	}
}

// A directory one of whose entries had to be left out is not fully listed.
func TestTakeTooDeepIsNotListed(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(t, err)
	name := strings.Repeat("n", 250)
	for range MaxPathBytes/250 + 2 {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	m := take(t, root, nil)
	if last := &m.Entries[len(m.Entries)-1]; len(m.Notes) != 1 || last.Has(KnownListing) {
		t.Errorf("last entry knows %s, %d notes", last.Known, len(m.Notes))
	}
	if e := m.Lookup("."); !e.Has(KnownListing) {
		t.Errorf("root knows %s", e.Known)
	}
}

// Escaping can make a line longer than it was; what was decoded must still be encodable.
func TestDecodeLongText(t *testing.T) {
	long := strings.Repeat("\u2028", 16<<20)
	_, err := Decode(strings.NewReader(`{"format":"iotape.tree","version":1}` + "\n" +
		`{"note":"` + long + `"}` + "\n"))
	wantError(t, err, "a note is too long")
	_, err = Decode(strings.NewReader(`{"format":"iotape.tree","version":1,"root":"` + long + `"}` + "\n"))
	wantError(t, err, "the root is too long")
}
