// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/trace"
)

// dump writes all that a tape says: its hosts, and each event with its content. It is no
// format of iotape's, so that it changes only with what is read.
func dump(t *testing.T, tape *trace.Tape) string {
	t.Helper()
	var w strings.Builder
	m := tape.Manifest()
	for _, h := range m.Hosts {
		fmt.Fprintf(&w, "host %s\n", asJSON(t, h))
	}
	fmt.Fprintf(&w, "exit %d, signal %d, counts %s, losses %s, from %d to %d, incomplete %v %q\n",
		m.ExitStatus, m.Signal, asJSON(t, m.Counts), asJSON(t, m.Losses), m.FirstNS, m.LastNS, m.Incomplete, m.Reason)
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		dumpEvent(t, &w, tape, ev)
	}
	return w.String()
}

func dumpEvent(t *testing.T, w *strings.Builder, tape *trace.Tape, ev *event.Event) {
	t.Helper()
	fmt.Fprintf(w, "%d kind=%d %v nr=%d host=%d", ev.Seq, ev.Kind, ev.Op, ev.NR, ev.Host)
	fmt.Fprintf(w, " ids=%d/%d parent=%d group=%d session=%d user=%d:%d inside=%d/%d comm=%q",
		ev.PID, ev.TID, ev.PPID, ev.PGID, ev.SID, ev.UID, ev.GID, ev.NSPID, ev.NSTID, ev.Comm)
	fmt.Fprintf(w, " time=%d..%d cpu=%d delay=%d,%d", ev.Enter, ev.Exit, ev.CPU, ev.DelayBefore, ev.DelayWithin)
	fmt.Fprintf(w, " ret=%d errno=%d args=%#x offset=%d count=%d child=%d flags=%#x\n",
		ev.Ret, int(ev.Errno), ev.Args, ev.Offset, ev.Count, ev.Child, uint64(ev.Flags))
	for i := range ev.Files {
		f := &ev.Files[i]
		fmt.Fprintf(w, "  file %d fd=%d open=%d %q known=%v", f.Arg, f.FD, f.Open, f.Path, f.Known)
		fmt.Fprintf(w, " dev=%#x ino=%d mode=%#o flags=%#o links=%d owner=%d:%d size=%d pos=%d rdev=%#x\n",
			f.Dev, f.Ino, f.Mode, f.Flags, f.Nlink, f.UID, f.GID, f.Size, f.Pos, f.Rdev)
	}
	for i := range ev.Paths {
		fmt.Fprintf(w, "  path %d %q %q\n", ev.Paths[i].Arg, ev.Paths[i].Raw, ev.Paths[i].Abs)
	}
	for i := range ev.Bufs {
		b := &ev.Bufs[i]
		data, missing, err := tape.ContentZero(b, nil)
		if err != nil {
			t.Errorf("event %d: content of argument %d: %v", ev.Seq, b.Arg, err)
		}
		fmt.Fprintf(w, "  buf %d dir=%d kind=%d omitted=%v len=%d missing=%d parts=%v",
			b.Arg, b.Dir, b.Kind, b.Omitted, b.Len, missing, b.Parts)
		if len(data) <= 64 {
			fmt.Fprintf(w, " %q", data)
		} else {
			fmt.Fprintf(w, " %d bytes, sum %x", len(data), sum(data))
		}
		if len(b.Hashes) > 0 {
			fmt.Fprintf(w, " hashes %x", b.Hashes)
		}
		if len(b.Sketch) > 0 {
			fmt.Fprintf(w, " sketch %x", sum(b.Sketch))
		}
		w.WriteString("\n")
	}
}

func sum(b []byte) []byte {
	s := sha256.Sum256(b)
	return s[:8]
}

var longText = regexp.MustCompile(`"(?:[^"\\]|\\.){200,}"`)

// shorten puts sums in the place of long quoted texts.
func shorten(text string) string {
	return longText.ReplaceAllStringFunc(text, func(s string) string {
		return fmt.Sprintf("%d characters, sum %x", len(s), sum([]byte(s)))
	})
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
