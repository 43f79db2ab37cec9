// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience is how long the other side may take for a line that needs no work.
const Patience = 5 * time.Second

// earlySuffix is that of a socket which does not listen yet.
const earlySuffix = "~"

// maxAnswer is the longest answer that Ask reads, in bytes.
const maxAnswer = 64 << 20

// maxRequest is the longest request that Serve reads, in bytes.
const maxRequest = 64 << 10

// socket is a listener whose file goes when it is closed.
type socket struct {
	*net.UnixListener
	path string
}

func (s *socket) Close() error {
	err := s.UnixListener.Close()
	if err == nil {
		_ = os.Remove(s.path)
	}
	return err
}

// Listen makes this process's socket: the file of the process's number and the suffix, which
// only this user and root can open. Close removes it.
//
// The file gets its name when the socket listens already. Each takes a file that refuses
// connections for one that a killed process left behind, and removes it.
func Listen(suffix string) (net.Listener, error) {
	dir, err := Make()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+suffix)
	early := path + earlySuffix
	_ = os.Remove(early) // of a process that had our number
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: early, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(early, 0o600); err == nil {
		err = os.Rename(early, path)
	}
	if err != nil {
		l.Close()
		_ = os.Remove(early)
		return nil, err
	}
	return &socket{l, path}, nil
}

// Each calls ask with the path of each socket with the suffix that is in a directory of this
// user's own. If ask reports that nobody listens there, Each removes the file.
func Each(suffix string, ask func(path string) error) error {
	for _, dir := range All() {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		if Check(dir) != nil {
			continue // not ours: nobody else's word counts
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), suffix) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			if err := ask(path); errors.Is(err, syscall.ECONNREFUSED) {
				_ = os.Remove(path) // its process was killed
			}
		}
	}
	return nil
}

// Serve answers connections, each in a goroutine of its own, until the listener is closed, and
// returns when all are answered. A connection has one request, a line of JSON that is decoded
// into a new Q, and gets what answer makes of it, as another.
func Serve[Q, A any](l net.Listener, answer func(*Q) *A) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, perhaps for a while
			time.Sleep(100 * time.Millisecond)
			continue
		}
		wg.Go(func() {
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(Patience))
			var q Q
			if json.NewDecoder(bufio.NewReader(io.LimitReader(conn, maxRequest))).Decode(&q) != nil {
				return
			}
			a := answer(&q)
			_ = conn.SetWriteDeadline(time.Now().Add(Patience))
			_ = json.NewEncoder(conn).Encode(a)
		})
	}
}

// Ask makes a request to the process that Serves at a path, and decodes the answer into a;
// limit is how long that may take, 0 for as long as it needs.
func Ask(ctx context.Context, path string, q, a any, limit time.Duration) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err = json.NewEncoder(conn).Encode(q); err == nil {
		err = json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(a)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == io.EOF {
		return fmt.Errorf("%s: no answer", path)
	}
	return err
}
