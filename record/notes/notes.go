// SPDX-License-Identifier: Apache-2.0

// Package notes puts notes into recordings that other processes make: each recording listens
// on a socket of its user's (package internal/rundir), which iotape note writes to.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package notes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/iotape/iotape/internal/account"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/rundir"
)

// suffix is that of the sockets.
const suffix = ".notes"

// Info describes a recording that takes notes.
type Info struct {
	PID     int      `json:"pid"`               // of the process that records
	Name    string   `json:"name"`              // of the tape, without its suffix
	Command []string `json:"command,omitempty"` // that is recorded
	Target  string   `json:"target,omitempty"`  // that is recorded, if it is no command
}

// request asks for the Info if it has no note.
type request struct {
	Note *note `json:"note,omitempty"`
}

type note struct {
	PID  uint32 `json:"pid"` // who writes it
	Text string `json:"text"`
}

type answer struct {
	Info  *Info  `json:"info,omitempty"`
	Error string `json:"error,omitempty"`
}

// A Server takes notes.
type Server struct {
	l  net.Listener
	wg sync.WaitGroup
}

// recordings counts those of this process, for the names of their sockets.
var recordings atomic.Uint64

// Listen makes the socket of a recording. put is called with the text of each note and with the
// process that writes it, perhaps for several at a time.
func Listen(info *Info, put func(pid uint32, text string) error) (*Server, error) {
	l, err := rundir.Listen("-" + strconv.FormatUint(recordings.Add(1), 10) + suffix)
	if err != nil {
		return nil, fmt.Errorf("listen for iotape note: %w", err)
	}
	s := &Server{l: l}
	s.wg.Go(func() {
		rundir.Serve(l, func(q *request) *answer {
			if q.Note == nil {
				return &answer{Info: info}
			}
			if err := put(q.Note.PID, q.Note.Text); err != nil {
				return &answer{Error: err.Error()}
			}
			return &answer{}
		})
	})
	return s, nil
}

// Close removes the socket, and returns when every note has its answer.
func (s *Server) Close() error {
	err := s.l.Close()
	s.wg.Wait()
	return err
}

// A Remote is a recording of another process.
type Remote struct {
	Info
	UID   uint32 // the user who records
	path  string
	other *rundir.Other // of another user
}

// Running returns the recordings of this user that take notes, by process. To root it also returns those of
// other users, behind its own.
func Running(ctx context.Context) ([]*Remote, error) {
	var all []*Remote
	err := rundir.Each(suffix, func(path string) error {
		var a answer
		err := rundir.Ask(ctx, path, request{}, &a, rundir.Patience)
		if err == nil && a.Info != nil {
			all = append(all, &Remote{Info: *a.Info, UID: uint32(os.Geteuid()), path: path})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for recordings: %w", err)
	}
	slices.SortFunc(all, func(a, b *Remote) int { return a.PID - b.PID })
	if os.Geteuid() != 0 {
		return all, nil
	}
	others, err := rundir.Others(suffix)
	if err != nil {
		return nil, err
	}
	for i := range others {
		r := &Remote{UID: others[i].UID, other: &others[i]}
		var a answer
		if r.ask(ctx, request{}, &a) == nil && a.Info != nil {
			r.Info = *a.Info
			all = append(all, r)
		}
	}
	return all, nil
}

// ask makes a request to the recording.
func (r *Remote) ask(ctx context.Context, q request, a *answer) error {
	path := r.path
	if r.other != nil {
		opened, done, err := r.other.Open()
		if err != nil {
			return err
		}
		defer done()
		path = opened
	}
	return rundir.Ask(ctx, path, q, a, rundir.Patience)
}

// Put writes a note into the recording. It returns when the note is in the recording.
func (r *Remote) Put(ctx context.Context, text string) error {
	var a answer
	q := request{Note: &note{uint32(os.Getpid()), text}}
	if err := r.ask(ctx, q, &a); err != nil {
		return fmt.Errorf("write a note into the recording %s: %w", r.Name, err)
	}
	if a.Error != "" {
		return fmt.Errorf("write a note into the recording %s: %s", r.Name, a.Error)
	}
	return nil
}

// Find returns the recording with a name or process number; "" is the only one that this user has.
func Find(all []*Remote, name string) (*Remote, error) {
	var own, fits []*Remote
	for _, r := range all {
		if r.other == nil {
			own = append(own, r)
		}
		if name == "" && r.other == nil || r.Name == name || strconv.Itoa(r.PID) == name {
			fits = append(fits, r)
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(all) == 0:
		return nil, noneRuns()
	case len(fits) == 0 && name != "":
		return nil, fmt.Errorf("no recording has the name or process %s; those that run: %s", name, list(all))
	case len(fits) == 0:
		return nil, hint.With(fmt.Errorf("no recording of this user runs; those of other users: %s", list(all)),
			"select one with --recording")
	case name == "":
		fits = own
	default:
		return nil, fmt.Errorf("several recordings have the name %s; select one by its process: %s", name, list(fits))
	}
	return nil, fmt.Errorf("several recordings run; select one with --recording: %s", list(fits))
}

// noneRuns is the error where no recording can be written to.
func noneRuns() error {
	others, _ := rundir.Others(suffix)
	if len(others) == 0 {
		return hint.With(errors.New("no recording of this user runs"),
			"iotape record -- COMMAND starts one; run both as the same user")
	}
	o := others[0]
	of := account.UserText(o.UID)
	return hint.With(fmt.Errorf("no recording of this user runs, but process %d of %s records", o.PID, of),
		"only that user and root can write notes into it: sudo iotape note --recording %d TEXT", o.PID)
}

// list names recordings.
func list(all []*Remote) string {
	var names []string
	for _, r := range all {
		of := ""
		if r.other != nil {
			of = " of " + account.UserText(r.UID)
		}
		names = append(names, fmt.Sprintf("%s (process %d%s)", r.Name, r.PID, of))
	}
	return strings.Join(names, ", ")
}
