// SPDX-License-Identifier: Apache-2.0

// Package mountrun records what is done below a directory while it is shown at another place.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package mountrun

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/capture/fusefs"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/trace"
)

// Run mounts the tracing file system and carries out the plan, whose target it sets, until
// the directory is unmounted or ctx ends; a second signal then leaves a mount that is in
// use. before stores the state of the directory first.
func Run(ctx context.Context, p *session.Plan, source fusefs.Backend, before bool) (*session.Result, error) {
	p.Until = ctx
	p.Name, p.Target = "mount", source.Lower+" mounted at "+source.Mountpoint
	if abs, err := filepath.Abs(source.Lower); err == nil {
		p.Name, p.Target = filepath.Base(abs), abs+" mounted at "+source.Mountpoint
	}
	if before {
		p.Snapshots = []string{source.Lower}
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	for _, dir := range []string{source.Lower, source.Mountpoint} {
		if inside, err := fusefs.Within(p.Tape, dir); err == nil && inside {
			return nil, fmt.Errorf("the tape %s would be inside %s, and the recording would record itself: "+
				"name another place with -o", p.Tape, dir)
		}
	}
	leave, stop := session.SecondSignal(ctx)
	defer stop()
	source.Leave = leave
	p.Backends = []session.Backend{{Backend: mounting{source, p}, Shards: func(*capture.Options) int { return 1 }}}
	return session.Record(context.WithoutCancel(ctx), p)
}

// mounting says when the mount is there.
type mounting struct {
	fusefs.Backend
	p *session.Plan
}

// Run implements capture.Backend.
func (m mounting) Run(ctx context.Context, o *capture.Options, sw *trace.StreamWriter) (*capture.Result, error) {
	options := *o
	options.Started = func(pid int) {
		o.Started(pid)
		m.p.Reporter.Note(fmt.Sprintf("%s shows %s, recorded to %s until it is unmounted", m.Mountpoint, m.Lower,
			m.p.Tape))
	}
	return m.Backend.Run(ctx, &options, sw)
}
