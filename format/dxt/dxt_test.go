// SPDX-License-Identifier: Apache-2.0

package dxt

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/iotape/iotape/format"
)

const block = `# darshan log version: 3.21
# start_time: 1619109091
# DXT, file_id: 7, file_name: /a, b
# DXT, rank: 3, hostname: h
# DXT, write_count: 1, read_count: 1
 X_POSIX       3  write        0               0              40      0.1034      0.1034   [4] [5]    139822945752832
 X_POSIX       3   read        0               0              40      0.1034      0.1034  -1
`

func run(t *testing.T, text string) (*format.Import, error) {
	t.Helper()
	im := format.NewImport(t.TempDir(), "test")
	err := Import(context.Background(), strings.NewReader(text), im)
	if _, err := im.Close(); err != nil {
		t.Fatal(err)
	}
	return im, err
}

func TestSegmentsThatAreNone(t *testing.T) {
	if im, err := run(t, block); err != nil || im.Records != 2 || len(im.Left) != 0 {
		t.Errorf("%v: %d records, left out %v", err, im.Records, im.Left)
	}
	for _, s := range []string{
		" X_POSIX 4 write 0 0 40 0.1 0.1 N/A", // another rank's
		" X_POSIX 3 write 0 -2 40 0.1 0.1 N/A",
		" X_POSIX 3 write 0 0 -40 0.1 0.1 N/A",
		" X_POSIX 3 write 0 0 40 -0.1 0.1 N/A",
		" X_POSIX 3 write 0 0 40 nan 0.1 N/A",
		" X_POSIX 3 write 0 0 40 0.1 1e300 N/A",
		" X_POSIX 3 seek 0 0 40 0.1 0.1 N/A",
		" X_POSIX 3 write 0 0",
	} {
		if im, err := run(t, block+s+"\n"); err != nil || im.Records != 2 || im.Left[format.BadLines] != 1 {
			t.Errorf("%s: %v: %d records, left out %v", s, err, im.Records, im.Left)
		}
	}
	if im, err := run(t, block+strings.Repeat("x", maxLine+1)+"\n"+block); err != nil || im.Records != 4 ||
		im.Left[format.LongLines] != 1 {
		t.Errorf("a long line: %v, %d records, left out %v", err, im.Records, im.Left)
	}
}

func TestManyHosts(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		b.WriteString(strings.Replace(block, "hostname: h", "hostname: h"+strings.Repeat("x", i), 1))
	}
	if _, err := run(t, b.String()); err == nil || !strings.Contains(err.Error(), "hosts") {
		t.Errorf("a thousand hosts: %v", err)
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(block))
	f.Fuzz(func(t *testing.T, b []byte) {
		Format.Match(b)
		im := format.NewImport(t.TempDir(), "fuzz")
		err := Import(context.Background(), bytes.NewReader(b), im)
		streams, closeErr := im.Close()
		if closeErr != nil {
			t.Fatal(closeErr)
		}
		if err == nil && (im.Records > 0) != (len(streams) > 0) {
			t.Errorf("%d records, %d streams", im.Records, len(streams))
		}
	})
}
