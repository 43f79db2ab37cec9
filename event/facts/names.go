// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// unitTypes are the types of systemd's units that have processes, but for slices (systemd.unit(5)).
var unitTypes = []string{".service", ".scope", ".socket", ".mount", ".swap"}

// Units returns the systemd units of a control group, as their names in its path say: the one of the system,
// and, of a service that a user's own systemd runs, that one behind it. It is empty for a control group that is
// no unit's.
func Units(cgroup string) (list []string) {
	for part := range strings.SplitSeq(cgroup, "/") {
		part = strings.TrimPrefix(part, "_") // systemd's escape for names that the kernel has a use for
		i := strings.LastIndexByte(part, '.')
		if i <= 0 || !slices.Contains(unitTypes, part[i:]) {
			continue
		}
		list = append(list, part)
		if !strings.HasPrefix(part, "user@") || len(list) == 2 {
			break // what is below is the unit's own
		}
	}
	return list
}

// Unit returns the last of Units, "" if there is none.
func Unit(cgroup string) string {
	if list := Units(cgroup); len(list) > 0 {
		return list[len(list)-1]
	}
	return ""
}

// idBytes is the length of a container's ID.
const idBytes = 64

// containerNames are the parts of a control group's path that are named after a container: its ID, alone or
// behind the name of what runs it (docker-ID.scope, libpod-ID.scope, cri-containerd-ID.scope, crio-ID), or LXC's
// and systemd-nspawn's names. The first group is what an engine's monitor of the container has before the ID
// (libpod-conmon-ID.scope, crio-conmon-ID.scope): the monitor runs outside of the container.
var containerNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?:^|[/:-])(conmon-)?([0-9a-f]{64})(?:\.scope)?(?:/|$)|/lxc\.payload\.([^/\n]+)|` +
			`/machine\.slice/(?:systemd-nspawn@|machine-)([^/\n]+?)\.(?:scope|service)(?:/|$)`)
})

// Container returns the container of a control group: its ID of 64 digits, or its name if it has none. It is ""
// for a control group that is no container's.
func Container(cgroup string) string {
	m := containerNames().FindStringSubmatch(cgroup)
	if m == nil || m[1] != "" {
		return ""
	}
	return m[2] + m[3] + m[4]
}

// ShortContainer is the first 12 digits of a container's ID, as docker ps shows it; of a name, all of it.
func ShortContainer(id string) string {
	if len(id) == idBytes {
		return id[:12]
	}
	return id
}

var podNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[/-])pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})` +
		`(?:\.slice)?(?:/|$)`)
})

// Pod returns the UID of the Kubernetes pod of a control group, "" if it is none's.
func Pod(cgroup string) string {
	m := podNames().FindStringSubmatch(cgroup)
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "_", "-")
}

// CgroupIn returns the control group that the text of /proc/PID/cgroup says (cgroups(7)): its path in the hierarchy of
// version 2, or, where that has the process in no group, in the one that systemd keeps, or in the first of version 1
// that names a container. It is "" if the text says none.
func CgroupIn(text []byte) string {
	const unified, byOther, bySystemd = "", 1, 2
	best, rank := "", 0
	for line := range bytes.Lines(text) {
		_, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{':'})
		controllers, name, found := bytes.Cut(rest, []byte{':'})
		if !found || len(name) == 0 || name[0] != '/' {
			continue
		}
		path := strings.TrimSuffix(string(name), " (deleted)")
		switch by := string(controllers); {
		case by == unified && path != "/":
			return path
		case by == unified && best == "":
			best = path
		case path == "/":
		case by == "name=systemd" && rank < bySystemd:
			best, rank = path, bySystemd
		case by != unified && rank < byOther && Container(path) != "": // others are what a controller is used for
			best, rank = path, byOther
		}
	}
	return best
}

// Place is where a process runs.
type Place struct {
	Cgroup    string // path of the control group
	Container string // the first 12 digits of its ID, or its name
	Unit      string // systemd's
	Pod       string // UID of Kubernetes'
}

// PlaceIn returns the place of a control group.
func PlaceIn(cgroup string) Place {
	return Place{Cgroup: cgroup, Container: ShortContainer(Container(cgroup)), Unit: Unit(cgroup),
		Pod: Pod(cgroup)}
}

// Compare orders places by the columns that tables show them in.
func (p Place) Compare(o Place) int {
	return cmp.Or(strings.Compare(p.Pod, o.Pod), strings.Compare(p.Container, o.Container),
		strings.Compare(p.Unit, o.Unit), strings.Compare(p.Cgroup, o.Cgroup))
}
