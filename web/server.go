// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/internal/httpguard"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/web/viewmodel"
)

// Report is a part of the page below the picture. It is computed once, after the page is
// there.
type Report struct {
	Name string // over its sections; "" if there is only one
	Load func(ctx context.Context) (*page.Page, error)
}

// Options for a Server.
type Options struct {
	// Title of the page.
	Title string
	// Token has to be in the first request, as ?token=, and is in a cookie then. It must
	// not be empty.
	Token string
	// Names by which the server may be asked, without the port, besides addresses and
	// "localhost": against pages that make a name of theirs lead here.
	Names   []string
	Reports []Report
}

// Limits of requests.
const (
	maxRunning  = 4 // at a time; others wait
	requestTime = 20 * time.Second
)

// Server answers requests for the page and its data.
type Server struct {
	scene   *viewmodel.Scene
	o       Options
	running chan struct{}
	page    string
	mux     *http.ServeMux
	guarded http.Handler

	mu      sync.Mutex
	working string
	ordered bool
	done    bool
	reports []reportState
}

type reportState struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
	html  string
}

// NewServer returns a Server, and an error if there is no token.
func NewServer(s *viewmodel.Scene, o *Options) (*Server, error) {
	if o.Token == "" {
		return nil, errors.New("a server needs a token")
	}
	x := &Server{scene: s, o: *o, running: make(chan struct{}, maxRunning), mux: http.NewServeMux(),
		reports: make([]reportState, len(o.Reports))}
	for i := range o.Reports {
		x.reports[i].Name = o.Reports[i].Name
	}
	guard := httpguard.Guard{Names: o.Names, Token: o.Token}
	x.guarded = guard.Wrap(x.mux)
	pic, err := picture(map[string]any{"about": s.About()}, true)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := (&page.Page{Title: o.Title}).HTML(&b, pic); err != nil {
		return nil, err
	}
	x.page = b.String()
	x.routes()
	return x, nil
}

// Prepare computes what takes its time: the order of events, then the reports. The page
// shows each as it comes.
func (x *Server) Prepare(ctx context.Context) {
	x.say("Finding out which events caused which …")
	_ = x.scene.Order() // what failed is in About, which the page shows
	x.mu.Lock()
	x.ordered = true
	x.mu.Unlock()
	for i, r := range x.o.Reports {
		if ctx.Err() != nil {
			return
		}
		x.say(strings.TrimSpace("Computing the report " + r.Name + " …"))
		p, err := r.Load(ctx)
		if err != nil {
			p = &page.Page{Sections: []page.Section{{ID: "error", Title: "No report",
				Blocks: []page.Block{page.Line(err.Error())}}}}
		}
		if i > 0 { // links within the page
			for k := range p.Sections {
				p.Sections[k].ID += fmt.Sprintf("-%d", i+1)
			}
		}
		html := p.Body()
		x.mu.Lock()
		x.reports[i].html, x.reports[i].Ready = html, true
		x.mu.Unlock()
	}
	x.mu.Lock()
	x.done = true
	x.mu.Unlock()
	x.say("")
}

func (x *Server) say(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.working = text
}

// ServeHTTP answers a request.
func (x *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { x.guarded.ServeHTTP(w, r) }

// answer is a handler that returns what is written as JSON.
type answer func(ctx context.Context, q query) (any, error)

func (x *Server) routes() {
	x.mux.HandleFunc("/{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(x.page))
	})
	for path, f := range map[string]answer{
		"about":    func(context.Context, query) (any, error) { return x.scene.About(), nil },
		"state":    x.state,
		"window":   x.window,
		"overview": func(ctx context.Context, q query) (any, error) { return x.scene.Overview(ctx, q.int("columns")) },
		"list":     x.list,
		"event":    func(_ context.Context, q query) (any, error) { return x.scene.Event(q.int("tape"), q.uint("seq")) },
		"content": func(_ context.Context, q query) (any, error) {
			return x.scene.Content(q.int("tape"), q.uint("seq"), q.int("index"), int64(q.uint("offset")))
		},
		"similar": func(ctx context.Context, q query) (any, error) {
			return x.scene.Similar(ctx, q.int("tape"), q.uint("seq"))
		},
		"way": func(ctx context.Context, q query) (any, error) {
			return x.scene.Way(ctx, q.int("tape"), q.uint("seq"))
		},
		"find": func(ctx context.Context, q query) (any, error) {
			return x.scene.Find(ctx, q.int("tape"), q.uint("from"), q.Get("filter"))
		},
		"sections": x.sections,
	} {
		x.mux.HandleFunc("/api/"+path, func(w http.ResponseWriter, r *http.Request) { x.serve(w, r, f) })
	}
}

func (x *Server) serve(w http.ResponseWriter, r *http.Request, f answer) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	select {
	case x.running <- struct{}{}:
		defer func() { <-x.running }()
	case <-ctx.Done():
		http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
		return
	}
	bad := false
	v, err := f(ctx, query{r.URL.Query(), &bad})
	var filter *predicate.Error
	switch {
	case bad || errors.Is(err, viewmodel.ErrWindow) || errors.As(err, &filter):
		text := "a number in the address is missing or wrong"
		if err != nil {
			text = err.Error()
		}
		http.Error(w, text, http.StatusBadRequest)
	case errors.Is(err, viewmodel.ErrNoEvent):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, context.DeadlineExceeded):
		http.Error(w, "it takes too long: ask for less", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		b, err := json.Marshal(v)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b)
	}
}

// query is the part of an address behind the question mark.
type query struct {
	url.Values
	bad *bool
}

func (q query) int(name string) int { return int(min(q.uint(name), 1<<31-1)) }

func (q query) uint(name string) uint64 {
	n, err := strconv.ParseUint(q.Get(name), 10, 63)
	if err != nil {
		*q.bad = true
	}
	return n
}

func (q query) signed(name string) int64 {
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil {
		*q.bad = true
	}
	return n
}

// view reads a window: rows are numbers, with + for all that is below.
func (q query) view() *viewmodel.Window {
	w := &viewmodel.Window{FromNS: q.signed("from"), ToNS: q.signed("to"), Columns: q.int("columns"),
		Arrows: q.Get("arrows") == "1"}
	if rows := q.Get("rows"); rows != "" {
		for text := range strings.SplitSeq(rows, ",") {
			number, all := strings.CutSuffix(text, "+")
			n, err := strconv.ParseUint(number, 10, 31)
			if err != nil {
				*q.bad = true
				break
			}
			w.Rows = append(w.Rows, viewmodel.RowRef{Row: int(n), All: all})
		}
	}
	return w
}

func (x *Server) window(ctx context.Context, q query) (any, error) {
	return x.scene.Window(ctx, q.view())
}

func (x *Server) list(ctx context.Context, q query) (any, error) {
	calls, more, err := x.scene.List(ctx, q.view())
	return map[string]any{"calls": calls, "more": more}, err
}

func (x *Server) state(context.Context, query) (any, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return map[string]any{"working": x.working, "ordered": x.ordered, "done": x.done,
		"reports": slices.Clone(x.reports)}, nil
}

func (x *Server) sections(_ context.Context, q query) (any, error) {
	i := q.int("report")
	x.mu.Lock()
	defer x.mu.Unlock()
	if i >= len(x.reports) || !x.reports[i].Ready {
		return nil, viewmodel.ErrNoEvent
	}
	return map[string]string{"html": x.reports[i].html}, nil
}
