// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
)

// Summary is what --json prints of a Process, with what follows from them. Fields are only ever added.
type Summary struct {
	Exe       string `json:"exe,omitempty"`
	Cwd       string `json:"cwd,omitempty"`
	Root      string `json:"root,omitempty"` // if it is not the recorder's
	Cgroup    string `json:"cgroup,omitempty"`
	Unit      string `json:"unit,omitempty"`      // of systemd
	Container string `json:"container,omitempty"` // its ID, or its name if it has none
	Pod       string `json:"pod,omitempty"`       // UID of the Kubernetes pod

	UIDs       []uint32          `json:"uids,omitempty"` // real, effective, saved, of file-system access
	GIDs       []uint32          `json:"gids,omitempty"`
	Groups     []uint32          `json:"groups,omitempty"`     // supplementary
	Caps       string            `json:"caps,omitempty"`       // effective capabilities: a bit each, hexadecimal
	Namespaces map[string]uint64 `json:"namespaces,omitempty"` // inode numbers by name

	Variables *int     `json:"variables,omitempty"` // of the environment, if that is known
	Env       []string `json:"env,omitempty"`       // names, or NAME=VALUE as recorded
}

// Summary returns the facts for --json.
func (f *Process) Summary() *Summary {
	s := &Summary{Exe: f.Exe, Cwd: f.Cwd, Root: f.Root, Cgroup: f.Cgroup,
		Unit: Unit(f.Cgroup), Container: Container(f.Cgroup), Pod: Pod(f.Cgroup),
		UIDs: f.UID.list(), GIDs: f.GID.list(), Groups: f.Groups}
	if f.Caps != nil {
		s.Caps = fmt.Sprintf("%016x", *f.Caps)
	}
	for i, n := range f.Namespaces {
		if n != 0 {
			if s.Namespaces == nil {
				s.Namespaces = map[string]uint64{}
			}
			s.Namespaces[Namespaces[i]] = n
		}
	}
	return s
}

// WithEnv adds the environment. With count it is only counted.
func (s *Summary) WithEnv(env []string, count bool) {
	n := len(env)
	s.Variables = &n
	if !count {
		s.Env = env
	}
}

func (i *IDs) list() []uint32 {
	if i == nil {
		return nil
	}
	return []uint32{i.Real, i.Effective, i.Saved, i.FS}
}

// Place returns in a word where the process runs: its container, or else its unit, or else its control group.
func (f *Process) Place() string {
	if id := Container(f.Cgroup); id != "" {
		return "container " + ShortContainer(id)
	}
	if unit := Unit(f.Cgroup); unit != "" {
		return "unit " + unit
	}
	if strings.Trim(f.Cgroup, "/") != "" {
		return "cgroup " + f.Cgroup
	}
	return ""
}
