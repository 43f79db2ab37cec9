// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestWrap asks as browsers, other sites' pages and programs do.
func TestWrap(t *testing.T) {
	const token = "0123456789abcdef"
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	open, closed := (&Guard{Names: []string{"db7"}}).Wrap(answer), (&Guard{Token: token}).Wrap(answer)
	first := httptest.NewRecorder()
	closed.ServeHTTP(first, httptest.NewRequest("GET", "http://localhost/?token="+token, nil))
	cookie := first.Result().Cookies()[0]
	for _, c := range []struct {
		name    string
		handler http.Handler
		method  string
		url     string
		header  map[string]string
		want    int
	}{
		{"by address", open, "GET", "http://127.0.0.1:7073/x", nil, http.StatusTeapot},
		{"by IPv6 address", open, "GET", "http://[::1]:7073/x", nil, http.StatusTeapot},
		{"localhost", open, "HEAD", "http://localhost/x", nil, http.StatusTeapot},
		{"own name", open, "GET", "http://DB7:80/x", nil, http.StatusTeapot},
		{"a name that leads here", open, "GET", "http://evil.example/x", nil, http.StatusMisdirectedRequest},
		{"another site's script", open, "GET", "http://localhost/x", map[string]string{"Origin": "http://evil.example"},
			http.StatusForbidden},
		{"another site's picture", open, "GET", "http://localhost/x", map[string]string{"Sec-Fetch-Site": "cross-site"},
			http.StatusForbidden},
		{"own script", open, "GET", "http://localhost/x", map[string]string{"Origin": "http://localhost"}, http.StatusTeapot},
		{"a change", open, "POST", "http://localhost/x", nil, http.StatusMethodNotAllowed},
		{"no token", closed, "GET", "http://localhost/x", nil, http.StatusUnauthorized},
		{"wrong token", closed, "GET", "http://localhost/?token=fedcba9876543210", nil, http.StatusUnauthorized},
		{"token elsewhere", closed, "GET", "http://localhost/x?token=" + token, nil, http.StatusUnauthorized},
		{"token", closed, "GET", "http://localhost/?token=" + token, nil, http.StatusSeeOther},
		{"bearer", closed, "GET", "http://localhost/x", map[string]string{"Authorization": "Bearer " + token}, http.StatusTeapot},
		{"wrong bearer", closed, "GET", "http://localhost/x", map[string]string{"Authorization": "Bearer x"},
			http.StatusUnauthorized},
		{"cookie", closed, "GET", "http://localhost/x", map[string]string{"Cookie": cookie.Name + "=" + cookie.Value},
			http.StatusTeapot},
		{"the token as cookie", closed, "GET", "http://localhost/x", map[string]string{"Cookie": cookie.Name + "=" + token},
			http.StatusUnauthorized},
	} {
		r := httptest.NewRequest(c.method, c.url, nil)
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.name, w.Code, c.want, w.Body)
		}
	}
}

func TestReadToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	for text, want := range map[string]string{" 0123456789abcdef\n": "0123456789abcdef", "short": ""} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadToken(file)
		var no *TokenError
		if got != want || (want == "") != errors.As(err, &no) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
