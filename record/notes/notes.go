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
	path string
}

// Running returns the recordings of this user that take notes, by process.
func Running(ctx context.Context) ([]*Remote, error) {
	var all []*Remote
	err := rundir.Each(suffix, func(path string) error {
		var a answer
		err := rundir.Ask(ctx, path, request{}, &a, rundir.Patience)
		if err == nil && a.Info != nil {
			all = append(all, &Remote{*a.Info, path})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for recordings: %w", err)
	}
	slices.SortFunc(all, func(a, b *Remote) int { return a.PID - b.PID })
	return all, nil
}

// Put writes a note into the recording. It returns when the note is in the recording.
func (r *Remote) Put(ctx context.Context, text string) error {
	var a answer
	q := request{Note: &note{uint32(os.Getpid()), text}}
	if err := rundir.Ask(ctx, r.path, q, &a, rundir.Patience); err != nil {
		return fmt.Errorf("write a note into the recording %s: %w", r.Name, err)
	}
	if a.Error != "" {
		return fmt.Errorf("write a note into the recording %s: %s", r.Name, a.Error)
	}
	return nil
}

// Find returns the recording with a name or process number; "" is the only one that there is.
func Find(all []*Remote, name string) (*Remote, error) {
	var fits []*Remote
	var names []string
	for _, r := range all {
		if name == "" || r.Name == name || strconv.Itoa(r.PID) == name {
			fits = append(fits, r)
		}
		names = append(names, fmt.Sprintf("%s (process %d)", r.Name, r.PID))
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(all) == 0:
		return nil, hint.With(errors.New("no recording of this user runs"),
			"iotape record -- COMMAND starts one; run both as the same user")
	case len(fits) == 0:
		return nil, fmt.Errorf("no recording has the name or process %s; those that run: %s", name,
			strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("several recordings run; select one with --recording: %s", strings.Join(names, ", "))
}
