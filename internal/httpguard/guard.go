// SPDX-License-Identifier: Apache-2.0

// Package httpguard keeps other sites' pages, and people without a token, away from the HTTP
// servers of iotape.
//
// A browser on the same machine reaches a server on the loopback interface, too, and every page
// that is open in it can ask for addresses. So a server answers only if it is asked by a name
// of its own (against DNS rebinding), and not on behalf of another site's page.
package httpguard

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Guard is what a server asks of requests. Its methods may be called at the same time.
type Guard struct {
	// Names by which the server may be asked, without the port, besides addresses and
	// "localhost".
	Names []string
	// Token has to be in the first request, as ?token=, and is in a cookie then; or in each, as
	// a bearer token (RFC 6750). "" means that none is needed.
	Token string
}

// Wrap returns a handler that passes on the requests that h may answer.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	// Cookies belong to a host, whatever the port: two servers must not share one. The value does
	// not tell the token.
	sum := sha256.Sum256([]byte("cookie of iotape serve " + g.Token))
	cookie := http.Cookie{
		Name: fmt.Sprintf("iotape-%x", sum[:4]), Value: hex.EncodeToString(sum[4:]), Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Content-Security-Policy", "frame-ancestors 'none'") // the rest is in the page
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
		case !g.knows(r.Host):
			http.Error(w, "this server has another name: use the address that iotape printed (--name, --page-name)",
				http.StatusMisdirectedRequest)
		case !sameOrigin(r):
			http.Error(w, "pages of other sites may not ask", http.StatusForbidden)
		case r.URL.Path == "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
		case g.Token == "":
			next.ServeHTTP(w, r)
		case r.URL.Path == "/" && equal(r.URL.Query().Get("token"), g.Token):
			http.SetCookie(w, &cookie)
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case !g.authorised(r, &cookie):
			http.Error(w, "a token is needed: use the address that iotape printed, or /?token=TOKEN",
				http.StatusUnauthorized)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// knows reports whether a server is asked by a name that is its own. A page of another
// site whose name leads here has that name.
func (g *Guard) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return net.ParseIP(name) != nil || strings.EqualFold(name, "localhost") ||
		slices.ContainsFunc(g.Names, func(n string) bool { return strings.EqualFold(n, name) })
}

// sameOrigin reports whether a request comes from the server's own page, or from none.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" &&
		site != "none" && r.URL.Path != "/" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// equal takes a time that does not tell where two secrets differ.
func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (g *Guard) authorised(r *http.Request, cookie *http.Cookie) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return equal(token, g.Token)
	}
	c, err := r.Cookie(cookie.Name)
	return err == nil && equal(c.Value, cookie.Value)
}

// A TokenError says that what is in a file cannot be a token.
type TokenError struct{ File string }

// Error says what a token is.
func (e *TokenError) Error() string {
	return fmt.Sprintf("%s: a token has %d to %d characters", e.File, minToken, maxToken)
}

// Limits of tokens, in bytes.
const (
	minToken = 16
	maxToken = 4096
)

// ReadToken returns the token in a file, without the white space around it. The error is a
// TokenError if it is too short or too long.
func ReadToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	if b = bytes.TrimSpace(b); len(b) < minToken || len(b) > maxToken {
		return "", &TokenError{file}
	}
	return string(b), nil
}
