// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/internal/rundir"
)

// A Remote is a running iotape.
type Remote struct {
	Info
	client http.Client
	path   string
}

// Running returns those of this user, by process.
func Running(ctx context.Context) ([]*Remote, error) {
	var all []*Remote
	err := rundir.Each(suffix, func(path string) error {
		r := newRemote(path)
		err := r.Refresh(ctx)
		if err == nil {
			all = append(all, r)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for running tracers: %w", err)
	}
	slices.SortFunc(all, func(a, b *Remote) int { return a.PID - b.PID })
	return all, nil
}

func newRemote(path string) *Remote {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Remote{path: path,
		client: http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Refresh asks for the Info again.
func (r *Remote) Refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resp, err := r.do(ctx, http.MethodGet, "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r.Info = Info{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16*MaxBytes)).Decode(&r.Info); err != nil {
		return fmt.Errorf("ask process %d: %w", r.PID, err)
	}
	return nil
}

// Start starts a tracer.
func (r *Remote) Start(ctx context.Context, name string) (string, error) {
	return r.ask(ctx, http.MethodPost, name, "start", nil)
}

// Stop ends a tracer's recording, and returns when its tape is sealed.
func (r *Remote) Stop(ctx context.Context, name string) (string, error) {
	return r.ask(ctx, http.MethodPost, name, "stop", nil)
}

// Remove stops a tracer and takes it away.
func (r *Remote) Remove(ctx context.Context, name string) (string, error) {
	return r.ask(ctx, http.MethodDelete, name, "", nil)
}

// Add adds the tracers of a configuration.
func (r *Remote) Add(ctx context.Context, toml string) (string, error) {
	return r.ask(ctx, http.MethodPost, "", "", []byte(toml))
}

// Set changes a tracer.
func (r *Remote) Set(ctx context.Context, name string, c *Change) (string, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return r.ask(ctx, http.MethodPatch, name, "", b)
}

func (r *Remote) ask(ctx context.Context, method, name, what string, body []byte) (string, error) {
	path := ""
	for _, part := range []string{name, what} {
		if part != "" {
			path += "/" + url.PathEscape(part)
		}
	}
	resp, err := r.do(ctx, method, path, body)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var a Answer
	if err := json.NewDecoder(io.LimitReader(resp.Body, MaxBytes)).Decode(&a); err != nil {
		return "", fmt.Errorf("process %d answered: %s", r.PID, resp.Status)
	}
	if a.Error != "" {
		return a.Text, errors.New(a.Error)
	}
	return a.Text, nil
}

func (r *Remote) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://iotape/tracers"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(q)
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if err != nil {
		return nil, fmt.Errorf("reach the tracers of process %s: %w",
			strings.TrimSuffix(filepath.Base(r.path), suffix), err)
	}
	return resp, nil
}
