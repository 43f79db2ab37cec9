// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/iotape/iotape/internal/rundir"
)

// Info says what a running flight recorder is.
type Info struct {
	PID     int      `json:"pid"`
	Name    string   `json:"name"` // of its dumps, without number
	Command []string `json:"command"`
	Dir     string   `json:"dir"`     // its working directory, where dumps go
	Bytes   int64    `json:"bytes"`   // in memory
	BackNS  int64    `json:"back_ns"` // how far that reaches back
	Dumps   int      `json:"dumps"`   // made so far
}

// request and answer are one line of JSON each.
type request struct {
	Do string `json:"do"` // "info" or "dump"
}

type answer struct {
	Info  *Info  `json:"info,omitempty"`
	Tape  string `json:"tape,omitempty"` // absolute path of the dump
	Error string `json:"error,omitempty"`
}

// patience is how long the other side may take for a line that needs no work.
const patience = 5 * time.Second

// A Control listens for requests to a flight recorder.
type Control struct {
	l    net.Listener
	path string
	wg   sync.WaitGroup
}

// Listen makes this process's socket. info and dump are called when they are asked
// for, dump perhaps more than once at a time; it returns the dump's path.
func Listen(info func() Info, dump func() (string, error)) (*Control, error) {
	dir, err := rundir.Make()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid())+socketSuffix)
	_ = os.Remove(path) // of a process that had our number
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for iotape dump: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen for iotape dump: %w", err)
	}
	c := &Control{l: l, path: path}
	c.wg.Go(func() { c.serve(info, dump) })
	return c, nil
}

// Close removes the socket, and returns when every request has its answer.
func (c *Control) Close() error {
	err := c.l.Close() // removes the file
	c.wg.Wait()
	return err
}

func (c *Control) serve(info func() Info, dump func() (string, error)) {
	for {
		conn, err := c.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, perhaps for a while
			time.Sleep(100 * time.Millisecond)
			continue
		}
		c.wg.Go(func() {
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			var q request
			if json.NewDecoder(bufio.NewReader(&limited{conn, 4096})).Decode(&q) != nil {
				return
			}
			var a answer
			switch q.Do {
			case "info":
				i := info()
				a.Info = &i
			case "dump":
				var err error
				if a.Tape, err = dump(); err != nil {
					a.Error = err.Error()
				}
			default:
				a.Error = fmt.Sprintf("request %q is not known to this version of iotape", q.Do)
			}
			_ = conn.SetWriteDeadline(time.Now().Add(patience))
			_ = json.NewEncoder(conn).Encode(&a)
		})
	}
}

// limited reads no more than n bytes.
type limited struct {
	net.Conn
	n int
}

func (l *limited) Read(b []byte) (int, error) {
	if l.n <= 0 {
		return 0, errors.New("request is too long")
	}
	n, err := l.Conn.Read(b[:min(len(b), l.n)])
	l.n -= n
	return n, err
}

// A Remote is a flight recorder that runs in another process.
type Remote struct {
	Info
	path string
}

// Running returns the flight recorders of this user that run, by process.
func Running(ctx context.Context) ([]*Remote, error) {
	var all []*Remote
	for _, dir := range rundir.All() {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for flight recorders: %w", err)
		}
		if rundir.Check(dir) != nil {
			continue // not ours: nobody else's word counts
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), socketSuffix) {
				continue
			}
			r := &Remote{path: filepath.Join(dir, e.Name())}
			a, err := r.ask(ctx, "info", patience)
			if errors.Is(err, syscall.ECONNREFUSED) {
				_ = os.Remove(r.path) // its process was killed
			}
			if err == nil && a.Info != nil {
				r.Info = *a.Info
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Remote) int { return a.PID - b.PID })
	return all, nil
}

// Dump asks for a dump, waits for it, and returns the tape's path.
func (r *Remote) Dump(ctx context.Context) (string, error) {
	a, err := r.ask(ctx, "dump", 0)
	if err != nil {
		return "", err
	}
	if a.Error != "" {
		return "", errors.New(a.Error)
	}
	return a.Tape, nil
}

// ask makes one request; limit is how long that may take, 0 for as long as it needs.
func (r *Remote) ask(ctx context.Context, what string, limit time.Duration) (*answer, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", r.path)
	if err != nil {
		return nil, fmt.Errorf("reach the flight recorder: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	a := &answer{}
	if err = json.NewEncoder(conn).Encode(request{Do: what}); err == nil {
		err = json.NewDecoder(conn).Decode(a)
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("ask the flight recorder: %w", err)
	}
	return a, nil
}

const socketSuffix = ".sock"
