// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/internal/rundir"
)

// Info says what a running iotape records.
type Info struct {
	PID     int            `json:"pid"`
	Name    string         `json:"name"`
	Config  string         `json:"config"` // the file, as it was named
	Dir     string         `json:"dir"`    // the working directory, where tapes go
	Tracers []TracerStatus `json:"tracers"`
}

// TracerStatus says what a tracer is and has.
type TracerStatus struct {
	Name       string    `json:"name"`
	State      string    `json:"state"` // waiting, running, sealing, stopped or failed
	Input      string    `json:"input"`
	Filter     string    `json:"filter"` // "": all
	Driver     string    `json:"driver"` // stream or aggregate
	Content    string    `json:"content"`
	Omit       []string  `json:"omit"`
	Resolution string    `json:"resolution"`
	Layers     []string  `json:"layers"`
	Output     string    `json:"output"`
	Recordings int       `json:"recordings"` // begun so far
	Since      time.Time `json:"since,omitzero"`
	Bytes      uint64    `json:"bytes"` // of records, of the present recording or the last
	Lost       uint64    `json:"lost"`  // records
	Error      string    `json:"error,omitempty"`
	Last       string    `json:"last,omitempty"` // what came of the last recording
}

// Change is what is to be changed of a tracer; nil stays as it is.
type Change struct {
	Filter  *string   `json:"filter,omitempty"` // "": all
	Content *string   `json:"content,omitempty"`
	Omit    *[]string `json:"omit,omitempty"`
	Tape    *string   `json:"tape,omitempty"` // begins a new recording, as To and Pipe do
	To      *string   `json:"to,omitempty"`
	Pipe    *string   `json:"pipe,omitempty"` // a chain
}

// Answer is what came of a request.
type Answer struct {
	Text  string `json:"text,omitempty"` // for people, perhaps of several lines
	Error string `json:"error,omitempty"`
}

// Handler does what is asked for, also if who asked goes away. Its methods are called from
// several goroutines. Their texts are for people.
type Handler interface {
	Info() Info
	Start(name string) (string, error)
	Stop(name string) (string, error)
	Add(toml string) (string, error)
	Remove(name string) (string, error)
	Set(name string, c *Change) (string, error)
}

const (
	// MaxBytes is the longest request.
	MaxBytes = 1 << 20
	// patience is how long a peer may take for the head of a request, and for its body.
	patience = 5 * time.Second
	suffix   = ".tracers"
)

// A Server answers requests.
type Server struct {
	server *http.Server
	ended  sync.WaitGroup
}

// Listen makes this process's socket and serves it.
func Listen(h Handler) (*Server, error) {
	l, err := rundir.Listen(suffix)
	if err != nil {
		return nil, fmt.Errorf("listen for iotape tracers: %w", err)
	}
	s := &Server{server: &http.Server{
		Handler: routes(h), ReadHeaderTimeout: patience, ReadTimeout: 2 * patience, IdleTimeout: patience,
		MaxHeaderBytes: 16 << 10,
	}}
	s.ended.Go(func() { _ = s.server.Serve(&checked{l, uint32(os.Geteuid())}) })
	return s, nil
}

// Close takes the socket away, lets requests that are under way end, and returns.
func (s *Server) Close() error {
	err := s.server.Shutdown(context.Background())
	s.ended.Wait()
	return err
}

// checked is a listener that takes connections of root and of one user alone.
type checked struct {
	net.Listener
	uid uint32
}

func (l *checked) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(conn); err == nil && (uid == 0 || uid == l.uid) {
			return conn, nil
		}
		conn.Close()
	}
}

// peer returns the user at the other end.
func peer(conn net.Conn) (uid uint32, err error) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a Unix socket")
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if ctlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctlErr != nil {
		return 0, ctlErr
	}
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

func routes(h Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tracers", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, h.Info()) })
	mux.HandleFunc("POST /tracers", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBytes))
		if err != nil {
			outcome(w, "", err)
			return
		}
		text, err := h.Add(string(b))
		outcome(w, text, err)
	})
	mux.HandleFunc("POST /tracers/{name}/start", func(w http.ResponseWriter, r *http.Request) {
		text, err := h.Start(r.PathValue("name"))
		outcome(w, text, err)
	})
	mux.HandleFunc("POST /tracers/{name}/stop", func(w http.ResponseWriter, r *http.Request) {
		text, err := h.Stop(r.PathValue("name"))
		outcome(w, text, err)
	})
	mux.HandleFunc("DELETE /tracers/{name}", func(w http.ResponseWriter, r *http.Request) {
		text, err := h.Remove(r.PathValue("name"))
		outcome(w, text, err)
	})
	mux.HandleFunc("PATCH /tracers/{name}", func(w http.ResponseWriter, r *http.Request) {
		var c Change
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxBytes))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&c); err != nil {
			outcome(w, "", fmt.Errorf("what to change: %w", err))
			return
		}
		text, err := h.Set(r.PathValue("name"), &c)
		outcome(w, text, err)
	})
	return mux
}

func outcome(w http.ResponseWriter, text string, err error) {
	if err != nil {
		answer(w, http.StatusUnprocessableEntity, &Answer{Text: text, Error: err.Error()})
		return
	}
	answer(w, http.StatusOK, &Answer{Text: text})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
