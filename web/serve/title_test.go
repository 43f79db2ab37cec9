// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/trace"
)

// TestTitle heads the page of one tape with its command, and that of several with their names and hosts.
func TestTitle(t *testing.T) {
	var tapes []*trace.Tape
	for _, host := range []string{"here", "there"} {
		dir := filepath.Join(t.TempDir(), host+".tape")
		w, err := trace.CreateTape(dir)
		if err != nil {
			t.Fatal(err)
		}
		h := trace.Host{Head: trace.Head{Host: host, Arch: "amd64", Command: []string{"prog", "-x"}}}
		if err := w.Close(&trace.Manifest{Program: "test", Hosts: []trace.Host{h}}); err != nil {
			t.Fatal(err)
		}
		tape, err := trace.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer tape.Close()
		tapes = append(tapes, tape)
	}
	if got, want := title(tapes[:1]), "prog -x"; got != want {
		t.Errorf("the page of one tape is headed %q, want %q", got, want)
	}
	if got, want := title(tapes), tapes[0].Name()+" (here) · "+tapes[1].Name()+" (there)"; got != want {
		t.Errorf("the page of two tapes is headed %q, want %q", got, want)
	}
}
