// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
)

// server starts a real S3 server (Versity's gateway, over a directory) with a bucket, and
// sets the environment for it. It returns its address and a function that ends it.
func server(t *testing.T, bucket string) (stop func()) {
	t.Helper()
	program := filepath.Join(testenv.ModuleRoot(t), "bin", "versitygw")
	testenv.NeedProgram(t, program)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, bucket), 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "--port", addr, "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=tester", "ROOT_SECRET_KEY=secret-of-the-tests", "VGW_QUIET=true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(stop)
	t.Setenv("AWS_ENDPOINT_URL", "http://"+addr)
	t.Setenv("AWS_ACCESS_KEY_ID", "tester")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests")
	t.Setenv("AWS_REGION", "us-east-1")
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return stop
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	t.Fatalf("the server does not answer: %s", log.String())
	return nil
}

// TestStores holds all stores to what Store promises.
func TestStores(t *testing.T) {
	t.Run("directory", func(t *testing.T) { testStore(t, t.TempDir()+"/new") })
	t.Run("s3", func(t *testing.T) {
		server(t, "tapes")
		testStore(t, "s3://tapes/some/where/")
	})
}

func testStore(t *testing.T, where string) {
	ctx := context.Background()
	s, err := OpenStore(ctx, where)
	if err != nil {
		t.Fatal(err)
	}
	list := func(prefix string) (keys []string) {
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				t.Fatal(err)
			}
			if since := time.Since(o.Stored); since > time.Hour || since < -time.Hour {
				t.Errorf("%s was stored at %s", o.Key, o.Stored)
			}
			keys = append(keys, fmt.Sprintf("%s %d", o.Key, o.Bytes))
		}
		return keys
	}
	if got := list(""); len(got) != 0 {
		t.Errorf("an empty store has %q", got)
	}
	file := filepath.Join(t.TempDir(), "file")
	put := func(key, text string) {
		t.Helper()
		write(t, file, text)
		if err := s.Put(ctx, key, file); err != nil {
			t.Fatal(err)
		}
	}
	put("day=2026-11-22/host=a.b-c_d/x.tape/events", "first")
	put("day=2026-11-22/host=a.b-c_d/x.tape/events", "second")
	put("day=2026-11-22/host=a.b-c_d/x.tape/manifest.json", "")
	put("day=2026-11-23/host=a/y.tape/events", strings.Repeat("x", 100_000))
	want := []string{"day=2026-11-22/host=a.b-c_d/x.tape/events 6",
		"day=2026-11-22/host=a.b-c_d/x.tape/manifest.json 0", "day=2026-11-23/host=a/y.tape/events 100000"}
	if got := list(""); !slices.Equal(got, want) {
		t.Errorf("it has %q", got)
	}
	if got := list("day=2026-11-23/"); !slices.Equal(got, want[2:]) {
		t.Errorf("of the 23rd it has %q", got)
	}
	in, err := s.Get(ctx, "day=2026-11-22/host=a.b-c_d/x.tape/events")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(in); string(b) != "second" || errors.Join(err, in.Close()) != nil {
		t.Errorf("it is %q, %v", b, err)
	}
	for _, key := range []string{"day=2026-11-22/host=a.b-c_d/x.tape/nothing", "nothing/at/all"} {
		if _, err := s.Get(ctx, key); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", key, err)
		}
		if err := s.Remove(ctx, key); err != nil {
			t.Errorf("remove what is not there: %v", err)
		}
	}
	if err := s.Put(ctx, "a/b", file+".missing"); err == nil {
		t.Error("a file that is not there was put")
	}
	for _, key := range []string{"day=2026-11-23/host=a/y.tape/events", "day=2026-11-22/host=a.b-c_d/x.tape/events"} {
		if err := s.Remove(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(""); !slices.Equal(got, want[1:2]) {
		t.Errorf("left is %q", got)
	}
	if got := s.Location("a/b"); !strings.HasSuffix(got, "/a/b") {
		t.Errorf("a/b is at %s", got)
	}
}

// TestArchiveInS3 archives into a real server, which goes away in the middle.
func TestArchiveInS3(t *testing.T) {
	stop := server(t, "tapes")
	ctx, data := context.Background(), t.TempDir()
	s, err := OpenStore(ctx, "s3://tapes/fleet")
	if err != nil {
		t.Fatal(err)
	}
	stage(t, data, "a", 1, 7, 0, 3, staging.ReasonAge)
	stage(t, data, "a", 2, 7, 3, 2000, staging.ReasonStop)
	stage(t, data, "b", 1, 8, 0, 3, staging.ReasonStop)
	o := &Options{Data: data, Store: s, sealWith: seal}
	res, err := Run(ctx, o)
	if err != nil || res.Tapes != 2 || res.Streams != 3 {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := streamsOf(kept(t, s)); got != "a 1 a 2 | b 1 | " {
		t.Errorf("tapes of %s", got)
	}
	gone, err := Prune(ctx, s, &Keep{Age: time.Hour, Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	if err != nil || len(gone) != 2 {
		t.Errorf("%d removed, %v", len(gone), err)
	}
	if got := streamsOf(kept(t, s)); got != "" {
		t.Errorf("tapes of %s are left", got)
	}
	stage(t, data, "c", 1, 9, 0, 3, staging.ReasonStop)
	stop()
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := Run(short, o); err == nil {
		t.Error("a server that is gone took a tape")
	}
	if left, _ := staging.List(data); len(left) != 1 {
		t.Errorf("%d streams are left", len(left))
	}
}

func TestWrongStores(t *testing.T) {
	server(t, "tapes")
	ctx := context.Background()
	try := func(where, want string) {
		t.Helper()
		if _, err := OpenStore(ctx, where); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, not %s", where, err, want)
		}
	}
	try("s3://nothing-here", "no such bucket")
	try("s3://", "no bucket")
	try("gs://bucket", "unknown kind of store")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-secret")
	try("s3://tapes", "s3://tapes: ")
	t.Setenv("AWS_ENDPOINT_URL", "http://192.0.2.1")
	try("s3://tapes", "clear text")
	t.Setenv("AWS_ENDPOINT_URL", "192.0.2.1:80")
	try("s3://tapes", "not an http:// or https://")
}
