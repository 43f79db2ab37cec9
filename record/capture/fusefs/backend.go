// SPDX-License-Identifier: Apache-2.0

package fusefs

import (
	"context"
	"errors"
	"time"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/trace"
)

// Name is the back end's in recordings.
const Name = "fuse"

// Backend records a mount, as a back end: from when it is mounted to when it has ended.
type Backend struct {
	Lower, Mountpoint string
	Cache             time.Duration
	// Leave, when it is done, ends the recording although programs still use the mount.
	// They get errors when the process ends.
	Leave context.Context
}

// Name returns "fuse".
func (Backend) Name() string { return Name }

// Run mounts, and records until the file system is unmounted, by ctx or by anybody else.
// Of the options it knows Content, Started and Note.
func (s Backend) Run(ctx context.Context, o *capture.Options, sw *trace.StreamWriter) (*capture.Result, error) {
	begun := time.Now()
	t := &Recording{Stream: sw, Content: o.Content}
	m, err := New(&Options{Lower: s.Lower, Mountpoint: s.Mountpoint, Cache: s.Cache, Recordings: []*Recording{t}})
	if err != nil {
		return nil, err
	}
	if o.Started != nil {
		o.Started(0)
	}
	left := s.wait(ctx, m, o.Note)
	counts := m.Detach(t)
	if !left {
		err = m.Close()
	}
	res := &capture.Result{Events: counts.Events, Lost: counts.Lost, WriteErr: counts.Err, Elapsed: time.Since(begun)}
	return res, err
}

// wait returns when the mount has ended, or is left to end with the process.
func (s Backend) wait(ctx context.Context, m *Mount, note func(string)) (left bool) {
	if note == nil {
		note = func(string) {}
	}
	var leave <-chan struct{}
	if s.Leave != nil {
		leave = s.Leave.Done()
	}
	select {
	case <-m.Ended():
		return false
	case <-ctx.Done():
	}
	switch err := m.Unmount(); {
	case errors.Is(err, ErrBusy):
		note(m.Mountpoint + " is in use: it is unmounted, and recorded until the last program has let go of it")
	case err != nil:
		note(err.Error())
	}
	select {
	case <-m.Ended():
		return false
	case <-leave:
		return true
	}
}
