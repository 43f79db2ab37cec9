// SPDX-License-Identifier: Apache-2.0

package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/web"
	"github.com/iotape/iotape/web/viewmodel"
	"github.com/iotape/iotape/web/viewmodel/viewmodeltest"
)

const token = "0123456789abcdef"

// serve starts a server for tapes, with everything computed.
func serve(t *testing.T, tapes ...*trace.Tape) *httptest.Server {
	t.Helper()
	s := openScene(t, tapes...)
	o := &web.Options{Title: "test", Token: token, Names: []string{"box.example"}}
	for _, tape := range tapes {
		o.Title = strings.Join(tape.Host(0).Command, " ")
		o.Reports = append(o.Reports,
			web.Report{Name: tape.Name(), Load: func(ctx context.Context) (*page.Page, error) {
				p, _, err := suite.Collect(ctx, tape, nil)
				return p, err
			}})
	}
	return started(t, s, o)
}

// started starts a server, with everything computed.
func started(t *testing.T, s *viewmodel.Scene, o *web.Options) *httptest.Server {
	t.Helper()
	x, err := web.NewServer(s, o)
	if err != nil {
		t.Fatal(err)
	}
	x.Prepare(t.Context())
	server := httptest.NewServer(x)
	t.Cleanup(server.Close)
	return server
}

