// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTwoCollectors starts a second collector of one broker, with data of its own: it is refused, and the message names
// the first one. When the first one has ended, it starts.
func TestTwoCollectors(t *testing.T) {
	s := newBench(t)
	s.run(nil)
	nc, err := s.b.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	o := &Options{Data: t.TempDir(), Note: s.note}
	c, err := New(t.Context(), nc, o, nil)
	if err == nil {
		c.disk.Close()
		t.Fatal("a second collector of one broker started")
	}
	if !strings.Contains(err.Error(), filepath.Base(s.data)) {
		t.Errorf("%v; want the directory %s of the first one", err, s.data)
	}
	s.stop()
	if c, err = New(t.Context(), nc, o, nil); err != nil {
		t.Fatalf("after the first one has ended: %v", err)
	}
	c.disk.Close()
}
