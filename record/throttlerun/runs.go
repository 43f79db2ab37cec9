// SPDX-License-Identifier: Apache-2.0

package throttlerun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/iotape/iotape/causal/throttle"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/session"
)

// watch runs the command with a node held, or nobody.
func (e *experiment) watch(ctx context.Context, node string) (*throttle.Run, error) {
	if err := e.prepared(ctx); err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if e.left() <= 0 {
		return nil, fmt.Errorf("no time was left for another run of the command (--budget)")
	}
	o := &e.Plan.Capture
	opt := &throttle.Options{
		Command: ptracer.Command{Argv: o.Command, Env: o.Env, Credential: o.Credential,
			Files: [3]*os.File{null, null, os.Stderr}},
		Scope: e.Scope, Serial: e.serial, Hold: node, Period: e.Period, Known: e.known,
		Patience: e.Patience, Most: e.Hold, Budget: e.left(),
	}
	if e.peers != nil {
		wd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithDeadline(ctx, e.deadline)
		defer cancel()
		return e.peers.Watch(ctx, opt, wd)
	}
	r, err := throttle.Watch(ctx, opt)
	if err != nil {
		return nil, session.StartError(o.Command[0], err)
	}
	return r, nil
}

// quiet is the run in which nobody is held.
func (e *experiment) quiet(ctx context.Context) error {
	r, err := e.load("quiet.json")
	if r == nil && err == nil && e.Suggest {
		err = fmt.Errorf("%s has no runs", e.Runs)
	}
	if r == nil && err == nil {
		e.note("running it with nobody held")
		if r, err = e.watch(ctx, ""); err == nil {
			switch {
			case r.Abandoned != "":
				err = fmt.Errorf("the command was ended with nobody held: %s (--each, --budget)", r.Abandoned)
			case r.Exit != 0 || r.Signal != 0:
				err = fmt.Errorf(
					"the command, run again with nobody held, failed with %s; is there anything that --prepare "+
						"should restore?", ending(r))
			default:
				err = e.store("quiet.json", r)
			}
		}
	}
	if err != nil {
		return err
	}
	e.known = append(e.known, r)
	return nil
}

func ending(r *throttle.Run) string {
	if r.Signal != 0 {
		return fmt.Sprintf("signal %d", r.Signal)
	}
	return fmt.Sprintf("status %d", r.Exit)
}

// hold is the run in which a node is held.
func (e *experiment) hold(ctx context.Context, node, which string) error {
	name := fmt.Sprintf("node-%s-%d.json", strings.ReplaceAll(node, "/", "_"), e.Period)
	if r, err := e.load(name); err != nil || r != nil {
		return err // it comes with the others
	}
	e.note("%s: node %s is held", which, node)
	r, err := e.watch(ctx, node)
	if err != nil {
		return err
	}
	if quiet := e.known[0]; r.Abandoned == "" && (r.Exit != quiet.Exit || r.Signal != quiet.Signal) {
		e.failed = append(e.failed, fmt.Sprintf("the command failed with %s when node %s was held", ending(r), node))
	}
	if e.Runs == "" {
		e.known = append(e.known, r)
		return nil
	}
	return e.store(name, r)
}

// keep makes the directory of the runs.
func (e *experiment) keep() error {
	if e.Runs == "" || e.Suggest {
		return nil
	}
	return os.MkdirAll(e.Runs, 0o777)
}

func (e *experiment) store(name string, r *throttle.Run) error {
	if e.Runs == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(e.Runs, name))
	if err != nil {
		return err
	}
	return errors.Join(r.Write(f), f.Close())
}

// load reads a run that was kept; nil if there is none.
func (e *experiment) load(name string) (*throttle.Run, error) {
	if e.Runs == "" {
		return nil, nil
	}
	name = filepath.Join(e.Runs, name)
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := throttle.ReadRun(f, e.serial)
	if errors.Is(err, throttle.ErrMixed) {
		return nil, hint.With(fmt.Errorf("%s: %w than %s", name, err, e.Plan.Tape),
			"give each tape a directory of its own with --runs")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// others reads all runs that were kept.
func (e *experiment) others() error {
	if e.Runs == "" {
		return nil
	}
	entries, err := os.ReadDir(e.Runs)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "node-") || filepath.Ext(entry.Name()) != ".json" {
			continue
		}
		r, err := e.load(entry.Name())
		if err != nil {
			return err
		}
		e.known = append(e.known, r)
	}
	return nil
}
