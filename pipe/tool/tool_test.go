// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/pipe/tool"
)

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// piped returns a text and its stream of several blocks.
func piped(t *testing.T) (plain string, stream []byte) {
	t.Helper()
	spec, err := chain.Parse("zstd:1,checksum,block:4K")
	if err != nil {
		t.Fatal(err)
	}
	plain = strings.Repeat("the quick brown fox\n", 2000)
	var out bytes.Buffer
	if err := tool.Apply(t.Context(), &out, strings.NewReader(plain), spec); err != nil {
		t.Fatal(err)
	}
	return plain, out.Bytes()
}

func check(t *testing.T, stream []byte) *tool.Checked {
	t.Helper()
	name := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(name, stream, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	res, err := tool.Check(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestApplyAndUndo(t *testing.T) {
	plain, stream := piped(t)
	if res := check(t, stream); res.Found != 0 || res.Good < 2 || res.Bytes != int64(len(plain)) {
		t.Errorf("Check = %+v, want several good blocks of %d bytes", res, len(plain))
	}
	var copied bytes.Buffer
	s, err := pipe.NewScanner(bytes.NewReader(stream))
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Copy(&copied, s); err != nil || !bytes.Equal(copied.Bytes(), stream) {
		t.Errorf("Copy gives %d bytes, %v; want the %d of the stream", copied.Len(), err, len(stream))
	}
	var out bytes.Buffer
	open := func() (io.WriteCloser, error) { return unclosed{&out}, nil }
	if err := tool.Undo(t.Context(), &copied, open, nil); err != nil || out.String() != plain {
		t.Errorf("Undo gives %d bytes, %v; want the %d of the text", out.Len(), err, len(plain))
	}
}

func TestDamage(t *testing.T) {
	plain, stream := piped(t)
	stream = bytes.Clone(stream)
	stream[len(stream)/2] ^= 1
	res := check(t, stream)
	if res.Found == 0 || len(res.Faults) != res.Found || res.Bad == 0 {
		t.Errorf("Check of a damaged stream = %+v, want faults", res)
	}
	var out bytes.Buffer
	open := func() (io.WriteCloser, error) { return unclosed{&out}, nil }
	err := tool.Undo(t.Context(), bytes.NewReader(stream), open, nil)
	if err == nil || !strings.HasPrefix(plain, out.String()) {
		t.Errorf("Undo of a damaged stream gives %d bytes, %v; want an error, and only what is good", out.Len(), err)
	}
	out.Reset()
	told := 0
	err = tool.Undo(t.Context(), bytes.NewReader(stream), open, func(*pipe.Fault) { told++ })
	if err != nil || told == 0 {
		t.Errorf("Undo tells of %d faults, %v; want to go on", told, err)
	}
}
