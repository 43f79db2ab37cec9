// SPDX-License-Identifier: Apache-2.0

package pprof_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/pprof"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/trace"
)

// TestPprof has pprof itself read a profile.
func TestPprof(t *testing.T) {
	testenv.NeedProgram(t, "go")
	dir := t.TempDir()
	tw, err := trace.CreateTape(filepath.Join(dir, "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tw.Abort()
	stack := &event.Stack{Frames: []event.Frame{
		{Module: "/lib/libc.so.6", BuildID: "aa11", Offset: 0x10, Function: "fsync"},
		{Module: "/bin/p", BuildID: "bb22", Offset: 0x20, Function: "main", File: "p.c", Line: 7},
		{Offset: 0x7f00},
	}}
	for i, s := range []*event.Stack{stack, stack, nil} {
		ev := event.Event{Kind: event.Call, Op: event.OpFsync, Comm: "p", Enter: int64(100 * i),
			Exit: int64(100*i + 30), Stack: s}
		if err := tw.Write(&ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(&trace.Manifest{Hosts: []trace.Host{{}}}); err != nil {
		t.Fatal(err)
	}
	tp, err := trace.Open(filepath.Join(dir, "x.tape"))
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	profile := filepath.Join(dir, "x.pprof")
	f, err := os.Create(profile)
	if err != nil {
		t.Fatal(err)
	}
	done, err := pprof.Format.Write(context.Background(), f, tp, &format.Options{})
	f.Close()
	if err != nil || done.Records != 1 || done.Left["calls without a stack"] != 1 {
		t.Fatalf("%+v, %v; want one record, and one call left out", done, err)
	}
	out, err := exec.Command("go", "tool", "pprof", "-raw", profile).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof: %v\n%s", err, out)
	}
	for _, want := range []string{"calls/count bytes/bytes time/nanoseconds[dflt]",
		"          2          0         60: 1 2 3", "operation:[fsync] thread:[p]",
		"M=1 fsync", "M=2 main p.c:7", "0x7f00", "/lib/libc.so.6 aa11 [FN]", "/bin/p bb22 [FN]"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("pprof's text lacks %q:\n%s", want, out)
		}
	}
}
