// SPDX-License-Identifier: Apache-2.0

// Package optable writes the table of operations that iotape knows.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package optable

import (
	"io"
	"strconv"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/internal/jsonout"
)

// row is an operation; fields are only ever added.
type row struct {
	Op     int      `json:"op"`
	Name   string   `json:"name"`
	Class  string   `json:"class"`
	Args   []string `json:"args"`
	AMD64  int      `json:"amd64"` // -1: no such call
	ARM64  int      `json:"arm64"`
	Replay string   `json:"replay"`
	Why    string   `json:"why,omitempty"`
	// Captured are the arguments whose memory is recorded, with the way it goes.
	Captured []string `json:"captured"`
}

func rows() (list []row) {
	for _, s := range event.Specs() {
		o := row{
			Op: int(s.Op), Name: s.Name, Class: s.Class.String(), Args: []string{},
			AMD64: event.Number(event.AMD64, s.Op), ARM64: event.Number(event.ARM64, s.Op),
			Replay: s.Replay.String(), Why: s.Why, Captured: append([]string{}, s.Captured()...),
		}
		for _, a := range s.Args {
			o.Args = append(o.Args, a.Name)
		}
		list = append(list, o)
	}
	return list
}

// WriteJSON writes an object for each operation, one a line.
func WriteJSON(w io.Writer) error {
	for _, o := range rows() {
		if err := jsonout.Line(w, o); err != nil {
			return err
		}
	}
	return nil
}

// WriteText writes the table for people.
func WriteText(w io.Writer) error {
	t := report.Table{Head: []string{"operation", "class", "amd64", "arm64", "replay", "captured", "arguments"},
		Left: 7}
	number := func(n int) string {
		if n < 0 {
			return "–"
		}
		return strconv.Itoa(n)
	}
	for _, o := range rows() {
		t.Add(o.Name, o.Class, number(o.AMD64), number(o.ARM64), o.Replay, strings.Join(o.Captured, ", "),
			strings.Join(o.Args, ", "))
	}
	return t.Write(w)
}
