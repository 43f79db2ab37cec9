// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/replay/effect"
	"github.com/iotape/iotape/replay/result"
)

// privateTarget keeps other users out of the target while it is filled: a tape may make files there
// that all can read, write or run. The calls of several users go through the target's directory;
// as root, they pass by a group that has no other member.
type privateTarget struct {
	dir      *os.File
	first    unix.Stat_t // before
	set      uint32      // the mode that was set last; 0: none was
	group    uint32      // 0: none
	refused  error
	restored bool
}

const permissions = 0o7777

// openPrivate closes a target to others. If that is refused, the replay goes on.
func openPrivate(into string) (*privateTarget, error) {
	dir, err := os.OpenFile(into, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the target: %w", err)
	}
	p := &privateTarget{dir: dir}
	if err := unix.Fstat(p.fd(), &p.first); err != nil {
		dir.Close()
		return nil, fmt.Errorf("look at the target: %w", err)
	}
	p.chmod(0o700)
	return p, nil
}

func (p *privateTarget) fd() int { return int(p.dir.Fd()) }

func (p *privateTarget) chmod(mode uint32) {
	if err := unix.Fchmod(p.fd(), mode); err != nil {
		p.refused = fmt.Errorf("chmod: %w", err)
		return
	}
	p.set = mode
}

// beginCalls lets the users of recorded calls in: they have the permissions that all had. It is
// called when the initial tree is made, which may have set the target's attributes.
func (p *privateTarget) beginCalls() {
	var now unix.Stat_t
	if p.set == 0 || unix.Fstat(p.fd(), &now) != nil {
		return
	}
	mode := p.first.Mode
	if now.Mode&permissions != p.set {
		mode = now.Mode
	}
	p.first = now
	p.first.Mode = mode
	if os.Geteuid() != 0 {
		p.chmod(mode&0o1700 | 0o700)
		return
	}
	group := unusedGroup()
	if err := unix.Fchown(p.fd(), -1, int(group)); err != nil {
		p.refused = fmt.Errorf("chown: %w", err)
		p.chmod(mode & permissions)
		return
	}
	p.group = group
	p.chmod(mode&0o1700 | 0o700 | mode&7<<3)
}

// unusedGroup returns a group that nobody has: among those numbers that neither users nor
// containers get.
func unusedGroup() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return 0xe0000000 | binary.LittleEndian.Uint32(b[:])>>4
}

// inode returns which file the target is, if its attributes are not what the calls expect.
func (p *privateTarget) inode() (id effect.Inode) {
	if p.set != 0 {
		id = effect.Inode{Dev: p.first.Dev, Ino: p.first.Ino}
	}
	return id
}

// restore gives the target the attributes that it had, but for those that the calls changed.
func (p *privateTarget) restore() {
	if p.restored {
		return
	}
	p.restored = true
	defer p.dir.Close()
	var now unix.Stat_t
	if p.set == 0 || unix.Fstat(p.fd(), &now) != nil {
		return
	}
	if p.group != 0 && now.Gid == p.group {
		_ = unix.Fchown(p.fd(), -1, int(p.first.Gid)) // as root, which changed it
	}
	if now.Mode&permissions == p.set {
		_ = unix.Fchmod(p.fd(), p.first.Mode&permissions)
	}
}

// confinement says whether the target is closed.
func (p *privateTarget) confinement() (c result.Confinement) {
	const name = "private target"
	if p.refused != nil {
		c.Missing = append(c.Missing, fmt.Sprintf("%s (%v)", name, p.refused))
	} else {
		c.InForce = append(c.InForce, name)
	}
	return c
}
