// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// restServer is a REST catalogue in memory. What a table becomes is computed by the module
// iceberg-go, which also checks each request.
type restServer struct {
	mu     sync.Mutex
	tables map[string]table.Metadata
	before func() // called once before the next transaction
	busy   bool   // refuses transactions
}

func (s *restServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("Authorization") != "Bearer let-me-in" {
		answerError(w, http.StatusUnauthorized, "no token")
		return
	}
	switch path := strings.TrimPrefix(req.URL.Path, "/v1/"); {
	case path == "config":
		fmt.Fprint(w, `{"defaults":{},"overrides":{"prefix":"main"}}`)
	case path == "main/namespaces":
		fmt.Fprint(w, `{}`)
	case path == "main/namespaces/iotape/tables":
		s.create(w, req)
	case strings.HasPrefix(path, "main/namespaces/iotape/tables/"):
		s.mu.Lock()
		defer s.mu.Unlock()
		m := s.tables[strings.TrimPrefix(path, "main/namespaces/iotape/tables/")]
		if m == nil {
			answerError(w, http.StatusNotFound, "no such table")
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata-location": m.Location() + "/metadata/x.metadata.json",
			"metadata": m})
	case path == "main/transactions/commit":
		s.commit(w, req)
	default:
		answerError(w, http.StatusNotFound, path)
	}
}

func answerError(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "code": status}})
}

func (s *restServer) create(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Name       string                `json:"name"`
		Location   string                `json:"location"`
		Schema     iceberg.Schema        `json:"schema"`
		Spec       iceberg.PartitionSpec `json:"partition-spec"`
		Order      table.SortOrder       `json:"write-order"`
		Properties iceberg.Properties    `json:"properties"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		answerError(w, http.StatusBadRequest, err.Error())
		return
	}
	if s.tables[in.Name] != nil {
		answerError(w, http.StatusConflict, "it exists")
		return
	}
	m, err := table.NewMetadata(&in.Schema, &in.Spec, in.Order, in.Location, in.Properties)
	if err != nil {
		answerError(w, http.StatusBadRequest, err.Error())
		return
	}
	s.tables[in.Name] = m
	fmt.Fprint(w, `{}`)
}

func (s *restServer) commit(w http.ResponseWriter, req *http.Request) {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	var in struct {
		Changes []struct {
			Identifier   struct{ Name string } `json:"identifier"`
			Requirements table.Requirements    `json:"requirements"`
			Updates      table.Updates         `json:"updates"`
		} `json:"table-changes"`
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		answerError(w, http.StatusBadRequest, err.Error())
		return
	}
	next := map[string]table.Metadata{}
	for _, c := range in.Changes {
		m := s.tables[c.Identifier.Name]
		for _, r := range c.Requirements {
			if err := r.Validate(m); err != nil || s.busy {
				answerError(w, http.StatusConflict, fmt.Sprint(err))
				return
			}
		}
		changed, err := table.UpdateTableMetadata(m, c.Updates, "")
		if err != nil {
			answerError(w, http.StatusBadRequest, err.Error())
			return
		}
		next[c.Identifier.Name] = changed
	}
	for name, m := range next {
		s.tables[name] = m
	}
	w.WriteHeader(http.StatusNoContent)
}

// A lake whose tables are in a REST catalogue is added to by several programs, asked,
// compacted and expired.
func TestRESTCatalogue(t *testing.T) {
	t.Setenv(tokenVariable, "let-me-in")
	server := &restServer{tables: map[string]table.Metadata{}}
	web := httptest.NewServer(server)
	defer web.Close()
	where := filepath.Join(t.TempDir(), "lake")
	open := func() *Lake { return lakeAt(t, where, func(o *Options) { o.Catalogue = web.URL + "/" }) }
	first, second := tapeOf(t), made(t, "a", noon, 10)
	third := made(t, "a", noon.Add(time.Hour), 10)
	for _, tape := range []struct {
		want bool
		do   func() (bool, error)
	}{
		{true, func() (bool, error) { return open().Add(t.Context(), first, "") }},
		{true, func() (bool, error) {
			server.before = func() { // another program is faster, with another tape
				if added, err := open().Add(t.Context(), third, ""); err != nil || !added {
					t.Errorf("in between: %v, %v", added, err)
				}
			}
			return open().Add(t.Context(), second, "")
		}},
		{false, func() (bool, error) { return open().Add(t.Context(), second, "") }},
	} {
		if added, err := tape.do(); err != nil || added != tape.want {
			t.Fatalf("%v, %v, want %v", added, err, tape.want)
		}
	}
	want := counted(t, first, second, third)
	l := open()
	if got := has(t, l); got != want {
		t.Errorf("the lake has %s, want %s", got, want)
	}
	if done, err := l.Compact(t.Context()); err != nil || done.After == 0 {
		t.Errorf("compact: %+v, %v", done, err)
	}
	if _, err := l.Expire(t.Context(), &Expiry{}); err != nil {
		t.Error(err)
	}
	if got := has(t, l); got != want {
		t.Errorf("compacted, the lake has %s, want %s", got, want)
	}
	list, err := l.List(t.Context())
	if err != nil || !slices.ContainsFunc(list, func(x Table) bool { return x.Name == "events" && x.Rows > 0 }) {
		t.Errorf("%+v, %v", list, err)
	}
	server.busy, l.tries = true, 3
	fourth := made(t, "b", noon, 3)
	const busy = "others commit all the time"
	if _, err := l.Add(t.Context(), fourth, ""); err == nil || !strings.Contains(err.Error(), busy) {
		t.Errorf("never free: %v", err)
	}
	t.Setenv(tokenVariable, "wrong")
	if _, err := open().List(t.Context()); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Errorf("a wrong token: %v", err)
	}
}
