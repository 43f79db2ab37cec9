// SPDX-License-Identifier: Apache-2.0

package bytesize_test

import (
	"testing"

	"github.com/iotape/iotape/internal/bytesize"
)

func TestParse(t *testing.T) {
	sizes := map[string]int64{
		"0": 0, "4096": 4096, "64K": 64 << 10, "64k": 64 << 10, "256M": 256 << 20, "256MiB": 256 << 20, "1G": 1 << 30,
		"2GB": 2 << 30, "3T": 3 << 40,
	}
	for text, want := range sizes {
		got, err := bytesize.Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", text, got, err, want)
		}
		again, err := bytesize.Parse(bytesize.Format(got))
		if err != nil || again != want {
			t.Errorf("Parse(Format(%d)) = %d, %v", want, again, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "1.5G", "K", "9999999999999G", "12Q"} {
		if got, err := bytesize.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

func TestFormat(t *testing.T) {
	for size, want := range map[int64]string{0: "0", 1: "1", 1023: "1023", 1024: "1K", 1536: "1536", 64 << 20: "64M",
		5 << 50: "5120T"} {
		if got := bytesize.Format(size); got != want {
			t.Errorf("Format(%d) = %q, want %q", size, got, want)
		}
	}
}
