// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/formattest"
)

// TestMakerBehindChild reads calls whose lines stand behind those of the thread that they made, as strace -z prints
// them: the child has the descriptors of its maker.
func TestMakerBehindChild(t *testing.T) {
	const open = "7 openat(AT_FDCWD, \"/a\", O_RDWR) = 3\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"vfork", open + "8 read(3, \"ab\", 8) = 2\n7 vfork() = 8\n", []string{
			`7/7  openat -1:fd3=/a 1:"/a"=/a = 3`, `8/8  read 0:fd3=/a 1:2="ab" @0 = 2`, `7/7  vfork = 8`}},
		{"a thread", open + "8 close(3) = 0\n7 clone(child_stack=NULL, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8\n",
			[]string{`7/7  openat -1:fd3=/a 1:"/a"=/a = 3`, `7/8  close 0:fd3=/a = 0`, `7/7  clone = 8`}},
		{"a number that is used again", "8 read(3, \"ab\", 8) = 2\n8 +++ exited with 0 +++\n" + open + "7 vfork() = 8\n",
			[]string{`8/8  read 0:fd3= 1:2="ab" = 2`, `7/7  openat -1:fd3=/a 1:"/a"=/a = 3`, `7/7  vfork = 8`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tape, _ := formattest.Tape(t, func(im *format.Import) error {
				w, err := im.Host("")
				if err != nil {
					return err
				}
				return Import(strings.NewReader(tt.text), 0, w, &im.Done)
			})
			if got := formattest.Describe(t, tape); !slices.Equal(got, tt.want) {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestClockSetBack reads a trace of a machine whose clock was set back: that is said, and later times keep their
// distances.
func TestClockSetBack(t *testing.T) {
	const text = "1 1700000100.000000 getpid() = 1 <0.000001>\n" +
		"1 1700000050.000000 getpid() = 1 <0.000001>\n" +
		"1 1700000050.500000 getpid() = 1 <0.000001>\n"
	tape, done := formattest.Tape(t, func(im *format.Import) error {
		w, err := im.Host("")
		if err != nil {
			return err
		}
		return Import(strings.NewReader(text), 0, w, &im.Done)
	})
	if done.Left[setBack] != 1 {
		t.Errorf("left out %v, want one clock that was set back", done.Left)
	}
	var first int64
	var got []int64
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = ev.Enter
		}
		got = append(got, ev.Enter-first)
	}
	if want := []int64{0, 1000, 500_001_000}; !slices.Equal(got, want) {
		t.Errorf("the calls began after %v ns, want %v", got, want)
	}
}
