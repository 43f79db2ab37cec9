// SPDX-License-Identifier: Apache-2.0

package remake

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/seal"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/anon"
	"github.com/iotape/iotape/transform/merge"
	"github.com/iotape/iotape/transform/repair"
	"github.com/iotape/iotape/transform/slice"
)

// Options say how a tape is made.
type Options struct {
	Index    sealing.Indexer  // see sealing.Staged
	Reporter sealing.Reporter // nil: sealing.Silent
	Program  string           // that makes it
}

func (o *Options) note(format string, args ...any) {
	sealing.OrSilent(o.Reporter).Note(fmt.Sprintf(format, args...))
}

// make makes a tape by a function that fills it.
func (o *Options) make(ctx context.Context, out string,
	fill func(tw *trace.TapeWriter, update sealing.Update) (*trace.Manifest, error)) (*sealing.Made, error) {
	return sealing.Make(ctx, out,
		&sealing.MakeOptions{Index: o.Index, Reporter: o.Reporter, Unit: report.Count}, fill)
}

// doing returns a function for the progress of one step.
func doing(update sealing.Update, what string) func(done, total uint64) {
	return func(done, total uint64) { update(what, done, total) }
}

// Slice makes the tape out of a part of t. If nothing fits, the error is slice.ErrEmpty.
func Slice(ctx context.Context, out string, t *trace.Tape, part *slice.Options, o *Options) error {
	var res *slice.Result
	made, err := o.make(ctx, out, func(tw *trace.TapeWriter, update sealing.Update) (_ *trace.Manifest, err error) {
		part.Program, part.Progress = o.Program, update
		if res, err = slice.Tape(ctx, tw, t, part); err != nil {
			return nil, err
		}
		return res.Manifest, nil
	})
	if err != nil {
		return err
	}
	for _, name := range res.LeftOut {
		o.note("left out: %s, which is not that of the slice", name)
	}
	o.note("%s of %s events, %s with them and %s of the state before: %s", report.Count(res.Picked),
		report.Count(t.Manifest().Counts.Events),
		report.Count(res.Context), report.Count(res.State), report.Bytes(uint64(made.Bytes)))
	return nil
}

// Merge makes the tape out of all events of several tapes.
func Merge(ctx context.Context, out string, tapes []*trace.Tape, o *Options) error {
	made, err := o.make(ctx, out, func(tw *trace.TapeWriter, update sealing.Update) (*trace.Manifest, error) {
		return merge.Tapes(ctx, tw, tapes, &merge.Options{Program: o.Program, Progress: doing(update, "merging")})
	})
	if err != nil {
		return err
	}
	m := made.Manifest
	if merge.LostKeys(m, tapes) {
		o.note("the tapes are not anonymised with the same keys and fields, so the new tape cannot be revealed")
	}
	o.note("%s of %s: %s, %s", report.Plural(len(m.Hosts), "recording", "recordings"),
		report.Plural(len(tapes), "tape", "tapes"),
		report.Count(m.Counts.Events)+" events", report.Bytes(uint64(made.Bytes)))
	return nil
}

// Anonymise makes the tape out of t with the values of fields replaced. keyFile has the
// keys; if it does not exist, it is made. The survey says what may still identify people
// and systems.
func Anonymise(ctx context.Context, out string, t *trace.Tape, keyFile string, fields *anon.Options,
	o *Options) (*anon.Survey, error) {
	if err := sealing.MustNotExist(out, "choose another name, or remove it"); err != nil {
		return nil, err
	}
	keys, created, shared, err := anon.OpenKeyFile(keyFile)
	if err != nil {
		return nil, err
	}
	fields.Keys = keys
	res, err := o.rewrite(ctx, out, t, "anonymising", fields, anon.Anonymise)
	if err != nil {
		return nil, err
	}
	if created {
		o.note("made %s: nothing can be revealed without this file", keyFile)
	}
	if shared {
		sealing.OrSilent(o.Reporter).Problem(hint.With(
			fmt.Errorf("others can read %s", keyFile), "chmod 600 %s", keyFile))
	}
	if res.Removed > 0 {
		o.note("%s of content were left out", report.Bytes(uint64(res.Removed)))
	}
	made, err := trace.Open(out)
	if err != nil {
		return nil, err
	}
	defer made.Close()
	return anon.Look(made)
}

