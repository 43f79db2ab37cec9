// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/iotape/iotape/internal/rundir"
)

// Info says what a running flight recorder is.
type Info struct {
	PID     int      `json:"pid"`
	Name    string   `json:"name"` // of its dumps, without number
	Command []string `json:"command"`
	Dir     string   `json:"dir"`     // its working directory, where dumps go
	Bytes   int64    `json:"bytes"`   // in memory
	BackNS  int64    `json:"back_ns"` // how far that reaches back
	Dumps   int      `json:"dumps"`   // made so far
}

// request and answer are one line of JSON each.
type request struct {
	Do string `json:"do"` // "info" or "dump"
}

type answer struct {
	Info  *Info  `json:"info,omitempty"`
	Tape  string `json:"tape,omitempty"` // absolute path of the dump
	Error string `json:"error,omitempty"`
}

// A Control listens for requests to a flight recorder.
type Control struct {
	l  net.Listener
	wg sync.WaitGroup
}

// Listen makes this process's socket. info and dump are called when they are asked
// for, dump perhaps more than once at a time; it returns the dump's path.
func Listen(info func() Info, dump func() (string, error)) (*Control, error) {
	l, err := rundir.Listen(socketSuffix)
	if err != nil {
		return nil, fmt.Errorf("listen for iotape dump: %w", err)
	}
	c := &Control{l: l}
	c.wg.Go(func() {
		rundir.Serve(l, func(q *request) *answer { return answerTo(q, info, dump) })
	})
	return c, nil
}

// Close removes the socket, and returns when every request has its answer.
func (c *Control) Close() error {
	err := c.l.Close()
	c.wg.Wait()
	return err
}

func answerTo(q *request, info func() Info, dump func() (string, error)) *answer {
	var a answer
	switch q.Do {
	case "info":
		i := info()
		a.Info = &i
	case "dump":
		var err error
		if a.Tape, err = dump(); err != nil {
			a.Error = err.Error()
		}
	default:
		a.Error = fmt.Sprintf("request %q is not known to this version of iotape", q.Do)
	}
	return &a
}

// A Remote is a flight recorder that runs in another process.
type Remote struct {
	Info
	path string
}

// Running returns the flight recorders of this user that run, by process.
func Running(ctx context.Context) ([]*Remote, error) {
	var all []*Remote
	err := rundir.Each(socketSuffix, func(path string) error {
		r := &Remote{path: path}
		a, err := r.ask(ctx, "info", rundir.Patience)
		if err == nil && a.Info != nil {
			r.Info = *a.Info
			all = append(all, r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for flight recorders: %w", err)
	}
	slices.SortFunc(all, func(a, b *Remote) int { return a.PID - b.PID })
	return all, nil
}

// Dump asks for a dump, waits for it, and returns the tape's path.
func (r *Remote) Dump(ctx context.Context) (string, error) {
	a, err := r.ask(ctx, "dump", 0)
	if err != nil {
		return "", err
	}
	if a.Error != "" {
		return "", errors.New(a.Error)
	}
	return a.Tape, nil
}

// ask makes one request; limit is how long that may take, 0 for as long as it needs.
func (r *Remote) ask(ctx context.Context, what string, limit time.Duration) (*answer, error) {
	a := &answer{}
	if err := rundir.Ask(ctx, r.path, request{Do: what}, a, limit); err != nil {
		return nil, fmt.Errorf("ask the flight recorder: %w", err)
	}
	return a, nil
}

const socketSuffix = ".sock"
