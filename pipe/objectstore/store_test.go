// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// TestStores holds all stores to what Store promises.
func TestStores(t *testing.T) {
	t.Run("directory", func(t *testing.T) { testStore(t, t.TempDir()+"/new") })
	t.Run("s3", func(t *testing.T) {
		testenv.S3Server(t, "tapes")
		testStore(t, "s3://tapes/some/where/")
	})
}

func testStore(t *testing.T, where string) {
	ctx := context.Background()
	s, err := Open(ctx, where)
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
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(ctx, key, file); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []error{nil, fs.ErrExist} {
		if err := s.Create(ctx, "commits/1", fmt.Appendf(nil, "of %d", i)); !errors.Is(err, want) {
			t.Errorf("create number %d: %v, want %v", i, err, want)
		}
	}
	if in, err := s.Get(ctx, "commits/1"); err != nil {
		t.Error(err)
	} else if b, err := io.ReadAll(in); string(b) != "of 0" || errors.Join(err, in.Close()) != nil {
		t.Errorf("created was %q, %v", b, err)
	}
	if err := s.Remove(ctx, "commits/1"); err != nil {
		t.Error(err)
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

func TestWrongStores(t *testing.T) {
	testenv.S3Server(t, "tapes")
	ctx := context.Background()
	try := func(where, want string) {
		t.Helper()
		if _, err := Open(ctx, where); err == nil || !strings.Contains(err.Error(), want) ||
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