// Reveal makes the tape out of an anonymised tape with those fields restored whose keys are
// in a file.
func Reveal(ctx context.Context, out string, t *trace.Tape, keyFile string, fields *anon.Options, o *Options) error {
	var err error
	if fields.Keys, _, err = anon.ReadKeyFile(keyFile); err != nil {
		return err
	}
	res, err := o.rewrite(ctx, out, t, "revealing", fields, anon.Reveal)
	if err != nil {
		return err
	}
	if res.Unsigned {
		o.note("%s was made from an anonymised tape without all of its keys; changes to it cannot be detected",
			t.Name())
	}
	if a := res.Manifest.Anonymised; a != nil && a.Content == trace.ContentRemoved {
		o.note("content was removed, and cannot be restored")
	}
	return nil
}

// rewrite makes a tape by Anonymise or Reveal of package anon.
func (o *Options) rewrite(ctx context.Context, out string, t *trace.Tape, what string, fields *anon.Options,
	run func(context.Context, *trace.TapeWriter, *trace.Tape, *anon.Options) (*anon.Result, error),
) (*anon.Result, error) {
	var res *anon.Result
	made, err := o.make(ctx, out, func(tw *trace.TapeWriter, update sealing.Update) (_ *trace.Manifest, err error) {
		fields.Program, fields.Progress = o.Program, doing(update, what)
		if res, err = run(ctx, tw, t, fields); err != nil {
			return nil, err
		}
		return res.Manifest, nil
	})
	if err != nil {
		return nil, err
	}
	if len(res.LeftOut) > 0 {
		o.note("left out: %s", strings.Join(res.LeftOut, ", "))
	}
	o.note("%s events, %s of content, %s: %s", report.Count(made.Manifest.Counts.Events),
		report.Bytes(made.Manifest.Content.MovedBytes), res.Fields, report.Bytes(uint64(made.Bytes)))
	return res, nil
}

// Repair makes a sound tape of a damaged one. The name of the new tape is derived from that
// of the damaged one if out is empty. It reports whether the result is complete: a tape
// without damage is, and no tape is made of it.
func Repair(ctx context.Context, path, out string, o *Options) (complete bool, err error) {
	t, err := repair.Open(path)
	if err != nil {
		return false, err
	}
	defer t.Close()
	rep, err := Check(ctx, t, o.Reporter)
	if err != nil {
		return false, err
	}
	if rep.OK() {
		o.note("nothing is wrong with %s", path)
		return true, nil
	}
	if !slices.ContainsFunc(rep.Damage, func(d trace.Damage) bool { return !d.Derived }) {
		return false, hint.With(fmt.Errorf("of %s only files are damaged that can be made again", path),
			"iotape index %s", path)
	}
	if out == "" {
		out = sealing.TrimTape(filepath.Clean(path)) + ".repaired.tape"
	}
	var res *repair.Result
	made, err := o.make(ctx, out, func(tw *trace.TapeWriter, update sealing.Update) (_ *trace.Manifest, err error) {
		res, err = repair.Tape(ctx, tw, t, &repair.Options{Program: o.Program, Progress: doing(update, "repairing")})
		if err != nil {
			return nil, err
		}
		return res.Manifest, nil
	})
	if err != nil {
		return false, err
	}
	o.note("%s: %s events, %s", made.Tape, report.Count(res.Events), report.Bytes(uint64(made.Bytes)))
	if !res.OK() {
		o.note("%s", res.Manifest.Reason)
	}
	return res.OK(), nil
}

// Check verifies a tape with its trees of files.
func Check(ctx context.Context, t *trace.Tape, r sealing.Reporter) (*trace.CheckReport, error) {
	progress := sealing.OrSilent(r).Progress(report.Bytes)
	defer progress.Done()
	rep, err := t.Check(ctx, func(done, total int64) { progress.Update("checking", done, total) })
	if err != nil {
		return nil, err
	}
	return rep, seal.CheckTrees(ctx, t, rep)
}
