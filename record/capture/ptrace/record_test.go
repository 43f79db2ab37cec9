// SPDX-License-Identifier: Apache-2.0

package ptrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// helperEnv makes the test binary a recorder of the command in its arguments: it
// writes the stream to descriptor 3 and the result as JSON to descriptor 4.
const helperEnv = "IOTAPE_TEST_RECORD"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(helper())
	}
	code := m.Run()
	if cDir != "" {
		os.RemoveAll(cDir)
	}
	os.Exit(code)
}

func helper() int {
	stream, result := os.NewFile(3, "stream"), os.NewFile(4, "result")
	os.Unsetenv(helperEnv)
	// The recorder's own descriptors are not the command's.
	for _, f := range []*os.File{stream, result} {
		if err := closeOnExec(f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	sw, err := trace.NewStreamWriter(stream, 1, &trace.Head{Backend: "ptrace"})
	if err == nil {
		var res *capture.Result
		if res, err = (Backend{}).Run(context.Background(), &capture.Options{Command: os.Args[1:]}, sw); err == nil {
			if err = sw.Close(&trace.End{}); err == nil {
				err = json.NewEncoder(result).Encode(res)
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// recording is a decoded stream.
type recording struct {
	result  *capture.Result
	records []trace.Record
	frames  []trace.Frame
	frameOf []int // index into frames by record
}

// record runs a command under the back end and checks the contract.
func record(t *testing.T, o *capture.Options) *recording {
	t.Helper()
	var b bytes.Buffer
	sw, err := trace.NewStreamWriter(&b, 1, &trace.Head{Backend: "ptrace"})
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if o.Stdin == nil {
		o.Stdin = null
	}
	if o.Stdout == nil {
		o.Stdout = null
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := Backend{}.Run(ctx, o, sw)
	if err != nil {
		t.Fatal(err)
	}
	if res.Lost != 0 || res.WriteErr != nil {
		t.Errorf("result %+v", res)
	}
	if err := sw.Close(&trace.End{}); err != nil {
		t.Fatal(err)
	}
	rec := decode(t, &b)
	rec.result = res
	validate(t, rec)
	return rec
}

func decode(t *testing.T, r io.Reader) *recording {
	t.Helper()
	rec := &recording{}
	for fr := trace.NewFrameReader(r); ; {
		f, payload, err := fr.Next()
		if err == io.EOF {
			return rec
		}
		if err != nil {
			t.Fatal(err)
		}
		if f.Kind != trace.FrameRecords {
			continue
		}
		rec.frames = append(rec.frames, f)
		for body, err := range trace.Records(bytes.Clone(payload)) {
			var r trace.Record
			if err == nil {
				err = r.Decode(body)
			}
			if err != nil {
				t.Fatal(err)
			}
			rec.records = append(rec.records, r)
			rec.frameOf = append(rec.frameOf, len(rec.frames)-1)
		}
	}
}

// calls returns the completed calls of one operation, with all their pieces.
func (rec *recording) calls(op event.Op) []*trace.Record {
	var out []*trace.Record
	open := map[uint32]*trace.Record{}
	for i := range rec.records {
		switch r := &rec.records[i]; r.Type {
		case trace.RecCall:
			c := *r
			c.Pieces = append([]trace.Piece(nil), r.Pieces...)
			open[r.TID] = &c
			if event.Op(r.Op) == op {
				out = append(out, &c)
			}
		case trace.RecData:
			open[r.TID].Pieces = append(open[r.TID].Pieces, r.Pieces...)
		}
	}
	return out
}

// content returns the bytes of an argument; nil if there are none.
func content(r *trace.Record, arg int) []byte {
	var b []byte
	for _, p := range r.Pieces {
		if int(p.Arg) == arg && p.Flags&(trace.PieceShape|trace.PieceMissing|trace.PieceOmitted) == 0 {
			b = append(b, p.Data...)
		}
	}
	return b
}

func (rec *recording) ofType(k trace.RecordType) []*trace.Record {
	var out []*trace.Record
	for i := range rec.records {
		if rec.records[i].Type == k {
			out = append(out, &rec.records[i])
		}
	}
	return out
}

var (
	cOnce sync.Once
	cDir  string
	cErr  error
)

// program compiles the C programs of testdata, once.
func program(t *testing.T, name string) string {
	t.Helper()
	cOnce.Do(func() {
		if cDir, cErr = os.MkdirTemp("", "iotape-ptrace"); cErr != nil {
			return
		}
		cErr = os.Chmod(cDir, 0o755)
		sources, _ := filepath.Glob("testdata/*.c")
		for _, src := range sources {
			bin := filepath.Join(cDir, filepath.Base(src[:len(src)-2]))
			if out, err := exec.Command("gcc", "-w", "-O1", "-pthread", "-o", bin, src).CombinedOutput(); err != nil {
				cErr = errors.Join(cErr, fmt.Errorf("compile %s: %w\n%s", src, err, out))
			}
		}
	})
	if cErr != nil {
		t.Fatal(cErr)
	}
	return filepath.Join(cDir, name)
}
