// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/record/flight/show"
)

func TestPick(t *testing.T) {
	a := &flight.Remote{Info: flight.Info{PID: 12, Name: "db"}}
	b := &flight.Remote{Info: flight.Info{PID: 13, Name: "web"}}
	for _, tt := range []struct {
		which string
		all   []*flight.Remote
		want  *flight.Remote
		hint  string
	}{
		{"", []*flight.Remote{a}, a, ""},
		{"13", []*flight.Remote{a, b}, b, ""},
		{"db.tape", []*flight.Remote{a, b}, a, ""},
		{"", nil, nil, "iotape record --last 30s -- COMMAND starts one"},
		{"x", []*flight.Remote{a, b}, nil, "iotape dump --list says which do"},
		{"", []*flight.Remote{a, b}, nil, "name one by its process: iotape dump 12"},
	} {
		fit, err := show.Pick(tt.all, tt.which)
		if tt.want != nil {
			if err != nil || len(fit) != 1 || fit[0] != tt.want {
				t.Errorf("Pick(%q) = %v, %v; want %s", tt.which, fit, err, tt.want.Name)
			}
			continue
		}
		if err == nil || hint.Of(err) != tt.hint {
			t.Errorf("Pick(%q): %v with the hint %q, want %q", tt.which, err, hint.Of(err), tt.hint)
		}
		if errors.Is(err, show.ErrSeveral) != (len(fit) > 1) {
			t.Errorf("Pick(%q) = %d recorders, %v", tt.which, len(fit), err)
		}
	}
}

func TestRunning(t *testing.T) {
	r := &flight.Remote{Info: flight.Info{PID: 12, Name: "db", BackNS: 30e9, Bytes: 512 << 20, Dumps: 2, Dir: "/srv",
		Command: []string{"./server", "-v"}}}
	var b strings.Builder
	if err := show.Running(&b, []*flight.Remote{r}); err != nil {
		t.Fatal(err)
	}
	const want = `process  name  back    bytes    dumps  directory  command
     12  db    30.0 s  512 MiB  2      /srv       ./server -v
`
	if b.String() != want {
		t.Errorf("\n%s\nwant\n%s", b.String(), want)
	}
}
