// SPDX-License-Identifier: Apache-2.0

package checked_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/checked"
	"github.com/iotape/iotape/trace"
)

func TestWrite(t *testing.T) {
	sound := &trace.CheckReport{Files: 7, Bytes: 123_456, Events: 1000, Chunks: 20}
	damaged := &trace.CheckReport{
		Files: 7, Bytes: 123_456, Events: 1000, Chunks: 20, Missing: 4096, More: 3,
		Notes: []string{"a note\nof two lines"},
		Damage: []trace.Damage{
			{File: "events", Offset: 4711, Err: errors.New("checksum")},
			{File: "files.parquet", Offset: -1, Derived: true, Err: errors.New("gone")},
			{File: trace.AnnotationsName, Offset: -1, Derived: true, Err: errors.New("gone")},
		},
	}
	for _, tt := range []struct {
		name       string
		report     *trace.CheckReport
		text, json string
	}{
		{"sound", sound, "7 files, 121 KiB, 1,000 events, 20 chunks of content\nok\n", `{
  "version": 1,
  "ok": true,
  "files": 7,
  "bytes": 123456,
  "events": 1000,
  "chunks": 20,
  "missing_bytes": 0,
  "notes": [],
  "damage": [],
  "more": 0
}
`},
		{"damaged", damaged, `7 files, 121 KiB, 1,000 events, 20 chunks of content
4.00 KiB of content were not recorded
note: a note; of two lines
damaged: events at 4711: checksum
damaged: files.parquet: gone (iotape index rebuilds it)
damaged: annotations: gone (iotape annotate makes it anew)
damaged: 3 more
`, `{
  "version": 1,
  "ok": false,
  "files": 7,
  "bytes": 123456,
  "events": 1000,
  "chunks": 20,
  "missing_bytes": 4096,
  "notes": [
    "a note\nof two lines"
  ],
  "damage": [
    {
      "file": "events",
      "offset": 4711,
      "derived": false,
      "error": "checksum"
    },
    {
      "file": "files.parquet",
      "offset": -1,
      "derived": true,
      "error": "gone"
    },
    {
      "file": "annotations",
      "offset": -1,
      "derived": true,
      "error": "gone"
    }
  ],
  "more": 3
}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var text, json strings.Builder
			if err := errors.Join(checked.WriteText(&text, tt.report),
				checked.WriteJSON(&json, tt.report)); err != nil {
				t.Fatal(err)
			}
			if text.String() != tt.text {
				t.Errorf("text\n%s\nwant\n%s", text.String(), tt.text)
			}
			if json.String() != tt.json {
				t.Errorf("JSON\n%s\nwant\n%s", json.String(), tt.json)
			}
		})
	}
}
