// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/objectstore"
)

// Tables that iotape did not make, or that are newer than it, are left alone.
func TestTablesOfOthers(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`"iotape.lake":"1"`, `"owner":"spark"`, "table events was not made by iotape"},
		{`"iotape.lake":"1"`, `"iotape.lake":"2"`, "is of a newer lake (version 2)"},
		{`"format-version":2`, `"format-version":3`, "has version 3 of Iceberg's format"},
		{`"current-schema-id":0`, `"current-schema-id":9`, "damaged"},
	} {
		where := filepath.Join(t.TempDir(), "lake")
		l := lakeAt(t, where, nil)
		if _, err := l.Add(t.Context(), made(t, "a", noon, 3), ""); err != nil {
			t.Fatal(err)
		}
		s, err := l.load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(where, s.files["events"])
		b, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(b), c.was) {
			t.Fatalf("%s is not in %s: %v", c.was, b, err)
		}
		if err := os.WriteFile(name, []byte(strings.Replace(string(b), c.was, c.is, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, l, where, c.want, "b", noon)
	}
}

// crowded is a store in which another program makes every commit first, which changes nothing.
type crowded struct {
	objectstore.Store
	dir   string
	tries int
}

func (s *crowded) Create(ctx context.Context, key string, content []byte) error {
	var number int64
	if _, err := fmt.Sscanf(key, commitsDir+"/%d.json", &number); err != nil {
		return s.Store.Create(ctx, key, content)
	}
	s.tries++
	before, err := os.ReadFile(filepath.Join(s.dir, commitKey(number-1)))
	if err != nil {
		return err
	}
	return errors.Join(s.Store.Create(ctx, key, before), fmt.Errorf("%s: %w", key, fs.ErrExist))
}

// A program that never gets its turn gives up, and leaves nothing of its own.
func TestCommitConflict(t *testing.T) {
	where := filepath.Join(t.TempDir(), "lake")
	if _, err := lakeAt(t, where, nil).Add(t.Context(), made(t, "a", noon, 3), ""); err != nil {
		t.Fatal(err)
	}
	files, err := objectstore.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	s := &crowded{Store: files, dir: where}
	l, err := openStore(where, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.tries = 3
	_, err = l.Add(t.Context(), made(t, "b", noon, 3), "")
	const want = "others commit all the time: 3 tries failed; run this again"
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want one line with %q", err, want)
	}
	if got := answer(t, l, "SELECT host FROM summaries", &Range{}); got != "a\n" || s.tries != 3 {
		t.Errorf("after %d tries the lake has tapes of %s, want a after 3", s.tries, got)
	}
	if all := filesOf(t, where); strings.Contains(all, "host=b") {
		t.Errorf("files are left: %s", all)
	}
}

// A bucket that loses a write is found out before the commit.
func TestBucketLosesWrites(t *testing.T) {
	testenv.Short(t, "it adds tapes many times")
	testenv.S3Server(t, "lake")
	const where = "s3://lake/lossy"
	l, s := losingLake(t, where)
	tape := made(t, "b", noon, 3)
	for _, what := range []string{"opens/data", "-m0.avro", "events/metadata/commit-"} {
		s.what = what
		if _, err := l.Add(t.Context(), tape, ""); !errors.Is(err, ErrLost) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s is lost: %v, want ErrLost in one line", what, err)
		}
		s.what = ""
		if got := answer(t, l, "SELECT count(*) FROM summaries", &Range{}); got != "1\n" {
			t.Errorf("%s is lost: the lake has %s tapes, want 1", what, got)
		}
	}
	if added, err := l.Add(t.Context(), tape, ""); err != nil || !added {
		t.Errorf("well again: %v, %v", added, err)
	}
}
