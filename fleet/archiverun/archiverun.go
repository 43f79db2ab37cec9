// SPDX-License-Identifier: Apache-2.0

package archiverun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/fleet/archive"
	"github.com/iotape/iotape/internal/wallclock"
	"github.com/iotape/iotape/pipe/objectstore"
)

// Options for Run.
type Options struct {
	// Archive says what to archive; Run sets its Store. Without Data, Run archives nothing.
	Archive archive.Options
	// Keep limits what stays; without an age and a size all tapes stay. With DryRun, Run
	// archives and removes nothing.
	Keep  archive.Keep
	To    string        // where tapes are kept, see objectstore.Open
	Every time.Duration // the time between two runs; 0 means run once
	Out   io.Writer     // gets the locations of the tapes that DryRun would remove
	Note  func(line string)
}

func (o *Options) prunes() bool { return o.Keep.Age > 0 || o.Keep.Bytes > 0 }

// Check returns what is wrong with the options.
func (o *Options) Check() error {
	switch {
	case o.Archive.Data == "" && !o.prunes():
		return errors.New("nothing to do: name the collector's directory with --data, " +
			"or limit the archive with --keep or --keep-size")
	case o.Keep.DryRun && !o.prunes():
		return errors.New("--dry-run is for --keep and --keep-size")
	case o.Keep.DryRun && o.Every > 0:
		return errors.New("--dry-run is done once: it cannot go with --every")
	}
	return nil
}

// Run archives and prunes. It returns how many streams were quarantined because they could
// not be sealed. With Every it returns when ctx ends, with the number of the last run.
func Run(ctx context.Context, o *Options) (refused int, err error) {
	if o.Archive.Data != "" {
		if _, err := os.Stat(o.Archive.Data); err != nil {
			return 0, err
		}
	}
	store, err := objectstore.Open(ctx, o.To)
	if err != nil {
		return 0, err
	}
	for {
		refused, err = o.once(ctx, store)
		if o.Every <= 0 || ctx.Err() != nil {
			return refused, err
		}
		if err != nil {
			o.Note(fmt.Sprintf("%v; trying again in %s", err, o.Every))
		}
		select {
		case <-ctx.Done():
			return 0, nil
		case <-time.After(o.Every):
		}
	}
}

// once archives the ended streams, and removes the tapes beyond the limits.
func (o *Options) once(ctx context.Context, store objectstore.Store) (refused int, err error) {
	if o.Archive.Data != "" && !o.Keep.DryRun {
		what := o.Archive
		what.Store = store
		res, err := archive.Run(ctx, &what)
		if o.Every <= 0 || res.Tapes+res.Refused > 0 {
			o.Note(fmt.Sprintf("%s of %s stored in %s (%s); %d quarantined, %d waiting",
				report.Plural(res.Tapes, "tape", "tapes"),
				report.Plural(res.Streams, "stream", "streams"), o.To, report.Bytes(uint64(res.Bytes)),
				res.Refused, res.Waiting))
		}
		if err != nil {
			return 0, err
		}
		refused = res.Refused
	}
	if o.prunes() {
		err = o.prune(ctx, store)
	}
	return refused, err
}

func (o *Options) prune(ctx context.Context, store objectstore.Store) error {
	gone, err := archive.Prune(ctx, store, &o.Keep)
	word := "removed"
	if o.Keep.DryRun {
		word = "would be removed"
	}
	total := int64(0)
	for _, t := range gone {
		total += t.Bytes
		if o.Keep.DryRun {
			if _, err := fmt.Fprintln(o.Out, report.Printable(store.Location(t.Key))); err != nil {
				return err
			}
		}
	}
	if o.Every <= 0 || len(gone) > 0 {
		o.Note(fmt.Sprintf("%s %s (%s)", report.Plural(len(gone), "tape", "tapes"), word, report.Bytes(uint64(total))))
	}
	return err
}

// List writes the tapes of a store, one a line, for people or as JSON.
func List(ctx context.Context, w io.Writer, store objectstore.Store, asJSON bool,
	clock wallclock.Form) error {
	n := 0
	enc := json.NewEncoder(w)
	for t, err := range archive.Tapes(ctx, store, "") {
		if err != nil {
			return err
		}
		if !t.Complete {
			continue
		}
		n++
		if asJSON {
			err = enc.Encode(struct {
				Location string    `json:"location"`
				Bytes    int64     `json:"bytes"`
				Stored   time.Time `json:"stored"`
			}{store.Location(t.Key), t.Bytes, t.Stored.UTC()})
		} else {
			_, err = fmt.Fprintf(w, "%s  %10s  %s\n", clock.Text(t.Stored, wallclock.Minute),
				report.Bytes(uint64(t.Bytes)), report.Printable(store.Location(t.Key)))
		}
		if err != nil {
			return err
		}
	}
	if !asJSON {
		fmt.Fprintln(w, report.Plural(n, "tape", "tapes"))
	}
	return nil
}
