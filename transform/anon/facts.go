// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
)

// facts maps what is said of where a process runs. Capabilities stay.
func (m *mapper) facts(b *event.Buf) {
	p := facts.Parse(b.Inline)
	for _, s := range [...]*string{&p.Exe, &p.Cwd, &p.Root, &p.Cgroup} {
		*s = m.path(*s)
	}
	for f, ids := range map[Field]*facts.IDs{UID: p.UID, GID: p.GID} {
		if ids == nil {
			continue
		}
		for _, n := range [...]*uint32{&ids.Real, &ids.Effective, &ids.Saved, &ids.FS} {
			*n = m.id(f, *n)
		}
	}
	for i := range p.Groups {
		p.Groups[i] = m.id(GID, p.Groups[i])
	}
	for i, n := range p.Namespaces {
		if n != 0 {
			p.Namespaces[i] = m.number(Inode, n)
		}
	}
	b.Inline = p.Append(nil)
	b.Len = int64(len(b.Inline))
}
