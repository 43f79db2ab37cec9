// SPDX-License-Identifier: Apache-2.0

package jsonout

import (
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	v := map[string]any{"path": "/a<b>&c", "n": 1}
	var object, line strings.Builder
	if err := Object(&object, v); err != nil {
		t.Fatal(err)
	}
	if err := Line(&line, v); err != nil {
		t.Fatal(err)
	}
	if got, want := object.String(), "{\n  \"n\": 1,\n  \"path\": \"/a<b>&c\"\n}\n"; got != want {
		t.Errorf("object %q, want %q", got, want)
	}
	if got, want := line.String(), "{\"n\":1,\"path\":\"/a<b>&c\"}\n"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}
