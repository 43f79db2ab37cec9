// SPDX-License-Identifier: Apache-2.0

package snia

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/dataseries"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/trace"
)

// sample returns a file that Re-Animator's tools wrote.
func sample(t *testing.T, name string) *dataseries.Reader {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		b, err = os.ReadFile(filepath.Join("../../../shared/dataseries", name))
	}
	if err != nil {
		t.Skipf("skipped: the sample %s is not kept with the source", name)
	}
	r, err := dataseries.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestSchema compares our types' XML with that in a file of Re-Animator's tracer.
func TestSchema(t *testing.T) {
	r := sample(t, "21-none-real-strace.ds")
	if len(r.Types()) != len(theSchema().types) {
		t.Errorf("%d types, the file has %d", len(theSchema().types), len(r.Types()))
	}
	for _, want := range r.Types() {
		got := theSchema().byCall[strings.TrimPrefix(want.Name, typePrefix)]
		if got == nil || got.XML != want.XML {
			t.Errorf("%s differs", want.Name)
		}
	}
}

func TestEveryCallHasAnOperation(t *testing.T) {
	byName, _ := calls()
	for name, c := range byName {
		if c.op == event.OpUnknown || c.typ == nil {
			t.Errorf("%s: operation %d, type %v", name, c.op, c.typ)
			continue
		}
		for _, a := range c.args {
			if a != "-" && !structure(a) && c.typ.Index(a) < 0 {
				t.Errorf("%s has no field %s", name, a)
			}
		}
	}
	for _, x := range theSchema().types {
		name := strings.TrimPrefix(x.Name, typePrefix)
		switch name {
		case "mmappread", "mmappwrite", "recvmsg", "sendmsg":
			continue
		}
		if byName[name] == nil {
			t.Errorf("%s is no operation", name)
		}
	}
}

// imported seals what Import makes of a file.
func imported(t *testing.T, r *dataseries.Reader) (*trace.Tape, *format.Done) {
	t.Helper()
	return formattest.Tape(t, func(im *format.Import) error {
		w, err := im.Host("h")
		if err != nil {
			return err
		}
		return Import(r, w, &im.Done)
	})
}

// describe lists what the schema holds of a tape's calls.
func describe(t *testing.T, tape *trace.Tape) []string {
	t.Helper()
	var list []string
	for ev, err := range tape.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind != event.Call {
			continue
		}
		s := fmt.Sprintf("%d %s %d %v", ev.TID, ev.Spec().Name, ev.Ret, ev.Errno)
		for _, p := range ev.Paths {
			s += fmt.Sprintf(" %d:%q", p.Arg, p.Raw)
		}
		for i := range ev.Bufs {
			b := &ev.Bufs[i]
			data, err := tape.Content(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			s += fmt.Sprintf(" %d:%x%v", b.Arg, data, b.Parts)
		}
		for _, f := range ev.Files {
			s += fmt.Sprintf(" %d:fd%d=%s", f.Arg, f.FD, f.Path)
		}
		list = append(list, s)
	}
	return list
}

func reimported(t *testing.T, tape *trace.Tape, o ExportOptions) (*trace.Tape, *format.Done) {
	t.Helper()
	var file bytes.Buffer
	done, err := Export(&file, tape, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := dataseries.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := imported(t, r)
	return again, done
}

// TestImportReal imports a trace that Re-Animator's strace recorded, exports it and
// imports that.
func TestImportReal(t *testing.T) {
	for _, name := range []string{"21-none-real-strace.ds", "20-lzf-syscalls-small.ds",
		"27-bz2-bigendian-syscalls.ds"} {
		t.Run(name, func(t *testing.T) {
			tape, _ := imported(t, sample(t, name))
			want := describe(t, tape)
			if len(want) < 20 {
				t.Fatalf("%d calls", len(want))
			}
			again, done := reimported(t, tape, ExportOptions{Codec: dataseries.Zlib})
			if len(done.Left) > 0 || done.Missing > 0 {
				t.Errorf("left out %v, missing %d", done.Left, done.Missing)
			}
			got := describe(t, again)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Errorf("call %d:\n%.300s\nbecame\n%.300s", i, want[i], got[min(i, len(got)-1)])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d calls became %d", len(want), len(got))
			}
		})
	}
}

func TestImportOfSomethingElse(t *testing.T) {
	var file bytes.Buffer
	typ, err := dataseries.ParseType(`<ExtentType name="T" namespace="n" version="1.0"><field type="int32" ` +
		`name="i"/></ExtentType>`)
	if err != nil {
		t.Fatal(err)
	}
	w, err := dataseries.NewWriter(&file, []*dataseries.Type{typ}, dataseries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := dataseries.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	im := format.NewImport(t.TempDir(), "test")
	out, err := im.Host("")
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if err := Import(r, out, &im.Done); !errors.Is(err, ErrNotSyscalls) {
		t.Errorf("error %v", err)
	}
}
