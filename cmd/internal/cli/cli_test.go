// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/record/session"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "4096": 4096, "64K": 64 << 10, "64k": 64 << 10, "256M": 256 << 20,
		"256MiB": 256 << 20, "1G": 1 << 30, "2GB": 2 << 30} {
		var s Size
		if err := s.Set(text); err != nil || int64(s) != want {
			t.Errorf("%q is %d, %v; want %d", text, s, err, want)
		}
		var back Size
		if err := back.Set(s.String()); err != nil || back != s {
			t.Errorf("%q comes back as %d, %v", s.String(), back, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5G", "K", "9999999999999G", "12Q"} {
		var s Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken for %d", text, s)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := report.OneLine("a\nb\x1b[31m\xff\n"); got != `a; b\x1b[31m\xff` {
		t.Errorf("%q", got)
	}
}

func TestCommandError(t *testing.T) {
	for err, want := range map[error]int{os.ErrNotExist: 127, os.ErrPermission: 126,
		errors.New("exec format error"): 126} {
		path := &os.PathError{Op: "exec", Path: "x", Err: fmt.Errorf("wrapped: %w", err)}
		var s *StatusError
		if e := CommandError(session.StartError("x", path)); !errors.As(e, &s) || s.Status != want {
			t.Errorf("%v: %v, want status %d", err, e, want)
		}
	}
}
