// SPDX-License-Identifier: Apache-2.0

package flow_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/flow"
	"github.com/iotape/iotape/event"
)

// TestHTTPProxy has a proxy write the heads of HTTP messages anew, as HAProxy does: that is no change.
// A byte of a body that differs, and one of a head that is passed on as it is, are.
func TestHTTPProxy(t *testing.T) {
	lower := strings.NewReplacer("Server:", "server:", "Content-Type:", "content-type:", "Content-Length:",
		"content-length:", "Connection: close\r\n", "")
	spoil := func(b string, at int) string { return b[:at] + string(b[at]^0x20) + b[at+1:] }
	for name, c := range map[string]struct {
		want flow.Problem
		give func(k int, head, body string) []string
	}{
		"as it is":              {give: func(_ int, h, b string) []string { return []string{h + b} }},
		"names in another case": {give: func(_ int, h, b string) []string { return []string{lower.Replace(h) + b} }},
		"and alone":             {give: func(_ int, h, b string) []string { return []string{lower.Replace(h), b} }},
		"a field more": {give: func(_ int, h, b string) []string {
			return []string{strings.Replace(h, "Server:", "Via: 1.1 proxy\r\nServer:", 1) + b}
		}},
		"body changed": {flow.Changed, func(k int, h, b string) []string {
			if k == 7 {
				b = spoil(b, len(b)/2)
			}
			return []string{lower.Replace(h) + b}
		}},
		"head changed": {flow.Changed, func(k int, h, b string) []string {
			if k == 7 {
				h = spoil(h, strings.Index(h, "text/"))
			}
			return []string{h + b}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 1))
			var messages []string
			var give [][]string
			for k := range 12 {
				body := string(logLines(r, k))
				head := fmt.Sprintf("HTTP/1.1 200 OK\r\nServer: test/1.0\r\nContent-Type: text/plain\r\n"+
					"Content-Length: %d\r\nConnection: close\r\n\r\n", len(body))
				messages = append(messages, head+body)
				give = append(give, c.give(k, head, body))
			}
			m := &maker{t: t}
			m.tape("b", 0, true, passingOn(toC, messages, give)...)
			checkProblem(t, load(t, nil, m.names...), c.want, -1, nil)
		})
	}
}

// TestAlike has a client receive files that begin with the same text, in parts of 8 KiB, and store each in
// one write. One file came with a wrong byte and is stored as it came, which is right: the others are not
// changed copies of it. A byte that the client changes is found.
func TestAlike(t *testing.T) {
	for name, flip := range map[string]int{"as received": -1, "one changed": 9} {
		t.Run(name, func(t *testing.T) {
			list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
			at := int64(2)
			for k := range 12 {
				var b bytes.Buffer
				for i := range 700 * (k + 4) {
					fmt.Fprintln(&b, i+1)
				}
				file := b.Bytes()
				if k == 4 {
					file[bytes.Index(file, []byte("\n4321\n"))+3] ^= 1
				}
				for from := 0; from < len(file); from += 8192 {
					list = append(list, call{op: event.OpRecvfrom, tid: 1, at: at, file: fromB,
						content: string(file[from:min(from+8192, len(file))])})
					at++
				}
				if k == flip {
					file[len(file)/2] ^= 1
				}
				list = append(list, call{op: event.OpPwrite64, tid: 1, at: at, file: "/got/" + strings.Repeat("x", k+1),
					open: event.OpenID(6 + k), content: string(file)})
				at++
			}
			m := &maker{t: t}
			m.tape("a", 0, true, list...)
			want := "wrong == 0"
			if flip >= 0 {
				want = "wrong == 1 and changed == 1"
			}
			f := load(t, nil, m.names...)
			expect(t, f, nil, want)
			if t.Failed() {
				t.Log(wrong(f))
			}
		})
	}
}

// TestPartsWithHeaders has a program read files whole and send them in parts, each with its length before
// it, several in one write: what rsync does.
func TestPartsWithHeaders(t *testing.T) {
	for name, flip := range map[string]int{"clean": -1, "one changed": 5} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(5, 1))
			list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
			at := int64(2)
			for k := range 8 {
				file := noise(r, 67_000+3000*k)
				list = append(list, call{op: event.OpPread64, tid: 1, at: at, file: "/" + strings.Repeat("f", k+1),
					open: event.OpenID(10 + k), content: string(file)})
				at++
				if k == flip {
					file = bytes.Clone(file)
					file[50_000] ^= 1
				}
				var pending []byte
				for from := 0; from < len(file); from += 32 << 10 {
					part := file[from:min(from+32<<10, len(file))]
					pending = append(append(pending, byte(len(part)), byte(len(part)>>8), byte(k), 7), part...)
					if from == 0 { // the last part but one is in the write of the last one
						list = append(list, call{op: event.OpSendto, tid: 1, at: at, file: fromB,
							content: string(pending)})
						pending = nil
						at++
					}
				}
				list = append(list, call{op: event.OpSendto, tid: 1, at: at, file: fromB, content: string(pending)})
				at++
			}
			m := &maker{t: t}
			m.tape("a", 0, true, list...)
			want := "wrong == 0"
			if flip >= 0 {
				want = "wrong == 1 and changed == 1"
			}
			expect(t, load(t, nil, m.names...), nil, want)
		})
	}
}

// TestPartsOfPeriodicText has a server receive messages in parts and write each whole. Parts of text that
// repeats itself stand at several places of a write: that says nothing about their order.
func TestPartsOfPeriodicText(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	list := []call{{op: event.OpConnect, tid: 1, at: 1, file: fromB}}
	at, offset := int64(2), int64(0)
	for k := range 24 {
		message := noise(r, 2000+k)
		if k%4 == 0 {
			line := fmt.Sprintf("line %d of a log: level=info msg=\"request served\" status=200\n", k)
			message = []byte(strings.Repeat(line, 30))
		}
		for _, part := range [][]byte{message[:25], message[25:1473], message[1473:1480], message[1480:]} {
			list = append(list, call{op: event.OpRecvfrom, tid: 1, at: at, file: fromB, content: string(part)})
			at++
		}
		list = append(list, call{op: event.OpPwrite64, tid: 1, at: at, file: "/store", open: 6, offset: offset,
			content: string(message)})
		offset += int64(len(message))
		at++
	}
	m := &maker{t: t}
	m.tape("b", 0, true, list...)
	checkProblem(t, load(t, nil, m.names...), "", -1, nil)
}
