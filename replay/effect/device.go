// SPDX-License-Identifier: Apache-2.0

package effect

// Devices maps the device number that stat reports to the one that an open file is recorded
// with: btrfs gives each subvolume a number of its own, which its super block does not have.
// It learns from calls that have both. The zero value is not usable.
type Devices map[uint64]uint64

// Learn takes what stat said of an open file. It reports whether that is something new.
func (d Devices) Learn(s Stat, open Inode) bool {
	if s.Ino != open.Ino || s.Dev == open.Dev || open.Ino == 0 || d[s.Dev] == open.Dev {
		return false
	}
	d[s.Dev] = open.Dev
	return true
}

// Inode returns the file that stat reported, as an open file of it would be recorded.
func (d Devices) Inode(s Stat) Inode {
	if dev, ok := d[s.Dev]; ok {
		return Inode{dev, s.Ino}
	}
	return Inode{s.Dev, s.Ino}
}
