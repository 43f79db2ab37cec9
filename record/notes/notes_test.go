// SPDX-License-Identifier: Apache-2.0

package notes_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/record/notes"
)

func TestNotes(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx := context.Background()
	var got []string
	put := func(pid uint32, text string) error {
		if int(pid) != os.Getpid() {
			t.Errorf("a note of process %d, want %d", pid, os.Getpid())
		}
		if text == "late" {
			return errors.New("the recording has ended")
		}
		got = append(got, text)
		return nil
	}
	for _, name := range []string{"a", "b"} {
		s, err := notes.Listen(&notes.Info{PID: os.Getpid(), Name: name}, put)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
	}
	all, err := notes.Running(ctx)
	all = slices.DeleteFunc(all, func(r *notes.Remote) bool { return r.PID != os.Getpid() }) // others may run
	if err != nil || len(all) != 2 {
		t.Fatalf("%d recordings run, %v, want 2", len(all), err)
	}
	if _, err := notes.Find(all, ""); err == nil || !strings.Contains(err.Error(), "--recording") {
		t.Errorf("found one of two recordings: %v", err)
	}
	if _, err := notes.Find(all, "c"); err == nil {
		t.Error("found a recording that does not exist")
	}
	if _, err := notes.Find(nil, ""); err == nil {
		t.Error("found a recording where none runs")
	}
	r, err := notes.Find(all, "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Put(ctx, "one"); err != nil {
		t.Error(err)
	}
	if err := r.Put(ctx, "late"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a note that the recording refuses: %v", err)
	}
	if want := "one"; strings.Join(got, ",") != want {
		t.Errorf("notes %q, want %q", got, want)
	}
}
