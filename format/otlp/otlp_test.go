// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/iotape/iotape/format"
	"github.com/iotape/iotape/format/dio"
	"github.com/iotape/iotape/format/formattest"
	"github.com/iotape/iotape/model/history"
	"github.com/iotape/iotape/trace"
)

func export(t *testing.T, tape *trace.Tape) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := write(context.Background(), &b, tape, &format.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decode reads lines with the official messages. Their JSON encoding is protobuf's but
// for ids, which are hexadecimal and not base64 (OTLP 1.0, "JSON Protobuf Encoding").
func decode(t *testing.T, lines []byte) (spans []*tracepb.Span) {
	t.Helper()
	for d := json.NewDecoder(bytes.NewReader(lines)); ; {
		var line any
		if err := d.Decode(&line); err == io.EOF {
			return spans
		} else if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(rebase(t, line))
		if err != nil {
			t.Fatal(err)
		}
		var data tracepb.TracesData // the same fields as ExportTraceServiceRequest
		if err := protojson.Unmarshal(b, &data); err != nil {
			t.Fatal(err)
		}
		for _, r := range data.ResourceSpans {
			for _, s := range r.ScopeSpans {
				spans = append(spans, s.Spans...)
			}
		}
	}
}

func rebase(t *testing.T, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = rebase(t, v[i])
		}
	case map[string]any:
		for k := range v {
			if k == "traceId" || k == "spanId" || k == "parentSpanId" {
				b, err := hex.DecodeString(v[k].(string))
				if err != nil {
					t.Fatal(err)
				}
				v[k] = base64.StdEncoding.EncodeToString(b)
				continue
			}
			v[k] = rebase(t, v[k])
		}
	}
	return v
}

func attributes(s *tracepb.Span) map[string]any {
	m := map[string]any{}
	for _, a := range s.Attributes {
		if a.Value.GetStringValue() != "" {
			m[a.Key] = a.Value.GetStringValue()
		} else {
			m[a.Key] = a.Value.GetIntValue()
		}
	}
	return m
}

// TestSpans compares spans with the processes and open files of a tape.
func TestSpans(t *testing.T) {
	tape, err := trace.Open("../../model/history/testdata/make.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	spans := decode(t, export(t, tape))
	byID := map[string]*tracepb.Span{}
	for _, s := range spans {
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Fatalf("span %v", s)
		}
		if byID[string(s.SpanId)] != nil {
			t.Fatalf("two spans have the id %x", s.SpanId)
		}
		byID[string(s.SpanId)] = s
	}
	processes := map[*history.Process]bool{}
	read := map[string]int64{}
	for m, err := range history.Events(tape) {
		if err != nil {
			t.Fatal(err)
		}
		processes[m.Process] = true
		if io := m.Traffic(); io.From != nil && io.From.Path != "" {
			read[io.From.Path] += io.Read
		}
	}
	got := map[string]int64{}
	roots := 0
	for _, s := range spans {
		a := attributes(s)
		if _, ok := a["process.pid"]; !ok {
			path, _ := a["file.path"].(string)
			got[path] += a["iotape.read_bytes"].(int64)
			if parent := byID[string(s.ParentSpanId)]; parent == nil || attributes(parent)["process.pid"] == nil {
				t.Errorf("the opener of %s is no process", path)
			}
			continue
		}
		for p := range processes {
			if id := processID(p); string(id[:]) == string(s.SpanId) {
				delete(processes, p)
				if p.Parent != nil && byID[string(s.ParentSpanId)] == nil {
					t.Errorf("process %d: its parent has no span", p.PID)
				}
			}
		}
		if len(s.ParentSpanId) == 0 {
			roots++
		}
	}
	if len(processes) != 0 || roots != 1 {
		t.Errorf("%d processes without a span, %d without a parent", len(processes), roots)
	}
	for _, path := range slices.Sorted(maps.Keys(read)) {
		if got[path] != read[path] {
			t.Errorf("%s: %d bytes read, want %d", path, got[path], read[path])
		}
	}
}

func TestGolden(t *testing.T) {
	tape, _ := formattest.One(t, &dio.Format, filepath.Join("../dio/testdata/network.json"))
	lines := export(t, tape)
	if len(decode(t, lines)) == 0 {
		t.Error("no spans")
	}
	formattest.Golden(t, "testdata/network.otlp.json", string(lines))
}
