// SPDX-License-Identifier: Apache-2.0

package top

import (
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/predicate"
)

func TestScreen(t *testing.T) {
	for filter, want := range map[string]string{
		"op = fsync and latency > 10ms": "",
		"path glob *.sst":               "the kernel alone cannot decide this filter, of ",
	} {
		g, err := predicate.New(filter, &predicate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Screen(g)
		if want == "" {
			if err != nil || s == nil {
				t.Errorf("Screen(%s) = %v, %v; want a screen", filter, s, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("Screen(%s): %v, want %q… with a hint", filter, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	good := func() *Options {
		o := &Options{Detail: Detail{Duration: time.Second, Content: "full"}}
		o.Meter.Interval = time.Second
		return o
	}
	if err := good().Check(); err != nil {
		t.Errorf("Check: %v", err)
	}
	for name, change := range map[string]func(*Options){
		"interval":     func(o *Options) { o.Meter.Interval = time.Millisecond },
		"rows":         func(o *Options) { o.View.Rows = -1 },
		"count":        func(o *Options) { o.Count = 1; o.Record.Capture.Command = []string{"x"} },
		"exec":         func(o *Options) { o.Detail.Exec = "x" },
		"duration":     func(o *Options) { o.Detail.Duration = time.Hour },
		"content":      func(o *Options) { o.Detail.Content = "some" },
		"no duration":  func(o *Options) { o.Detail.Duration = 0 },
		"detail alone": func(o *Options) { o.Detail.Dir = "x" },
	} {
		o := good()
		if change(o); o.Check() == nil {
			t.Errorf("%s: Check finds nothing wrong", name)
		}
	}
}

func TestFileName(t *testing.T) {
	if got := fileName("a/b c-1_é"); got != "a_b_c-1__" {
		t.Errorf("fileName = %q", got)
	}
}
