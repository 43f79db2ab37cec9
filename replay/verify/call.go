// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/replay/content"
	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/linearize"
	"github.com/iotape/iotape/replay/options"
	"github.com/iotape/iotape/replay/plan"
	"github.com/iotape/iotape/replay/result"
)

// Call compares what a call gave with what it gave in the recording. outs are the memory that
// it filled, by argument.
func (c *Checker) Call(t *plan.Task, ret int64, errno syscall.Errno, outs *[event.MaxArgs][]byte) {
	if t.Unexplained&linearize.UnexplainedResult != 0 {
		c.Unexplained()
		return
	}
	ev, returns := &t.Event, c.Checks&options.CheckReturns != 0
	switch {
	case returns && errno != ev.Errno, (errno != 0) != (ev.Errno != 0):
		c.Mismatch(t, "errno", result.ErrorName(ev.Errno), result.ErrorName(errno))
	}
	if errno != 0 || returns && ev.Errno != 0 || c.Checks == options.CheckNone {
		return
	}
	if c.value(t, ret) {
		c.outputs(t, ret, outs)
	}
}

// value compares what a call returned that succeeded. It reports whether the call's output is
// to be compared as well.
func (c *Checker) value(t *plan.Task, ret int64) bool {
	ev, spec := &t.Event, t.Event.Spec()
	if ev.Op == event.OpLseek && (ev.Args[2] == unix.SEEK_DATA || ev.Args[2] == unix.SEEK_HOLE) {
		// Where a file has holes is the file system's choice. The next call goes on from
		// where it went on in the recording.
		if h := t.Files.FDs[0]; ret != ev.Ret && h != nil {
			_, _ = unix.Seek(h.FD, ev.Ret, unix.SEEK_SET)
		}
		return false
	}
	if isList(spec) || spec.Result != event.KindSize && spec.Result != event.KindOff {
		return true
	}
	if ev.Op == event.OpGetcwd && !known(t.Event.BufArg(0)) {
		c.Uncompared() // the trace does not say which directory it was
		return false
	}
	if !c.Root && effect.AsksAccessList(ev) {
		return false // entries for others are left out
	}
	if ret != ev.Ret && c.Checks&options.CheckReturns != 0 {
		c.Mismatch(t, "result", fmt.Sprint(ev.Ret), fmt.Sprint(ret))
		return false
	}
	return true
}

// known reports whether the tape has all bytes of a buffer.
func known(b *event.Buf) bool { return b != nil && content.KnownPrefix(b) == b.Len }

// outputs compares the memory that a call filled.
func (c *Checker) outputs(t *plan.Task, ret int64, outs *[event.MaxArgs][]byte) {
	spec := t.Event.Spec()
	for i := range spec.Args {
		a := &spec.Args[i]
		if a.Dir != event.Out || outs[i] == nil {
			continue
		}
		switch {
		case a.Kind == event.KindBuf || a.Kind == event.KindVec:
			b := t.Event.BufArg(i)
			if b == nil || c.Checks&options.CheckData == 0 {
				continue
			}
			got := outs[i][:min(int64(len(outs[i])), max(ret, 0))]
			if isList(spec) && !t.Content.Missing {
				c.bytes(t, "names", c.names(t.Content.Want), c.names(got))
				continue
			}
			c.Content(t, b, got)
		case (a.Layout == event.LayoutStat || a.Layout == event.LayoutStatx) && c.Checks&options.CheckStat != 0:
			c.stat(t, outs[i])
		}
	}
}

// isList reports whether an operation lists the names of extended attributes.
func isList(spec *event.Spec) bool {
	return spec.Class == event.Meta && len(spec.Args) > 1 && spec.Args[1].Name == "list"
}

// names brings a list of NUL-terminated names into one order. XFS lists access lists a second
// time, under names of its own; capabilities may be left off.
func (c *Checker) names(b []byte) []byte {
	names := slices.DeleteFunc(bytes.SplitAfter(b, []byte{0}), func(n []byte) bool {
		return bytes.HasPrefix(n, []byte("trusted.SGI_ACL_")) ||
			!c.Privileged && string(n) == effect.CapabilityAttr+"\x00" || !c.Root && effect.RootsAttribute(string(n))
	})
	slices.SortFunc(names, bytes.Compare)
	return bytes.Join(names, nil)
}

// Step compares what a plain read or write gave. got is what was read; sums are the batch's.
func (c *Checker) Step(s *plan.Step, sums []content.ChunkSum, ret int64, errno syscall.Errno, buf []byte) {
	switch {
	case errno != 0:
		c.StepMismatch(s, "errno", "0", result.ErrorName(errno))
	case ret != s.Ret && c.Checks&options.CheckReturns != 0:
		c.StepMismatch(s, "result", fmt.Sprint(s.Ret), fmt.Sprint(ret))
	case s.Sums > 0:
		want, got, differ := content.CompareSums(c.Tape, sums[s.SumsAt:s.SumsAt+s.Sums], buf[:ret])
		if differ {
			c.StepMismatch(s, "content", want, got)
		}
	case s.Compare && !bytes.Equal(buf[:ret], s.Bytes()):
		want, got := content.FirstDifference(s.Bytes(), buf[:ret])
		c.StepMismatch(s, "content", want, got)
	}
}

// stat compares what can be reproduced of a file's attributes.
func (c *Checker) stat(t *plan.Task, out []byte) {
	want, ok := effect.DecodeStat(&t.Event, c.Arch)
	if !ok {
		return
	}
	var got effect.Stat
	if t.Event.Op == event.OpStatx {
		got, _ = effect.ParseStatx(out)
	} else {
		got, _ = effect.ParseStat(out, c.Arch)
	}
	if got.Ino != 0 && (effect.Inode{Dev: got.Dev, Ino: got.Ino}) == c.Target {
		return // it is closed to others meanwhile
	}
	if !c.Privileged {
		want.Mode, got.Mode = effect.WithoutSetID(want.Mode), effect.WithoutSetID(got.Mode)
	}
	typ := effect.TypeOf(want.Mode)
	if typ == 'c' || typ == 'b' || want.Partial() && want.Mode == 0 {
		return // device nodes are not made for everyone; the trace says nothing
	}
	if want.Mode != got.Mode && t.Unexplained&linearize.UnexplainedMode == 0 {
		c.Mismatch(t, "st_mode", fmt.Sprintf("%#o", want.Mode), fmt.Sprintf("%#o", got.Mode))
	}
	// Where links lead to has another length if it is renamed.
	if (typ == 'f' || typ == 'l' && !c.Renamed) && want.Size != got.Size &&
		t.Unexplained&linearize.UnexplainedSize == 0 {
		c.Mismatch(t, "st_size", fmt.Sprint(want.Size), fmt.Sprint(got.Size))
	}
	if !want.Partial() {
		c.linksAndOwner(t, &want, &got)
	}
}

// linksAndOwner compares what not every trace has of a file.
func (c *Checker) linksAndOwner(t *plan.Task, want, got *effect.Stat) {
	// More names than the trace mentions cannot be known; fewer would be a fault.
	if effect.TypeOf(want.Mode) == 'f' && want.Nlink <= 1 && want.Nlink != got.Nlink &&
		t.Unexplained&linearize.UnexplainedLinks == 0 {
		c.Mismatch(t, "st_nlink", fmt.Sprint(want.Nlink), fmt.Sprint(got.Nlink))
	}
	if c.Root && (want.UID != got.UID || want.GID != got.GID) {
		c.Mismatch(t, "owner", fmt.Sprintf("%d:%d", want.UID, want.GID), fmt.Sprintf("%d:%d", got.UID, got.GID))
	}
}
