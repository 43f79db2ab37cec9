// SPDX-License-Identifier: Apache-2.0

// Package show writes which flight recorders run, and picks one of them.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package show

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/flight"
	"github.com/iotape/iotape/record/sealing"
)

// ErrSeveral is wrapped by the error of Pick if several fit.
var ErrSeveral = errors.New("flight recorders run")

// Pick returns the flight recorder with a name or process number, the only one if which is
// "". If several fit it returns them with an error that wraps ErrSeveral.
func Pick(all []*flight.Remote, which string) ([]*flight.Remote, error) {
	var fit []*flight.Remote
	for _, r := range all {
		if which == "" || which == strconv.Itoa(r.PID) || sealing.TrimTape(which) == r.Name {
			fit = append(fit, r)
		}
	}
	switch {
	case len(fit) == 1:
		return fit, nil
	case len(all) == 0:
		return nil, hint.With(errors.New("no flight recorder of this user runs"),
			"iotape record --last 30s -- COMMAND starts one")
	case len(fit) == 0:
		return nil, hint.With(fmt.Errorf("no flight recorder %s runs", which), "iotape dump --list says which do")
	}
	return fit, hint.With(fmt.Errorf("%d %w", len(fit), ErrSeveral), "name one by its process: iotape dump %d",
		fit[0].PID)
}

// Running writes a table of flight recorders.
func Running(w io.Writer, all []*flight.Remote) error {
	t := report.Table{Head: []string{"process", "name", "back", "bytes", "dumps", "directory", "command"}, Right: 1}
	for _, r := range all {
		t.Add(strconv.Itoa(r.PID), report.Printable(r.Name), report.Duration(r.BackNS),
			report.Bytes(uint64(max(r.Bytes, 0))), strconv.Itoa(r.Dumps),
			report.Printable(r.Dir), report.Printable(strings.Join(r.Command, " ")))
	}
	return t.Write(w)
}
