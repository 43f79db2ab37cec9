// SPDX-License-Identifier: Apache-2.0

// Package jsonout writes the results of commands as JSON. Names of files stay readable:
// the characters <, > and & are not escaped, as they need not be outside HTML.
package jsonout

import (
	"encoding/json"
	"io"
)

// Object writes v for people and programs: indented by two spaces, with a newline at the end.
func Object(w io.Writer, v any) error {
	enc := encoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Line writes v as one line.
func Line(w io.Writer, v any) error { return encoder(w).Encode(v) }

func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
