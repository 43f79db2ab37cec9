// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/iotape/iotape/record/capture"
)

// Owner is the user for whom root records: as whom the command runs, and to whom the
// tape belongs. Its methods do nothing when it is nil.
type Owner struct {
	name, home string
	cred       syscall.Credential
}

// FindOwner returns the user of --user, the one who called sudo, or nil.
func FindOwner(name string) (*Owner, error) {
	root := os.Geteuid() == 0
	if name == "" && root {
		if name = os.Getenv("SUDO_UID"); name == "" || name == "0" {
			return nil, nil
		}
	}
	if name == "" {
		return nil, nil
	}
	u, err := user.LookupId(name)
	if err != nil {
		u, err = user.Lookup(name)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no user %q", name)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	switch {
	case int(uid) == os.Geteuid():
		return nil, nil
	case !root:
		return nil, fmt.Errorf("only root can record as %s", u.Username)
	}
	o := &Owner{name: u.Username, home: u.HomeDir, cred: syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			o.cred.Groups = append(o.cred.Groups, uint32(n))
		}
	}
	return o, nil
}

// Apply has the command run as the user, in an environment that says so.
func (o *Owner) Apply(c *capture.Options) {
	if o == nil || c.Running() {
		return
	}
	c.Credential = &o.cred
	mine := map[string]string{"HOME": o.home, "USER": o.name, "LOGNAME": o.name}
	c.Env = slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		_, is := mine[name]
		return is || strings.HasPrefix(name, "SUDO_")
	})
	for name, value := range mine {
		c.Env = append(c.Env, name+"="+value)
	}
}

// Give makes files and directories, as far as they are there, the user's. Links are
// not followed.
func (o *Owner) Give(names ...string) {
	if o == nil {
		return
	}
	for _, name := range names {
		_ = filepath.WalkDir(name, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_ = os.Lchown(path, int(o.cred.Uid), int(o.cred.Gid)) // some file systems have no owners
			}
			return nil
		})
	}
}
