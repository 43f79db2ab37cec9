// SPDX-License-Identifier: Apache-2.0

package straceread

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/trace"
)

// maxLinks bounds how many symbolic links are remembered.
const maxLinks = 1 << 12

// maxHops is the kernel's limit for the links of one name (MAXSYMLINKS).
const maxHops = 40

// opensLink says that a symbolic link is in the name that an open was given, if the name that -y writes
// behind its result is another one. A tape then has both names of the file.
func (x *importer) opensLink(t *thread, c *format.Call, args []field, r *result) error {
	if r.note == "" || r.ret < 0 {
		return nil
	}
	given := givenName(c, args)
	_, real := object(r.note)
	if given == "" || t.p.jailed || !strings.HasPrefix(real, "/") || strings.Contains(real, "<") {
		return nil
	}
	reached := x.throughLinks(given)
	if reached == real || given == real || len(x.links) >= maxLinks {
		return nil
	}
	name, target := withoutCommon(reached, real)
	if strings.HasPrefix(target, name+"/") && x.links[name] == "" && name == reached {
		return nil // the file was opened while another one was mounted over its directory
	}
	// Links that were found below it are below its target. (The lookup of a name meets the first link first.)
	for _, below := range slices.Sorted(maps.Keys(x.links)) {
		if rest, ok := strings.CutPrefix(below, name+"/"); ok && x.links[target+"/"+rest] == "" {
			if err := x.link(t, c, target+"/"+rest, x.links[below]); err != nil {
				return err
			}
		}
	}
	return x.link(t, c, name, target)
}

// withoutCommon takes the last parts off two names that are the same, but leaves one of each.
func withoutCommon(name, target string) (string, string) {
	for {
		dir, last := path.Split(name)
		to, lastTo := path.Split(target)
		if last != lastTo || dir == "/" || to == "/" {
			return name, target
		}
		name, target = strings.TrimSuffix(dir, "/"), strings.TrimSuffix(to, "/")
	}
}

// link says that a name is a symbolic link.
func (x *importer) link(t *thread, c *format.Call, name, target string) error {
	x.links[name] = target
	return x.w.Record(&trace.Record{Type: trace.RecLink, PID: t.p.pid, TID: t.tid, Exit: c.Enter, Pieces: []trace.Piece{
		{Len: uint32(len(name)), Data: []byte(name)}, {Len: uint32(len(target)), Data: []byte(target)}}})
}

// givenName returns the absolute name that an open was given, "" if that is not known or no plain name.
func givenName(c *format.Call, args []field) string {
	at := 0
	switch c.Op {
	case event.OpOpen, event.OpCreat:
	case event.OpOpenat, event.OpOpenat2:
		at = 1
	default:
		return ""
	}
	if at >= len(args) || args[at].Cut || len(args[at].Data) == 0 {
		return ""
	}
	name := string(args[at].Data)
	if !strings.HasPrefix(name, "/") {
		if at == 0 || args[0].Note == "" {
			return ""
		}
		name = unescape(args[0].Note) + "/" + name
	}
	if !strings.HasPrefix(name, "/") || strings.Contains(name+"/", "/../") {
		return ""
	}
	name = path.Clean(name)
	for _, own := range [...]string{"/proc/", "/dev/fd/", "/dev/std"} { // what they lead to is each process's own
		if strings.HasPrefix(name, own) {
			return ""
		}
	}
	return name
}

// throughLinks follows the links in a name that are known.
func (x *importer) throughLinks(name string) string {
	for hops := 0; hops < maxHops && len(name) < event.MaxPath; hops++ {
		found := false
		for end := 1; end <= len(name) && !found; end++ {
			if end < len(name) && name[end] != '/' {
				continue
			}
			if to := x.links[name[:end]]; to != "" {
				name, found = to+name[end:], true
			}
		}
		if !found {
			break
		}
	}
	return name
}
