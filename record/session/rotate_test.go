// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"strings"
	"testing"

	"github.com/iotape/iotape/record/session"
)

// TestCheckRotate: what of a plan does not go with rotation is said with its reason.
func TestCheckRotate(t *testing.T) {
	for _, c := range []struct {
		rotate, to string
		flight     bool
		want       string // "" is no error
	}{
		{"1M", "", false, ""},
		{"1M,keep=2", "x.stream", false, ""},
		{"1M,keep=2", "file:x.stream?sync", false, ""},
		{"1M", "tcp://localhost:7070", false, ""},
		{"1M,keep=2", "tcp://localhost:7070", false, "keep=N cannot be used with a connection"},
		{"1M", "-", false, "--to -, where one recording cannot follow another"},
		{"1M", "device:/dev/sdz", false, "--to device:/dev/sdz, where"},
		{"1M", "", true, "--last, which keeps the recording in memory"},
		{"", "-", true, ""},
	} {
		r, err := session.ParseRotate(c.rotate)
		if err != nil {
			t.Fatal(err)
		}
		p := session.Plan{Rotate: r, To: c.to}
		if c.flight {
			p.Flight = &session.Flight{}
		}
		switch err := p.CheckRotate(); {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %s", c, err, c.want)
		}
	}
}
