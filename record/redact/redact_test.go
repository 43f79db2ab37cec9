// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/trace"
)

// TestBuiltin looks for secrets in texts that programs move.
func TestBuiltin(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\naC1rZXk=\n-----END OPENSSH PRIVATE KEY-----\n",
			"-----BEGIN OPENSSH PRIVATE KEY-----"},
		{"id AKIAIOSFODNN7EXAMPLE.", "id ********************."},
		{"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
			"aws_secret_access_key = " + strings.Repeat("*", 40) + "\n"},
		{"Authorization: Bearer abc.def\r\n", "Authorization: Bearer *******\r\n"},
		{"authorization: Basic dXNlcjpwYXNz\r\n", "authorization: Basic ************\r\n"},
		{"host=db password=hunter2 dbname=x", "host=db password=******* dbname=x"},
		{`{"password": "two words"}`, `{"password": "*********"}`},
		{"PGPASSWORD=s3cret\x00HOME=/root\x00", "PGPASSWORD=******\x00HOME=/root\x00"},
		{"postgres://joe:pw@host/db", "postgres://joe:**@host/db"},
		{"Cookie: sid=31d4d96e407aad42\r\nHost: x", "Cookie: ********************\r\nHost: x"},
		{"set-cookie: a=b; Path=/\r\n", "set-cookie: ***********\r\n"},
		{".a.example\tTRUE\t/\tFALSE\t0\tsid\t31d4\n", ".a.example\tTRUE\t/\tFALSE\t0\tsid\t****\n"},
		{"machine h.example login joe password pw1\n", "machine h.example login joe password ***\n"},
		{"# h:1:d:u:x\ndb:5432:*:joe:s3cret\n", "# h:1:d:u:x\ndb:5432:*:joe:******\n"},
		{"root:x:0:0:root:/root\ncookies: no\n12:30:45:67:89 5", ""},
		{"a passwordless, basic understanding of tokens: http://host:80/", ""},
	} {
		p, err := Load(Builtin)
		if err != nil {
			t.Fatal(err)
		}
		got := []byte(tt.text)
		for _, m := range p.find(nil, got) {
			stars(got[m.from:m.to])
		}
		switch want := tt.want; {
		case strings.HasPrefix(want, "-----"):
			if rest := bytes.Trim(got[len(want):], "*"); !bytes.HasPrefix(got, []byte(want)) ||
				bytes.Contains(rest, []byte("b3Bl")) || bytes.Contains(rest, []byte("aC1r")) {
				t.Errorf("of a key %q is left", got)
			}
		case want == "" && string(got) != tt.text, want != "" && string(got) != want:
			t.Errorf("%q became %q; want %q", tt.text, got, want)
		}
	}
}

// TestLoad reads files of patterns.
func TestLoad(t *testing.T) {
	for _, tt := range []struct{ text, err string }{
		{"# ours\nhunter[0-9]+\nbuiltin\n", ""},
		{"", "0 patterns"},
		{"a(b\n", ":1: "},
		{"x*\n", "empty text"},
	} {
		name := filepath.Join(t.TempDir(), "patterns")
		if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(name)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("patterns %q: error %v; want %q", tt.text, err, tt.err)
		}
	}
}

// frames keeps what is written.
type frames struct{ b []byte }

func (f *frames) WriteFrame(_ *trace.Frame, payload []byte) error {
	f.b = append(f.b, payload...)
	return nil
}

// write is the record of a write to a file.
func write(ino uint64, enter uint64, data string) trace.Record {
	return trace.Record{Type: trace.RecCall, Op: uint16(event.OpWrite), PID: 1, TID: 1, Enter: enter, Exit: enter,
		Ret: int64(len(data)), Objects: []trace.Object{{Ino: ino}},
		Pieces: []trace.Piece{{Arg: 1, Len: uint32(len(data)), Data: []byte(data)}}}
}

