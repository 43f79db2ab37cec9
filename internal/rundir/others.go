// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// An Other is a socket of another user.
type Other struct {
	Path string
	PID  int    // of the process that listens, as the socket's name says
	UID  uint32 // the user who owns it
}

// boundSockets lists the sockets of this network namespace by the names that they were bound to.
const boundSockets = "/proc/net/unix"

// Others returns the sockets with the suffix that are in directories of other users, by path. Only root can Open them.
func Others(suffix string) ([]Other, error) {
	list, err := os.ReadFile(boundSockets)
	if err != nil {
		return nil, fmt.Errorf("look for sockets of other users: %w", err)
	}
	var all []Other
	for _, path := range boundTo(list, suffix) {
		var st unix.Stat_t
		if unix.Lstat(filepath.Dir(path), &st) != nil || int(st.Uid) == os.Geteuid() {
			continue
		}
		digits, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), suffix), "-")
		pid, err := strconv.Atoi(digits)
		if err != nil {
			continue
		}
		all = append(all, Other{path, pid, st.Uid})
	}
	return all, nil
}

// boundTo returns the paths of the sockets that Listen made with the suffix.
func boundTo(list []byte, suffix string) (paths []string) {
	for line := range bytes.Lines(list) {
		i := bytes.Index(line, []byte(" /")) // abstract addresses begin with @
		if i < 0 {
			continue
		}
		path := strings.TrimSuffix(string(line[i+1:]), "\n")
		if bound, early := strings.CutSuffix(path, earlySuffix); early && strings.HasSuffix(bound, suffix) {
			paths = append(paths, bound)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Open makes sure that the socket, and the directory that it is in, are its user's alone, and no links that lead
// elsewhere. It returns the path to Ask at, until close is called.
func (o *Other) Open() (path string, close func(), err error) {
	dir, err := unix.Open(filepath.Dir(o.Path), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: filepath.Dir(o.Path), Err: err}
	}
	var st, sock unix.Stat_t
	name := filepath.Base(o.Path)
	if err = unix.Fstat(dir, &st); err == nil {
		err = unix.Fstatat(dir, name, &sock, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil && (st.Uid != o.UID || st.Mode&0o077 != 0 || sock.Uid != o.UID ||
		sock.Mode&unix.S_IFMT != unix.S_IFSOCK) {
		err = fmt.Errorf("it is not a socket of user %d alone", o.UID)
	}
	if err != nil {
		unix.Close(dir)
		return "", nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir, name), func() { unix.Close(dir) }, nil
}
