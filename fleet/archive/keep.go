// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/pipe/objectstore"
	"github.com/iotape/iotape/trace"
)

// Tape is a tape in a store.
type Tape struct {
	Key      string
	Bytes    int64
	Stored   time.Time // when its last file was stored, by the store's clock
	Complete bool      // it has its manifest
	files    []string
}

// Name is the last part of the key.
func (t *Tape) Name() string { return t.Key[strings.LastIndexByte(t.Key, '/')+1:] }

// Tapes iterates over the tapes whose keys begin with a prefix, in the order of keys. It
// ignores files that belong to no tape.
func Tapes(ctx context.Context, s objectstore.Store, prefix string) iter.Seq2[*Tape, error] {
	return func(yield func(*Tape, error) bool) {
		var t *Tape
		for o, err := range s.List(ctx, prefix) {
			if err != nil {
				yield(nil, err)
				return
			}
			i := strings.LastIndexByte(o.Key, '/')
			if i < 0 || checkKey(o.Key[:i]) != nil {
				continue
			}
			if t != nil && t.Key != o.Key[:i] {
				if !yield(t, nil) {
					return
				}
				t = nil
			}
			if t == nil {
				t = &Tape{Key: o.Key[:i]}
			}
			t.Bytes += o.Bytes
			t.files = append(t.files, o.Key[i+1:])
			if o.Stored.After(t.Stored) {
				t.Stored = o.Stored
			}
			t.Complete = t.Complete || o.Key[i+1:] == trace.ManifestName
		}
		if t != nil {
			yield(t, nil)
		}
	}
}

// Keep limits the tapes in a store. Zero values are no limits.
type Keep struct {
	// Age is how long a tape stays after it was stored, by the clock of the store, as the
	// clock of a host may be wrong.
	Age   time.Duration
	Bytes int64 // of all tapes; the oldest are removed first
	Now   func() time.Time
	// DryRun removes nothing.
	DryRun bool
	// Removed is called for each tape before its first file is removed. It may be nil.
	Removed func(ctx context.Context, location string) error
}

// unfinishedAge is how long the files of a tape without a manifest stay: the tape may be
// on its way into the store.
const unfinishedAge = 7 * 24 * time.Hour

// Prune removes the tapes beyond the limits, and the files of unfinished ones. It returns
// the tapes that it removed, or would remove.
func Prune(ctx context.Context, s objectstore.Store, k *Keep) (gone []*Tape, err error) {
	now := time.Now()
	if k.Now != nil {
		now = k.Now()
	}
	var tapes []*Tape
	for t, err := range Tapes(ctx, s, "") {
		if err != nil {
			return nil, err
		}
		tapes = append(tapes, t)
	}
	slices.SortStableFunc(tapes, func(a, b *Tape) int {
		return cmp.Or(b.Stored.Compare(a.Stored), cmp.Compare(a.Key, b.Key))
	})
	total := int64(0)
	for _, t := range tapes {
		age := now.Sub(t.Stored)
		stays := t.Complete && (k.Age <= 0 || age < k.Age) && (k.Bytes <= 0 || total+t.Bytes <= k.Bytes) ||
			!t.Complete && age < unfinishedAge
		if stays {
			total += t.Bytes
			continue
		}
		if k.Bytes > 0 && t.Complete {
			total += t.Bytes // no older one stays in the place of a newer one
		}
		gone = append(gone, t)
	}
	slices.Reverse(gone) // the oldest first
	if k.DryRun {
		return gone, nil
	}
	for i, t := range gone {
		if k.Removed != nil && t.Complete {
			if err := k.Removed(ctx, s.Location(t.Key)); err != nil {
				return gone[:i], err
			}
		}
		if err := removeTape(ctx, s, t); err != nil {
			return gone[:i], err
		}
	}
	return gone, nil
}

// removeTape removes the manifest first: without it there is no tape.
func removeTape(ctx context.Context, s objectstore.Store, t *Tape) error {
	names := append([]string{trace.ManifestName},
		slices.DeleteFunc(slices.Clone(t.files), func(n string) bool { return n == trace.ManifestName })...)
	for _, name := range names {
		if err := s.Remove(ctx, t.Key+"/"+name); err != nil {
			return err
		}
	}
	return nil
}
