// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package interpose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

func TestMain(m *testing.M) {
	if pid := os.Getenv(attachTo); pid != "" {
		attachUntilKilled(pid)
	}
	code := m.Run()
	if cDir != "" {
		os.RemoveAll(cDir)
	}
	os.Exit(code)
}

// recording is a decoded stream.
type recording struct {
	result  *capture.Result
	records []trace.Record
	notes   []string
	output  string // of the program
}

// record runs a command under the back end. One that does not end is a failure that says
// where its threads are.
func record(t *testing.T, o *capture.Options) *recording {
	t.Helper()
	return recordWith(t, Backend{}, o)
}

// recordWith runs a command under any back end.
func recordWith(t *testing.T, backend capture.Backend, o *capture.Options) *recording {
	t.Helper()
	const patience = 40 * time.Second
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	rec := &recording{}
	o.Stdin, o.Stdout, o.Stderr = null, out, out
	var pid atomic.Int64
	o.Started = func(p int) { pid.Store(int64(p)) }
	var mu sync.Mutex
	o.Note = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		rec.notes = append(rec.notes, line)
	}
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Backend: backend.Name()})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		var err error
		rec.result, err = backend.Run(t.Context(), o, sw)
		done <- err
	}()
	select {
	case err = <-done:
	case <-time.After(patience):
		tree := descendants(int(pid.Load()))
		where := whereabouts(tree)
		for _, p := range tree {
			_ = unix.Kill(p, unix.SIGKILL)
		}
		t.Fatalf("%q did not end within %v:\n%s", o.Command, patience, where)
	}
	var lacks *capture.UnsupportedError
	if errors.As(err, &lacks) {
		testenv.Lacks(t, err.Error())
	}
	if tree := []int{int(pid.Load())}; unix.Kill(tree[0], 0) == nil {
		t.Errorf("the recording has ended (%+v, %v), but its command goes on: %s", rec.result, err, whereabouts(tree))
	}
	if err == nil {
		err = sw.Close(&trace.End{})
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	rec.output = string(text)
	rec.records = decodeStream(t, &b)
	return rec
}

// succeeded fails the test if the program failed, or if the recording is not complete.
func (rec *recording) succeeded(t *testing.T) *recording {
	t.Helper()
	r := rec.result
	if r.ExitStatus != 0 || r.Signal != 0 || r.Lost != 0 || r.WriteErr != nil || len(rec.ofType(trace.RecLoss)) != 0 {
		t.Fatalf("result %+v, %d losses, output:\n%s", r, len(rec.ofType(trace.RecLoss)), rec.output)
	}
	return rec
}

// descendants returns a process and those that it made, as far as they can be found.
func descendants(pid int) []int {
	list := []int{pid}
	for i := 0; i < len(list); i++ {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", list[i]))
		for _, file := range tasks {
			b, _ := os.ReadFile(file)
			for _, f := range strings.Fields(string(b)) {
				var child int
				if _, err := fmt.Sscan(f, &child); err == nil {
					list = append(list, child)
				}
			}
		}
	}
	return list
}

// whereabouts says where the threads of processes are.
func whereabouts(pids []int) string {
	var b strings.Builder
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, dir := range tasks {
			wchan, _ := os.ReadFile(dir + "/wchan")
			call, _ := os.ReadFile(dir + "/syscall")
			stat, _ := os.ReadFile(dir + "/stat")
			fmt.Fprintf(&b, "%s: wchan %s, syscall %s, stat %.60s\n", dir, wchan, bytes.TrimSpace(call), stat)
		}
	}
	return b.String()
}

func decodeStream(t *testing.T, r io.Reader) (list []trace.Record) {
	t.Helper()
	for fr := trace.NewFrameReader(r); ; {
		f, payload, err := fr.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != trace.FrameRecords {
			continue
		}
		for body, err := range trace.Records(bytes.Clone(payload)) {
			var r trace.Record
			if err == nil {
				err = r.Decode(body)
			}
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
}

// calls returns the completed calls of one operation, in order, with all their pieces.
func (rec *recording) calls(op event.Op) (list []*trace.Record) {
	open := map[uint32]*trace.Record{}
	for i := range rec.records {
		switch r := &rec.records[i]; r.Type {
		case trace.RecCall:
			c := *r
			c.Pieces = append([]trace.Piece(nil), r.Pieces...)
			open[r.TID] = &c
			if event.Op(r.Op) == op {
				list = append(list, &c)
			}
		case trace.RecData:
			if c := open[r.TID]; c != nil {
				c.Pieces = append(c.Pieces, r.Pieces...)
			}
		}
	}
	return list
}

// on returns those of the calls that are of a descriptor and moved bytes, or none if moved is
// false.
func on(calls []*trace.Record, fd int, moved bool) (list []*trace.Record) {
	for _, r := range calls {
		if int(int32(r.Args[0])) == fd && r.Ret > 0 == moved {
			list = append(list, r)
		}
	}
	return list
}

// content returns the bytes of an argument.
func content(r *trace.Record, arg int) (b []byte) {
	for _, p := range r.Pieces {
		if int(p.Arg) == arg && p.Flags&(trace.PieceShape|trace.PieceMissing|trace.PieceOmitted) == 0 {
			b = append(b, p.Data...)
		}
	}
	return b
}

// joined returns the bytes that calls moved.
func joined(calls []*trace.Record) (b []byte) {
	for _, r := range calls {
		b = append(b, content(r, 1)...)
	}
	return b
}

func (rec *recording) ofType(k trace.RecordType) (list []*trace.Record) {
	for i := range rec.records {
		if rec.records[i].Type == k {
			list = append(list, &rec.records[i])
		}
	}
	return list
}

var (
	cOnce sync.Once
	cDir  string
	cErr  error
)

// program returns a C program of testdata, compiled.
func program(t *testing.T, source string, flags ...string) string {
	t.Helper()
	cOnce.Do(func() {
		if cDir, cErr = os.MkdirTemp("", "iotape-interpose"); cErr == nil {
			cErr = os.Chmod(cDir, 0o755)
		}
	})
	if cErr != nil {
		t.Fatal(cErr)
	}
	bin := filepath.Join(cDir, filepath.Base(source)+strings.Join(flags, ""))
	if _, err := os.Stat(bin); errors.Is(err, os.ErrNotExist) {
		args := append([]string{"-w", "-O1", "-pthread", "-o", bin, "testdata/" + source + ".c"}, flags...)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("compile %s: %v\n%s", source, err, out)
		}
	}
	return bin
}

// counts reads what a program printed: words, each followed by a number.
func counts(t *testing.T, output string) map[string]int {
	t.Helper()
	f := strings.Fields(output)
	m := map[string]int{}
	for i := 0; i+1 < len(f); i += 2 {
		var n int
		if _, err := fmt.Sscan(f[i+1], &n); err != nil {
			t.Fatalf("output %q: %v", output, err)
		}
		m[f[i]] = n
	}
	return m
}
