// SPDX-License-Identifier: Apache-2.0

// Package serve shows tapes in a browser: it makes the scene and the reports of tapes, and
// answers requests with package web until it is stopped.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package serve

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/internal/httpguard"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
	"github.com/iotape/iotape/web"
	"github.com/iotape/iotape/web/viewmodel"
)

// Options for Run.
type Options struct {
	Token    string                   // without it nothing is answered, see Token
	TLS      bool                     // the listener speaks it
	Names    []string                 // who asks for one of these hosts is answered, too
	Replays  []string                 // files with reports of replays in JSON, shown beside the tapes
	Progress func(done, total uint64) // of reading the tapes, in events; it may be nil
}

// Run shows tapes until ctx ends. ready is called with the address of the page.
func Run(ctx context.Context, ln net.Listener, tapes []*trace.Tape, x *Options, ready func(url string)) error {
	o := &web.Options{Token: x.Token, Names: slices.Clone(x.Names), Title: title(tapes)}
	for _, name := range x.Replays {
		p, err := replayed.ReadPage(name)
		if err != nil {
			return err
		}
		o.Reports = append(o.Reports, web.Report{Name: "Replayed: " + filepath.Base(name),
			Load: func(context.Context) (*page.Page, error) { return p, nil }})
	}
	o.Reports = append(o.Reports, Reports(tapes, len(x.Replays) > 0)...)
	if host, err := os.Hostname(); err == nil {
		o.Names = append(o.Names, host)
	}
	s, err := Scene(ctx, tapes, false, x.Progress)
	if err != nil {
		return err
	}
	defer s.Close()
	server, err := web.NewServer(s, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	prepared := make(chan struct{})
	go func() {
		defer close(prepared)
		server.Prepare(ctx)
	}()
	defer func() { stop(); <-prepared }() // it reads the tapes
	ready(x.url(ln))
	return answer(ctx, ln, server)
}

// Reports are what the page says of tapes below the picture. It begins with what the flow of
// the data between all of them shows. named is set if other reports are beside them.
func Reports(tapes []*trace.Tape, named bool) (list []web.Report) {
	o := suite.Options{CallName: stracetext.CallName}
	if len(tapes) > 1 {
		list = append(list, web.Report{Load: func(ctx context.Context) (*page.Page, error) {
			return suite.AllFindings(ctx, tapes), nil
		}})
		o.Sections = suite.OwnIDs()
	}
	for _, t := range tapes {
		r := web.Report{Load: func(ctx context.Context) (*page.Page, error) {
			p, _, err := suite.Collect(ctx, t, &o)
			return p, err
		}}
		if len(tapes) > 1 || named {
			r.Name = suite.TapeName(t)
		}
		list = append(list, r)
	}
	return list
}

// answer serves until the context ends.
func answer(ctx context.Context, ln net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if s.Shutdown(ending) != nil {
		s.Close()
	}
	<-failed
	return nil
}

// url is the address of the page.
func (x *Options) url(ln net.Listener) string {
	if ln.Addr().Network() == "unix" {
		return ln.Addr().String() + " /?token=" + url.QueryEscape(x.Token)
	}
	scheme := "http"
	if x.TLS {
		scheme = "https"
	}
	host := ln.Addr().String()
	if a := ln.Addr().(*net.TCPAddr); a.IP.IsUnspecified() {
		name := "localhost"
		if len(x.Names) > 0 {
			name = x.Names[0]
		}
		host = fmt.Sprintf("%s:%d", name, a.Port)
	}
	return scheme + "://" + host + "/?token=" + url.QueryEscape(x.Token)
}

// Token returns that of a file, or a random one if file is "".
func Token(file string) (string, error) {
	if file == "" {
		return rand.Text(), nil
	}
	return httpguard.ReadToken(file)
}

// title says what tapes are of.
func title(tapes []*trace.Tape) string {
	var names []string
	for _, t := range tapes {
		name := strings.Join(strings.Fields(strings.Join(t.Host(0).Command, " ")), " ")
		if len(tapes) > 1 { // their commands would not fit beside each other
			name = suite.TapeName(t)
		} else if name == "" {
			name = t.Name()
		}
		names = append(names, name)
	}
	const most = 200
	text := strings.Join(names, " · ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}

// Scene makes the picture of tapes. progress is told of the events that were read.
func Scene(
	ctx context.Context, tapes []*trace.Tape, inMemory bool, progress func(done, total uint64),
) (*viewmodel.Scene, error) {
	return viewmodel.Open(ctx, tapes, &viewmodel.Options{
		InMemory: inMemory,
		Progress: progress,
		Filter: func(t *trace.Tape, text string) (func(*event.Event) bool, error) {
			// Only the language itself: what else --filter takes reads files.
			g, err := predicate.New(text, slice.FilterOptions(t))
			if err != nil {
				return nil, err
			}
			return g.NewMatcher().Match, nil
		},
	})
}