// TestSink masks secrets that are divided over pieces, calls and frames, and leaves lengths and the rest alone.
func TestSink(t *testing.T) {
	for _, tt := range []struct {
		name   string
		frames [][]trace.Record
		want   string // content by record; # stands for a byte that is masked
	}{
		{"one call", [][]trace.Record{{write(1, 1, "a SECRET b")}}, "a ###### b|"},
		{"two calls", [][]trace.Record{{write(1, 1, "a SEC"), write(1, 2, "RET b")}}, "a ###|### b|"},
		{"two files", [][]trace.Record{{write(1, 1, "a SEC"), write(2, 2, "RET b")}}, "a SEC|RET b|"},
		{"calls of others between", [][]trace.Record{{write(1, 1, "SEC"), write(2, 2, "x"), write(1, 3, "RET")}},
			"###|x|###|"},
		{"two frames", [][]trace.Record{{write(1, 1, "a SECR")}, {write(1, 2, "ET b")}}, "a ####|## b|"},
		{"too short to tell", [][]trace.Record{{write(1, 1, "a SEC")}, {write(1, 2, "RET b")}}, "a SEC|### b|"},
		{"a call in two records", [][]trace.Record{
			{func() trace.Record { r := write(1, 1, "SEC"); r.Flags |= trace.CallMore; return r }()},
			{{Type: trace.RecData, Op: uint16(event.OpWrite), PID: 1, TID: 1, Enter: 1, Flags: trace.DataLast,
				Pieces: []trace.Piece{{Arg: 1, Off: 3, Len: 4, Data: []byte("RET.")}}}},
		}, "SEC|###.|"},
		{"arguments", [][]trace.Record{{{Type: trace.RecEnter, PID: 1, TID: 1, Enter: 1,
			Pieces: []trace.Piece{{Arg: 1, Len: 9, Data: []byte("a\x00SECRET\x00")}}}}}, "a\x00******\x00|"},
		{"environment", [][]trace.Record{{{Type: trace.RecProcess, PID: 1, TID: 1, Exit: 1, Pieces: []trace.Piece{
			{Arg: facts.PartFacts, Len: 6, Data: []byte("exe=/x")},
			{Arg: facts.PartEnv, Len: 11, Data: []byte("A=SECRET\x00B\x00")},
			{Arg: facts.PartArgs, Len: 7, Data: []byte("SECRET\x00")}}}}},
			"exe=/xA=******\x00B\x00******\x00|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "patterns")
			if err := os.WriteFile(name, []byte("SECRET\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			var out frames
			s := NewSink(&out, p)
			for _, list := range tt.frames {
				var payload []byte
				for i := range list {
					payload = trace.AppendRecord(payload, &list[i])
				}
				if err := s.WriteFrame(&trace.Frame{Kind: trace.FrameRecords}, payload); err != nil {
					t.Fatal(err)
				}
			}
			if got := contentOf(t, out.b); got != tt.want {
				t.Errorf("content %q; want %q", got, tt.want)
			}
		})
	}
}

// TestTwoFrames divides texts at each byte: nothing of a secret is in what is written before its end is known.
func TestTwoFrames(t *testing.T) {
	for _, tt := range []struct{ before, secret, after string }{
		{"-----BEGIN PRIVATE KEY-----\n", "b3BlbnNzaC1rZXk=", "\n-----END PRIVATE KEY-----\n"},
		{"GET / HTTP/1.1\r\nAuthorization: Bearer ", "abc.def-ghi", "\r\n\r\n"},
		{"Authorization: Basic ", "dXNlcjpwYXNz", "\r\n"},
		{"aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "\n"},
		{"x ghp_", "012345678901234567890123456789012345", " "},
		{"key AKIA", "IOSFODNN7EXAMPLE", "\n"},
		{"host=db password=", "hunter2", " dbname=x"},
		{`{"password": "`, "two words", `"}`},
		{"postgres://joe:", "hunter2", "@host/db"},
		{"Set-Cookie: ", "sid=31d4d96e407aad42", "\r\n"},
		{".a.example\tTRUE\t/\tFALSE\t0\tsid\t", "31d4d96e", "\n"},
		{"machine h.example login joe password ", "hunter2", "\n"},
		{"a line\ndb:5432:*:joe:", "s3cret", "\n"},
	} {
		p, err := Load(Builtin)
		if err != nil {
			t.Fatal(err)
		}
		text := tt.before + tt.secret + tt.after
		for at := 1; at < len(text); at++ {
			var out frames
			s := NewSink(&out, p)
			for i, part := range []string{text[:at], text[at:]} {
				r := write(1, uint64(i+1), part)
				payload := trace.AppendRecord(nil, &r)
				if err := s.WriteFrame(&trace.Frame{Kind: trace.FrameRecords}, payload); err != nil {
					t.Fatal(err)
				}
			}
			got := strings.ReplaceAll(contentOf(t, out.b), "|", "")
			if len(got) != len(text) {
				t.Fatalf("%q divided at %d: %d bytes; want %d", text, at, len(got), len(text))
			}
			if secret := got[len(tt.before) : len(tt.before)+len(tt.secret)]; strings.Trim(secret, "#") != "" {
				t.Errorf("%q divided at %d became %q", text, at, got)
			}
		}
	}
}

// TestTails looks at ends of texts that can, and that cannot be the beginning of a secret.
func TestTails(t *testing.T) {
	for _, tt := range []struct{ pattern, text, want string }{
		{"hunter[0-9]+", "a hunt", "a ****"},
		{"hunter[0-9]+", "a hun", "a hun"},
		{"pin (?:is )?([0-9]{4}) ok", "pin is 12", "pin is **"},
		{"pin (?:is )?([0-9]{4}) ok", "pin is 1234 o", "pin is **** o"},
		{"pin (?:is )?([0-9]{4}) ok", "pin is 1234 n", "pin is 1234 n"},
		{"(?i)a(?:b([0-9]+)c)+;", "AB12cb34", "AB**cb**"},
		{"x(?:(1+)|(2+))y", "x22", "x**"},
		{`\bkey-([a-z]{3})\b`, "the key-ab", "the key-**"},
		{`(?s)<(.{1,1000})>`, "<\n1", "<**"},
		{"builtin", "some text that ends with a p", "some text that ends with a p"},
		{"builtin", "a password", "a password"},
	} {
		name := filepath.Join(t.TempDir(), "patterns")
		if err := os.WriteFile(name, []byte(tt.pattern+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		got := []byte(tt.text)
		for _, m := range p.tails(nil, got) {
			for i := m.from; i < m.to; i++ {
				got[i] = '*'
			}
		}
		if string(got) != tt.want {
			t.Errorf("%s: %q became %q; want %q", tt.pattern, tt.text, got, tt.want)
		}
	}
}

func contentOf(t *testing.T, payload []byte) string {
	t.Helper()
	var b strings.Builder
	for body, err := range trace.Records(payload) {
		var r trace.Record
		if err != nil || r.Decode(body) != nil {
			t.Fatal("a bad record", err)
		}
		for _, p := range r.Pieces {
			if p.Flags == trace.PieceMissing|trace.PieceMasked {
				b.WriteString(strings.Repeat("#", int(p.Len)))
				continue
			}
			b.Write(p.Data)
		}
		b.WriteByte('|')
	}
	return b.String()
}

// FuzzSink masks what a back end never writes.
func FuzzSink(f *testing.F) {
	one := write(1, 1, "a password=x b")
	f.Add(trace.AppendRecord(nil, &one))
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, err := Load(Builtin)
		if err != nil {
			t.Fatal(err)
		}
		_ = NewSink(&frames{}, p).WriteFrame(&trace.Frame{Kind: trace.FrameRecords}, payload)
	})
}