func openScene(t *testing.T, tapes ...*trace.Tape) *viewmodel.Scene {
	t.Helper()
	s, err := viewmodel.Open(t.Context(), tapes,
		&viewmodel.Options{Filter: func(_ *trace.Tape, text string) (func(*event.Event) bool, error) {
			g, err := predicate.New(text, nil)
			if err != nil {
				return nil, err
			}
			return g.NewMatcher().Match, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// get asks with the token, unless change says otherwise.
func get(t *testing.T, server *httptest.Server, path string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(r)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(b)
}

// Who may ask: only who has the token, by a name of the server's own, from its own page.
func TestWhoMayAsk(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 5, "db"))
	for _, c := range []struct {
		name   string
		path   string
		change func(*http.Request)
		status int
	}{
		{"with the token", "/api/about", nil, 200},
		{"without", "/api/about", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"page without", "/", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"nothing without", "/api/nothing", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"wrong token", "/api/about", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
		{"empty token", "/?token=", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"token for the API", "/api/about?token=" + token, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"another name", "/api/about", func(r *http.Request) { r.Host = "evil.example" }, 421},
		{"another name with a port", "/api/about", func(r *http.Request) { r.Host = "evil.example:80" }, 421},
		{"a name that ends in ours", "/api/about", func(r *http.Request) { r.Host = "evil-box.example" }, 421},
		{"no name", "/api/about", func(r *http.Request) { r.Host = ":1" }, 421},
		{"its name", "/api/about", func(r *http.Request) { r.Host = "BOX.example:99" }, 200},
		{"localhost", "/api/about", func(r *http.Request) { r.Host = "localhost:99" }, 200},
		{"IPv6", "/api/about", func(r *http.Request) { r.Host = "[::1]:99" }, 200},
		{"another origin", "/api/about", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"no origin", "/api/about", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"its origin", "/api/about", func(r *http.Request) { r.Header.Set("Origin", server.URL) }, 200},
		{"another site", "/api/about", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"the same site, another port", "/api/about", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		{"POST", "/api/about", func(r *http.Request) { r.Method = http.MethodPost }, 405},
	} {
		answer, body := get(t, server, c.path, c.change)
		if answer.StatusCode != c.status {
			t.Errorf("%s: %s", c.name, answer.Status)
		}
		if c.status != 200 && (len(body) > 200 || strings.Contains(body, "db")) {
			t.Errorf("%s: it says %q", c.name, body)
		}
		if answer.Header.Get("X-Content-Type-Options") != "nosniff" ||
			answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", c.name, answer.Header)
		}
	}
	first, _ := get(t, server, "/?token="+token, func(r *http.Request) { r.Header.Del("Authorization") })
	if first.StatusCode != http.StatusSeeOther || first.Header.Get("Location") != "/" || len(first.Cookies()) != 1 {
		t.Fatalf("first: %s %v", first.Status, first.Header)
	}
	cookie := first.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || strings.Contains(cookie.String(), token) {
		t.Errorf("cookie: %v", cookie)
	}
	second, body := get(t, server, "/", func(r *http.Request) { r.Header.Del("Authorization"); r.AddCookie(cookie) })
	if second.StatusCode != 200 || !strings.Contains(body, "<canvas") || strings.Contains(body, token) {
		t.Errorf("second: %s", second.Status)
	}
}

// No address leads to a file, in a tape or elsewhere.
func TestNoFiles(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 5, "db"))
	for _, path := range []string{
		"/manifest.json", "/../manifest.json", "/api/../manifest.json", "/%2e%2e/manifest.json", "/..%2fmanifest.json", "/etc/passwd", "//etc/passwd",
		"/api/../../../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/ui/main.js", "/web/ui/main.js", "/api/", "/api/window/../about/x", "/debug/pprof/",
		"/api/content?tape=../x&seq=1&index=0&offset=0", "/api/content?tape=0&seq=1&index=0&offset=-5", "/api/event?tape=0&seq=../../etc/passwd",
		"/api/event?tape=99999999999999999999&seq=1", "/api/sections?report=../../etc/passwd", "/api/find?tape=0&from=0&filter=dfstrace:/etc/passwd",
	} {
		for range 3 { // redirects to a cleaned address are followed, by hand
			answer, body := get(t, server, path, nil)
			if strings.Contains(body, "root:") || strings.Contains(body, "iotape.tape") ||
				strings.Contains(body, "class View") {
				t.Errorf("%s gives %.80q", path, body)
			}
			if answer.StatusCode == 200 {
				t.Errorf("%s: %s %.80q", path, answer.Status, body)
			}
			to := answer.Header.Get("Location")
			if to == "" || answer.StatusCode/100 != 3 {
				break
			}
			u, err := url.Parse(to)
			if err != nil || u.Host != "" {
				t.Errorf("%s leads to %s", path, to)
				break
			}
			path = u.RequestURI()
			if path == "/" || path == "/api/about" {
				break
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	server := serve(t, viewmodeltest.Tape(t, 100, "db"))
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/api/about", 200, `"kind":"thread"`},
		{"/api/state", 200, `"done":true`},
		{"/api/window?from=0&to=100000&columns=10&rows=0,1,3%2B&arrows=1", 200, `"cells":[`},
		{"/api/window?from=0&to=100000&columns=0&rows=0", 400, "columns"},
		{"/api/window?from=0&to=100000&columns=5000&rows=0", 400, "columns"},
		{"/api/window?from=0&columns=10&rows=0", 400, "a window has"},
		{"/api/window?from=0&to=100&columns=10&rows=x", 400, "missing or wrong"},
		{"/api/window?from=0&to=100&columns=10&rows=77", 400, "rows that there are"},
		{"/api/window?from=0&to=100&columns=10&rows=" + strings.Repeat("0,", 300) + "0", 400, "256 rows"},
		{"/api/overview?columns=100", 200, `"row":-1`},
		{"/api/overview?columns=0", 400, "columns"},
		{"/api/list?from=0&to=100000&columns=1&rows=0", 200, `"calls":[{`},
		{"/api/event?tape=0&seq=2", 200, `"op":"write"`},
		{"/api/event?tape=0&seq=99999", 404, "no such event"},
		{"/api/event?tape=1&seq=0", 404, "no such event"},
		{"/api/event?tape=0", 400, "missing"},
		{"/api/content?tape=0&seq=2&index=0&offset=0", 200, `"total":4096`},
		{"/api/similar?tape=0&seq=2", 200, `"equal":true`},
		{"/api/find?tape=0&from=0&filter=failed", 200, `ENOENT`},
		{"/api/find?tape=0&from=0&filter=op+%3D", 400, ""},
		{"/api/sections?report=0", 200, `section id=`},
		{"/api/sections?report=1", 404, ""},
	} {
		answer, body := get(t, server, c.path, nil)
		if answer.StatusCode != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %s %.200q, want %d and %q", c.path, answer.Status, body, c.status, c.want)
		}
		if c.status == 200 && (answer.Header.Get("Content-Type") != "application/json" || !json.Valid([]byte(body))) {
			t.Errorf("%s: no JSON", c.path)
		}
	}
}

// A report in a file is bounded, whatever there is to show, and its policy lets nothing in.
func TestFile(t *testing.T) {
	tape := viewmodeltest.Tape(t, 5000, viewmodeltest.Hostile)
	s := openScene(t, tape)
	if err := s.Order(); err != nil {
		t.Fatal(err)
	}
	p, _, err := suite.Collect(t.Context(), tape, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := web.WriteFile(&b, p, s); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 6<<20 {
		t.Errorf("%d bytes", b.Len())
	}
	text := b.String()
	if n := strings.Count(text, "<script"); n != 2 {
		t.Errorf("%d scripts", n)
	}
	for _, bad := range []string{"http:", "https:", "<img", "connect-src", "unsafe"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is in it", bad)
		}
	}
	if !strings.Contains(text, "default-src &#39;none&#39;") && !strings.Contains(text, "default-src 'none'") {
		t.Error("no policy")
	}
}

func TestToken(t *testing.T) {
	if _, err := web.NewServer(openScene(t, viewmodeltest.Tape(t, 1, "db")), &web.Options{}); err == nil {
		t.Error("a server without a token")
	}
}
