package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/iotape/iotape/analyze/replayed"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
	"github.com/iotape/iotape/web"
	"github.com/iotape/iotape/web/viewmodel"
)

// serving is what to show, and to whom.
type serving struct {
	listen    listenFlags
	address   string
	tokenFile string
	names     []string
	replays   []string
}

func newServe(c *console) *cobra.Command {
	x := serving{listen: listenFlags{risk: "whoever sees a request can then read the tapes"}}
	cmd := &cobra.Command{
		Use:   "serve TAPE...",
		Short: "Show tapes in a browser: what ran when, every call, what caused it, and all reports",
		Long: `Serve prints the address of a page with what TAPEs have, and answers it until it is
interrupted. The page has a picture of all calls by thread over time, which can be zoomed
from the whole to one call, with arrows for causes; of a call all fields, its content, and
calls with similar content; and below the sections of iotape report.

The address has a token without which nothing is answered: a random one, or that of
--token-file. Without --listen only this machine is listened to. Others can be let in with
tls://, or by ssh -L.

What it takes to draw is kept in each tape, in a file named timeline, if that can be
written; the next time the page is there at once.`,
		Example: `  iotape serve db.tape
  iotape serve client.tape server.tape
  iotape serve db.tape --replay again.json        # of iotape replay --json
  iotape serve db.tape --listen tls://0.0.0.0:8443 --tls-cert c.pem --tls-key k.pem --name box.example.org`,
		Args:        cobra.MinimumNArgs(1),
		Annotations: exits("0  interrupted", "2  could not be done"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var tapes []*trace.Tape
			for _, name := range args {
				t, err := openTape(cmd.Context(), name)
				if err != nil {
					return err
				}
				defer t.Close()
				tapes = append(tapes, t)
			}
			err := x.run(cmd.Context(), c, tapes)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	f := cmd.Flags()
	x.listen.add(cmd)
	f.StringVar(&x.address, "listen", "127.0.0.1:0", "answer at `ADDRESS`: HOST:PORT, tls://HOST:PORT or unix:PATH; port 0 is any that is free")
	f.StringVar(&x.tokenFile, "token-file", "", "ask for the token in `FILE`, of 16 characters and more")
	f.StringSliceVar(&x.names, "name", nil, "answer who asks for `HOST`, too; addresses, localhost and the machine's name always work")
	f.StringArrayVar(&x.replays, "replay", nil, "show a replay beside the recording: `FILE` is what iotape replay --json or iotape compare --json printed; repeatable")
	return cmd
}

func (x *serving) run(ctx context.Context, c *console, tapes []*trace.Tape) error {
	token, err := x.token()
	if err != nil {
		return err
	}
	o := &web.Options{Token: token, Names: x.names, Title: title(tapes)}
	for _, name := range x.replays {
		p, err := replayed.ReadPage(name)
		if err != nil {
			return err
		}
		o.Reports = append(o.Reports, web.Report{Name: "Replayed: " + filepath.Base(name), Load: func(context.Context) (*page.Page, error) { return p, nil }})
	}
	for _, t := range tapes {
		r := web.Report{Load: func(ctx context.Context) (*page.Page, error) {
			p, _, err := suite.Collect(ctx, t, &suite.Options{CallName: stracetext.CallName})
			return p, err
		}}
		if len(tapes)+len(x.replays) > 1 {
			r.Name = t.Name()
		}
		o.Reports = append(o.Reports, r)
	}
	if host, err := os.Hostname(); err == nil {
		o.Names = append(o.Names, host)
	}
	ln, err := x.listen.listen(ctx, x.address)
	if err != nil {
		return err
	}
	defer ln.Close()
	s, err := openScene(ctx, c, tapes, false)
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
	fmt.Fprintln(c.out, x.url(ln, token))
	return answer(ctx, ln, server)
}

// answer serves until the context ends.
func answer(ctx context.Context, ln net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
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
func (x *serving) url(ln net.Listener, token string) string {
	if ln.Addr().Network() == "unix" {
		return ln.Addr().String() + " /?token=" + url.QueryEscape(token)
	}
	scheme := "http"
	if strings.HasPrefix(x.address, "tls://") {
		scheme = "https"
	}
	host := ln.Addr().String()
	if a := ln.Addr().(*net.TCPAddr); a.IP.IsUnspecified() {
		name := "localhost"
		if len(x.names) > 0 {
			name = x.names[0]
		}
		host = fmt.Sprintf("%s:%d", name, a.Port)
	}
	return scheme + "://" + host + "/?token=" + url.QueryEscape(token)
}

// Tokens of a file have at least minToken bytes.
const (
	minToken = 16
	maxToken = 4096
)

// token returns that of the file, or a random one.
func (x *serving) token() (string, error) {
	if x.tokenFile == "" {
		return rand.Text(), nil
	}
	f, err := os.Open(x.tokenFile)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) < minToken || len(b) > maxToken {
		return "", usageError{fmt.Errorf("%s: a token has %d to %d characters", x.tokenFile, minToken, maxToken)}
	}
	return string(b), nil
}

// title says what tapes are of.
func title(tapes []*trace.Tape) string {
	var names []string
	for _, t := range tapes {
		name := strings.Join(t.Host(0).Command, " ")
		if name == "" {
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

// openScene makes the picture of tapes.
func openScene(ctx context.Context, c *console, tapes []*trace.Tape, inMemory bool) (*viewmodel.Scene, error) {
	progress := c.progress(report.Count)
	defer progress.Done()
	return viewmodel.Open(ctx, tapes, &viewmodel.Options{
		InMemory: inMemory,
		Progress: func(done, total uint64) { progress.Update("reading", int64(done), int64(total)) },
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
