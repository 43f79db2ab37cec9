// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/pipe/wholefile"
)

// quarantineDir returns the directory for unreadable streams, below a collector's data.
func quarantineDir(data string) string { return filepath.Join(data, "aside") }

// maxRecord limits the size of the files of positions and hosts, in bytes. A host's has what is known of its last
// streams.
const maxRecord = 256 << 20

// suffix of a file that could not be read, and is kept.
const damagedSuffix = ".damaged"

// quarantineFile renames an unreadable file.
func (c *Collector) quarantineFile(name string, why error, follows string) error {
	if err := os.Rename(name, name+damagedSuffix); err != nil {
		return errors.Join(why, err)
	}
	c.quarantine++
	c.o.Note(fmt.Sprintf("%s cannot be read, and is now %s%s: %v; %s", name, filepath.Base(name),
		damagedSuffix, why, follows))
	return nil
}

// loadPosition reads the position. One that cannot be read is quarantined: then all that the
// broker still has is read again.
func (c *Collector) loadPosition() error {
	name := positionFile(c.o.Data)
	b, err := wholefile.ReadOwn(name, 1, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c.position)
	}
	if err == nil {
		return nil
	}
	c.position = position{}
	return c.quarantineFile(name, err,
		"what the broker has is read from its beginning, and what is stored already is known by its numbers")
}

// load reads what the collector knew, and finds the streams that are not finished. What
// cannot be read is quarantined, and does not keep the others from being served.
func (c *Collector) load() error {
	c.hosts = map[string]*host{}
	entries, err := wholefile.ReadDirOwn(filepath.Join(c.o.Data, "hosts"), 1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lost := map[string]bool{} // hosts whose file could not be read
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || staging.CheckHost(name) != nil {
			continue
		}
		h, err := c.loadHost(name)
		var newer *newerError
		switch {
		case errors.As(err, &newer):
			return err // an older program must not take its place
		case err != nil:
			if err := c.quarantineFile(hostFile(c.o.Data, name), err,
				"its counts begin anew, with what is staged"); err != nil {
				return err
			}
			lost[name] = true
		default:
			c.hosts[name] = h
		}
	}
	streams, damaged, err := staging.Find(c.o.Data)
	if err != nil {
		c.o.Note("staging: " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	for i := range damaged {
		if d := &damaged[i]; !d.Finished { // else the archive does it
			c.quarantineStream(d.Host, d.Stream, d.Dir, d.Err)
		}
	}
	for i := range streams {
		if err := c.loadStream(&streams[i], lost[streams[i].About.Host]); err != nil {
			return err
		}
	}
	return nil
}

type newerError struct{ error }

func (c *Collector) loadHost(name string) (*host, error) {
	b, err := wholefile.ReadOwn(hostFile(c.o.Data, name), hostParts, maxRecord)
	if err != nil {
		return nil, err
	}
	h := newHost(name, c.o.Clock().UnixNano())
	if err := json.Unmarshal(b, &h.record); err != nil {
		return nil, err
	}
	if h.Version > 1 {
		return nil, &newerError{fmt.Errorf("%s: of version %d, this program knows up to 1",
			hostFile(c.o.Data, name), h.Version)}
	}
	if h.Host != name {
		return nil, fmt.Errorf("it says that it is of host %.140q", h.Host)
	}
	if h.Losses == nil {
		h.Losses = map[string]uint64{}
	}
	h.dirty = false
	return h, nil
}

// loadStream loads a staged stream. recount says that the host's file is lost, so finished
// streams are counted again.
func (c *Collector) loadStream(s *staging.Stream, recount bool) error {
	now := c.o.Clock().UnixNano()
	if s.End != nil {
		if recount {
			o := &open{about: s.About, progress: progress{events: s.End.Events}, end: s.End}
			for _, l := range s.End.Losses {
				switch l.Reason {
				case LossGap:
					o.gap += l.Events
				default:
					o.lost += l.Events
				}
			}
			c.host(s.About.Host).close(o)
		}
		return nil
	}
	h := c.host(s.About.Host)
	if f := h.find(s.About.Stream); f != nil {
		// A kill came between the host's file and the end.
		return staging.WriteFile(filepath.Join(s.Dir, staging.EndFile), staging.StreamParts, &f.End)
	}
	o := &open{dir: s.Dir, about: s.About, made: true, held: map[uint64]uint64{}, lastNS: now}
	p, err := recoverStream(s.Dir)
	switch {
	case err == nil:
		o.progress, o.committed = p, p
	case unwritable(err):
		o.unknown = true
		c.wait(h, o, err)
	default:
		c.quarantineStream(s.About.Host, s.About.Stream, s.Dir, err)
		return nil
	}
	h.open[s.About.Stream] = o
	return nil
}

// unwritable reports whether an error says that a directory cannot be written at the moment.
func unwritable(err error) bool {
	for _, e := range []error{syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// quarantineStream moves the directory of an unreadable stream away. Later batches of the stream
// get a new directory, which says that the beginning is missing.
func (c *Collector) quarantineStream(host, stream, dir string, why error) {
	text := strings.ReplaceAll(why.Error(), "\n", "; ")
	c.quarantine++
	to, err := staging.Quarantine(dir, quarantineDir(c.o.Data), text)
	if err != nil {
		c.o.Note(fmt.Sprintf("stream %s of %s cannot be read, and cannot be quarantined: %s; %v",
			stream, host, text, err))
		return
	}
	c.o.Note(fmt.Sprintf("stream %s of %s cannot be read, and is quarantined in %s: %s", stream, host, to, text))
}
