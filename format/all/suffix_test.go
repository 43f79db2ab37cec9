// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/iotape/iotape/format/all"
)

// TestSuffix: where the content does not say of which format a file is, its name does.
func TestSuffix(t *testing.T) {
	const text = "a\nb\nc\nd\nclose(3) = 0\n"
	if _, err := readBytes(t, "x.txt", []byte(text)); !errors.Is(err, all.ErrUnknownFormat) {
		t.Errorf("x.txt: %v, want that its format is unknown", err)
	}
	done, err := readBytes(t, "x.strace", []byte(text))
	if err != nil || done.Records != 1 {
		t.Errorf("x.strace: %+v, %v, want one record", done, err)
	}
	done, err = readBytes(t, "x.strace.gz", pack(t, ".gz", []byte(text)))
	if err != nil || done.Records != 1 {
		t.Errorf("x.strace.gz: %+v, %v, want one record", done, err)
	}
	_, err = readBytes(t, "x.strace", []byte("PERFILE2\x00\x00\x00\x00"))
	if err == nil || !strings.Contains(err.Error(), "perf script") {
		t.Errorf("a file of perf with another suffix: %v, want a hint", err)
	}
	cut := pack(t, ".xz", []byte(text))
	_, err = readBytes(t, "x.strace.xz", cut[:20])
	if err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("cut off: %v, want that it says so", err)
	}
}
