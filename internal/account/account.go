// SPDX-License-Identifier: Apache-2.0

// Package account names users and groups.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package account

import (
	"os/user"
	"strconv"
)

// User returns the name of a user, "" if the machine knows none.
func User(uid uint32) string {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return ""
	}
	return u.Username
}

// UserText returns the name of a user, or "user 7" if the machine knows none.
func UserText(uid uint32) string {
	if name := User(uid); name != "" {
		return name
	}
	return "user " + strconv.FormatUint(uint64(uid), 10)
}

// GroupText returns the name of a group behind "group".
func GroupText(gid uint32) string {
	number := strconv.FormatUint(uint64(gid), 10)
	if g, err := user.LookupGroupId(number); err == nil {
		return "group " + g.Name
	}
	return "group " + number
}
