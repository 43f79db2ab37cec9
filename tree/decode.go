// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Errors of Decode that callers may want to tell apart with errors.Is. Errors of the
// reader itself are passed on as they are.
var (
	ErrCorrupt   = errors.New("corrupt tree manifest")
	ErrTruncated = errors.New("tree manifest is truncated")
	ErrVersion   = errors.New("tree manifest is of a newer version")
)

// Decode reads a manifest that Encode wrote, up to its end line and not further than
// the end of r. It returns a valid manifest or an error, never both.
func Decode(r io.Reader) (*Manifest, error) {
	d := &decoder{m: &Manifest{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLineBytes+1)
	number := 0
	for lines.Scan() {
		number++
		if err := d.line(lines.Bytes(), number); err != nil {
			return nil, fmt.Errorf("decode line %d: %w", number, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("decode line %d: %w: it is longer than %d bytes", number+1, ErrCorrupt, MaxLineBytes)
	case err != nil:
		return nil, fmt.Errorf("read tree manifest after line %d: %w", number, err)
	case number == 0:
		return nil, fmt.Errorf("decode: %w: it is empty", ErrTruncated)
	case !d.ended:
		return nil, fmt.Errorf("decode: %w after line %d: there is no end line", ErrTruncated, number)
	}
	return d.m, nil
}

type decoder struct {
	m       *Manifest
	checker checker
	last    Entry // decoded but not yet in the manifest: more of its chunks may follow
	pending bool  // whether last holds an entry
	ended   bool
}

// anyLine tells which kind a line is, and holds it. Kinds are told apart by their
// fields, so that a later version can add one.
type anyLine struct {
	entryLine
	More    runList `json:"more"`
	Note    *string `json:"note"`
	End     bool    `json:"end"`
	Entries int     `json:"entries"`
	Notes   int     `json:"notes"`
}

func (d *decoder) line(b []byte, number int) error {
	if number == 1 {
		return d.header(b)
	}
	if d.ended {
		return corrupt(errors.New("the manifest has ended before"))
	}
	var l anyLine
	if err := json.Unmarshal(b, &l); err != nil {
		return corrupt(err)
	}
	if l.More != nil {
		return d.more(l.More)
	}
	if err := d.commit(); err != nil {
		return corrupt(err)
	}
	switch {
	case l.Note != nil:
		return d.note(&l)
	case l.Type != "":
		return d.entry(&l.entryLine)
	case l.End:
		if l.Entries != len(d.m.Entries) || l.Notes != len(d.m.Notes) {
			return corrupt(fmt.Errorf("the manifest has %d entries and %d notes, but its end line says %d and %d",
				len(d.m.Entries), len(d.m.Notes), l.Entries, l.Notes))
		}
		d.ended = true
	}
	return nil
}

func (d *decoder) header(b []byte) error {
	var h headerLine
	if err := json.Unmarshal(b, &h); err != nil || h.Format != formatName {
		return fmt.Errorf("%w: the first line does not say that this is one", ErrCorrupt)
	}
	switch {
	case h.Version < 1:
		return fmt.Errorf("%w: version %d does not exist", ErrCorrupt, h.Version)
	case h.Version > formatVersion:
		return fmt.Errorf("%w: %d, this program reads up to %d", ErrVersion, h.Version, formatVersion)
	}
	var err error
	if d.m.Root, err = merge("root", h.Root, h.Root64); err != nil {
		return corrupt(err)
	}
	if len(d.m.Root) > maxTextBytes {
		return corrupt(errors.New("the root is too long"))
	}
	return nil
}

func (d *decoder) note(l *anyLine) error {
	if len(d.m.Notes) >= MaxNotes {
		return corrupt(fmt.Errorf("more than %d notes", MaxNotes))
	}
	path, err := merge("path", l.Path, l.Path64)
	if err != nil {
		return corrupt(err)
	}
	if len(path) > maxTextBytes || len(*l.Note) > maxTextBytes {
		return corrupt(errors.New("a note is too long"))
	}
	d.m.Notes = append(d.m.Notes, Note{Path: path, Text: *l.Note})
	return nil
}

// more appends chunks to the entry of the line before.
func (d *decoder) more(list runList) error {
	if !d.pending {
		return corrupt(errors.New("chunks without an entry before them"))
	}
	if err := d.chunks(list); err != nil {
		return corrupt(err)
	}
	return nil
}

func (d *decoder) chunks(list runList) error {
	for _, r := range list {
		var err error
		if d.last.Chunks, err = r.expand(d.last.Chunks); err != nil {
			return err
		}
		if len(d.last.Chunks)+d.checker.chunks > MaxChunks {
			return fmt.Errorf("more than %d chunks", MaxChunks)
		}
	}
	return nil
}

// commit moves the last entry, now that it is complete, into the manifest.
func (d *decoder) commit() error {
	if !d.pending {
		return nil
	}
	d.pending = false
	if err := d.checker.check(&d.last, d.m.Lookup); err != nil {
		return err
	}
	d.m.Entries = append(d.m.Entries, d.last)
	return nil
}

func (d *decoder) entry(l *entryLine) error {
	d.last, d.pending = Entry{}, true
	e := &d.last
	if len(l.Type) != 1 {
		return corrupt(fmt.Errorf("type %s is not one letter", clip(l.Type)))
	}
	e.Type, e.Rdev, e.Dev, e.Ino = Type(l.Type[0]), l.Rdev, l.Dev, l.Ino
	var errs [3]error
	e.Path, errs[0] = merge("path", l.Path, l.Path64)
	e.Target, errs[1] = merge("target", l.Target, l.Target64)
	e.Link, errs[2] = merge("link", l.Link, l.Link64)
	if err := errors.Join(errs[:]...); err != nil {
		return corrupt(err)
	}
	if (l.UID == nil) != (l.GID == nil) {
		return corrupt(errors.New("has a user or a group without the other"))
	}
	know(e, KnownMode, (*uint32)(l.Mode), &e.Mode)
	know(e, KnownOwner, l.UID, &e.UID)
	know(e, KnownOwner, l.GID, &e.GID)
	know(e, KnownMTime, l.MTime, &e.MTime)
	know(e, KnownSize, l.Size, &e.Size)
	know(e, KnownHash, (*[32]byte)(l.Hash), &e.Hash)
	know(e, KnownBlocks, (*[32]byte)(l.Blocks), &e.Hash)
	know(e, KnownLinks, l.Nlink, &e.Nlink)
	if l.Content {
		e.Known |= KnownContent
	}
	if l.Listing {
		e.Known |= KnownListing
	}
	if l.Xattrs != nil {
		e.Known |= KnownXattrs
		if err := e.setXattrs(*l.Xattrs); err != nil {
			return corrupt(err)
		}
	}
	if err := d.chunks(l.Chunks); err != nil {
		return corrupt(err)
	}
	return nil
}

// know takes over the value of a field that is present.
func know[T any](e *Entry, k Known, from, to *T) {
	if from != nil {
		e.Known |= k
		*to = *from
	}
}

func (e *Entry) setXattrs(pairs xattrList) error {
	if len(pairs) == 0 {
		return nil
	}
	e.Xattrs = make(map[string][]byte, min(len(pairs), MaxXattrs))
	for _, p := range pairs {
		name, err := merge("name", p.Name, p.Name64)
		if err != nil {
			return err
		}
		if _, ok := e.Xattrs[name]; ok {
			return fmt.Errorf("extended attribute %s occurs twice", clip(name))
		}
		if p.Value == nil {
			p.Value = []byte{}
		}
		e.Xattrs[name] = p.Value
	}
	return nil
}

// runList and xattrList are lists whose length is checked while they are parsed: a
// line of 64 MiB has room for tens of millions of empty elements.
type (
	runList   []run
	xattrList []xattrPair
)

func (l *runList) UnmarshalJSON(b []byte) error {
	return boundedList(b, (*[]run)(l), runsPerLine)
}

func (l *xattrList) UnmarshalJSON(b []byte) error {
	return boundedList(b, (*[]xattrPair)(l), MaxXattrs)
}

func boundedList[T any](b []byte, list *[]T, limit int) error {
	if string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.New("a list is expected")
	}
	*list = []T{}
	for d.More() {
		if len(*list) == limit {
			return fmt.Errorf("a list has more than %d elements", limit)
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		*list = append(*list, v)
	}
	return nil
}

// merge is the reverse of split.
func merge(field, text string, b64 []byte) (string, error) {
	if text != "" && len(b64) > 0 {
		return "", fmt.Errorf("has both %s and %s64", field, field)
	}
	if len(b64) > 0 {
		return string(b64), nil
	}
	return text, nil
}

func corrupt(err error) error { return fmt.Errorf("%w: %w", ErrCorrupt, err) }
