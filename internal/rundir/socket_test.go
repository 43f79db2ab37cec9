// SPDX-License-Identifier: Apache-2.0

package rundir_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/iotape/iotape/internal/rundir"
)

// TestListenBesideEach checks that a socket that has just been made is never taken for one
// that a killed process left.
func TestListenBesideEach(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := rundir.Each(".probe", dial); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 500 {
		l, err := rundir.Listen(".probe")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path(t)); err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, err := os.Stat(path(t)); !os.IsNotExist(err) {
			t.Fatalf("the socket is still there after Close: %v", err)
		}
	}
	close(stop)
	wg.Wait()
}

func dial(path string) error {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return err
}

// path is where the one socket of the directory is, or should be.
func path(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "iotape", "*.probe"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		return filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "none")
	}
	return names[0]
}

func TestEachRemovesWhatWasLeft(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	dir, err := rundir.Make()
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "1.probe")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	var got []error
	if err := rundir.Each(".probe", func(path string) error {
		err := dial(path)
		got = append(got, err)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !errors.Is(got[0], syscall.ECONNREFUSED) {
		t.Errorf("asked the sockets, got %v, want one that refuses", got)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the file that a killed process left: %v, want it removed", err)
	}
}

func TestAsk(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	l, err := rundir.Listen(".probe")
	if err != nil {
		t.Fatal(err)
	}
	type word struct{ Text string }
	var wg sync.WaitGroup
	wg.Go(func() { rundir.Serve(l, func(q *word) *word { return &word{strings.ToUpper(q.Text)} }) })
	var a word
	err = rundir.Ask(context.Background(), path(t), word{"abc"}, &a, rundir.Patience)
	if err != nil || a.Text != "ABC" {
		t.Errorf("answer %q, %v, want ABC", a.Text, err)
	}
	if err := rundir.Ask(context.Background(), path(t), []int{1}, &a, rundir.Patience); err == nil {
		t.Error("a request of another form was answered")
	}
	l.Close()
	wg.Wait()
}
