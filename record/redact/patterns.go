// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/iotape/iotape/internal/hint"
)

// Patterns say what is secret.
type Patterns struct {
	list []pattern
}

// pattern is a regular expression. If it has groups, what they match is secret, else the whole match.
type pattern struct {
	name string
	re   *regexp.Regexp
	need []string // in lower case: text without any of these is not searched
	tail *regexp.Regexp
}

// needed reports whether a text can have a match.
func (x *pattern) needed(lower []byte) bool {
	return len(x.need) == 0 || containsAny(lower, x.need)
}

// Builtin is the name that stands for the built-in patterns, on the command line and in files.
const Builtin = "builtin"

// builtin is the built-in list. It is made when it is asked for: most commands never do.
var builtin = sync.OnceValue(func() []pattern {
	list := []pattern{
		{name: "private-key", re: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----` +
			`([A-Za-z0-9+/=\s:,\\.-]*)`),
			need: []string{"private key"}},
		{name: "aws-key-id", re: regexp.MustCompile(`\b((?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16})\b`),
			need: []string{"akia", "asia", "aroa", "aida"}},
		{name: "aws-secret", re: regexp.MustCompile(`(?i)aws_?(?:secret|session)_?(?:access_?)?(?:key|token)["']?\s*[=:]\s*` +
			`["']?([A-Za-z0-9+/=]{16,})`), need: []string{"aws"}},
		{name: "authorization", re: regexp.MustCompile(`(?i)authorization["']?\s*[:=]\s*["']?(?:[a-z]+[ \t]+)?` +
			`([A-Za-z0-9._~+/-]{4,}=*)`), need: []string{"authorization"}},
		{name: "cookie", re: regexp.MustCompile(`(?i)\b(?:set-)?cookie["']?:[ \t]*["']?([^\r\n\x00"']+)`),
			need: []string{"cookie"}},
		{name: "cookie-file", re: regexp.MustCompile(`(?m)^\S{1,256}\t(?:TRUE|FALSE)\t[^\t\n]{0,256}\t` +
			`(?:TRUE|FALSE)\t[0-9]{1,20}\t[^\t\n]{1,256}\t([^\r\n\x00]+)`), need: []string{"\tfalse", "\ttrue"}},
		{name: "netrc", re: regexp.MustCompile(`(?i)\b(?:machine\s+\S{1,256}|default)\s+login\s+\S{1,256}\s+` +
			`password\s+(\S+)`), need: []string{"login"}},
		{name: "pgpass", re: regexp.MustCompile(`(?m)^[^:#\s]{1,256}:(?:[0-9]{1,5}|\*):[A-Za-z_*][^:\s]{0,63}:` +
			`[A-Za-z_*][^:\s]{0,63}:([^\s\x00]+)$`), need: []string{":"}},
		{name: "bearer", re: regexp.MustCompile(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/-]{16,}=*)`), need: []string{"bearer"}},
		{name: "known-token", re: regexp.MustCompile(`\b((?:gh[pousr]_[A-Za-z0-9]{30,}|xox[abprs]-[A-Za-z0-9-]{10,}|` +
			`glpat-[A-Za-z0-9_-]{20,}|sk_live_[A-Za-z0-9]{16,}))`), need: []string{"gh", "xox", "glpat-", "sk_live_"}},
		{name: "password", re: regexp.MustCompile(`(?i)(?:password|passwd|passphrase|pgpassword|mysql_pwd|secret|api_?key|` +
			`auth_?token|access_?token)["']?\s*[=:]\s*(?:"([^"\x00\r\n]+)"|'([^'\x00\r\n]+)'|([^\s"'&;,\x00]+))`),
			need: []string{"passw", "passphrase", "mysql_pwd", "secret", "key", "token"}},
		{name: "password-in-url", re: regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,20}://` +
			`[^\s/:@\x00]{1,256}:([^\s/@\x00]{1,256})@`),
			need: []string{"://"}},
	}
	for i := range list {
		list[i].tail = tailOf(list[i].re.String())
	}
	return list
})

const (
	maxFileBytes = 1 << 20
	maxPatterns  = 1000
)

// Load reads patterns: "builtin", or the name of a file with a regular expression (RE2) in each line. Empty lines
// and those that begin with # do not count; the line "builtin" stands for the built-in list.
func Load(name string) (*Patterns, error) {
	if name == Builtin {
		return &Patterns{builtin()}, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read patterns: %w", err)
	}
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("read patterns: %s has more than %d bytes", name, maxFileBytes)
	}
	p := &Patterns{}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSuffix(line, "\r")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
			continue
		case line == Builtin:
			p.list = append(p.list, builtin()...)
			continue
		}
		re, err := regexp.Compile(line)
		if err != nil {
			return nil, hint.With(fmt.Errorf("%s:%d: %w", name, i+1, err),
				"a pattern is a regular expression of RE2: https://github.com/google/re2/wiki/Syntax")
		}
		if re.MatchString("") {
			return nil, fmt.Errorf("%s:%d: the pattern matches the empty text, and so everything", name, i+1)
		}
		p.list = append(p.list, pattern{name: fmt.Sprintf("line %d", i+1), re: re,
			tail: tailOf(line)})
	}
	if len(p.list) == 0 || len(p.list) > maxPatterns {
		return nil, fmt.Errorf("%s has %d patterns: a file has from 1 to %d", name, len(p.list), maxPatterns)
	}
	return p, nil
}

// String describes the patterns, for the head of a stream.
func (p *Patterns) String() string { return fmt.Sprintf("%d patterns", len(p.list)) }

// span is a part of a text.
type span struct{ from, to int }

// find returns the secret parts of a text, in no order; they may overlap.
func (p *Patterns) find(spans []span, text []byte) []span {
	var lower []byte
	for i := range p.list {
		x := &p.list[i]
		if lower == nil && len(x.need) > 0 {
			lower = bytes.ToLower(text)
		}
		if !x.needed(lower) {
			continue
		}
		for _, m := range x.re.FindAllSubmatchIndex(text, -1) {
			if len(m) == 2 {
				spans = append(spans, span{m[0], m[1]})
			}
			for g := 2; g < len(m); g += 2 {
				if m[g] >= 0 {
					spans = append(spans, span{m[g], m[g+1]})
				}
			}
		}
	}
	return spans
}

func containsAny(text []byte, words []string) bool {
	for _, w := range words {
		if bytes.Contains(text, []byte(w)) {
			return true
		}
	}
	return false
}

// Strings masks the secrets of arguments of a program, each by itself.
func (p *Patterns) Strings(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		b := []byte(s)
		for _, m := range p.find(nil, b) {
			stars(b[m.from:m.to])
		}
		out[i] = string(b)
	}
	return out
}

func stars(b []byte) {
	for i := range b {
		if b[i] != 0 { // it divides strings
			b[i] = '*'
		}
	}
}
