// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// namespace has the tables in a REST catalogue.
const namespace = "iotape"

// tokenVariable has the bearer token for a REST catalogue: secrets are never arguments.
const tokenVariable = "IOTAPE_LAKE_TOKEN"

// rest is a catalogue behind the Iceberg REST interface (iceberg.apache.org/rest-catalog-spec),
// whose server must have transactions over several tables. The files are in the lake.
type rest struct {
	l      *Lake
	base   string // without a slash at its end
	client *http.Client
	prefix string // of the server, "" or with a slash at its end
	asked  bool   // for the prefix
}

func newREST(l *Lake) (tableCatalogue, error) {
	u, err := url.Parse(l.Catalogue)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fmt.Errorf("the catalogue %q is no http:// or https:// address; a token is given by %s",
			l.Catalogue, tokenVariable)
	}
	plain := u.Scheme == "http" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1"
	if plain && os.Getenv(tokenVariable) != "" {
		return nil, fmt.Errorf("the catalogue %s would get the token in clear text; use https://", l.Catalogue)
	}
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the token is for this server
	}}
	return &rest{l: l, base: strings.TrimSuffix(l.Catalogue, "/"), client: client}, nil
}

// restError is an answer that is no success.
type restError struct {
	status  int
	message string
}

func (e *restError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.message) }

func isStatus(err error, status int) bool {
	var e *restError
	return errors.As(err, &e) && e.status == status
}

// call makes a request. in and out may be nil.
func (r *rest) call(ctx context.Context, method, path string, in, out any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("catalogue %s: %s %s: %w", r.base, method, path, err)
		}
	}()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+"/v1/"+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token := os.Getenv(tokenVariable); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxMetadata))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		var answer struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(b, &answer) != nil || answer.Error.Message == "" {
			answer.Error.Message = http.StatusText(res.StatusCode)
		}
		return &restError{res.StatusCode, strings.ToValidUTF8(answer.Error.Message, "?")}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// configure asks the server for its prefix, once.
func (r *rest) configure(ctx context.Context) error {
	if r.asked {
		return nil
	}
	var c struct {
		Defaults, Overrides map[string]string
	}
	if err := r.call(ctx, http.MethodGet, "config", nil, &c); err != nil {
		return err
	}
	prefix := c.Overrides["prefix"]
	if prefix == "" {
		prefix = c.Defaults["prefix"]
	}
	if prefix != "" {
		r.prefix = url.PathEscape(prefix) + "/"
	}
	r.asked = true
	return nil
}

func (r *rest) tablesPath() string { return r.prefix + "namespaces/" + namespace + "/tables" }

// loaded is a table as the server has it.
type loaded struct {
	Location string    `json:"metadata-location"`
	Metadata *metadata `json:"metadata"`
}

func (r *rest) load(ctx context.Context) (*state, error) {
	if err := r.configure(ctx); err != nil {
		return nil, err
	}
	s := &state{tables: map[string]*metadata{}, files: map[string]string{}}
	for _, d := range definitions() {
		var t loaded
		err := r.call(ctx, http.MethodGet, r.tablesPath()+"/"+d.name, nil, &t)
		switch {
		case isStatus(err, http.StatusNotFound):
			if len(s.tables) == 0 || d.name == summariesTable {
				return nil, fmt.Errorf("%s: %w", r.base, ErrNone)
			}
			return nil, fmt.Errorf("%s: %w (table %s is missing)", r.base, ErrNone, d.name)
		case err != nil:
			return nil, err
		case t.Metadata == nil:
			return nil, fmt.Errorf("catalogue %s: table %s has no metadata", r.base, d.name)
		}
		s.tables[d.name], s.files[d.name] = t.Metadata, t.Location
	}
	return s, nil
}

// create makes the namespace and the tables that are missing.
func (r *rest) create(ctx context.Context) error {
	err := r.call(ctx, http.MethodPost, r.prefix+"namespaces", map[string]any{"namespace": []string{namespace}}, nil)
	if err != nil && !isStatus(err, http.StatusConflict) {
		return err
	}
	for _, d := range definitions() {
		m := newMetadata(d, r.l.prefix+d.name, r.l.Clock())
		err := r.call(ctx, http.MethodPost, r.tablesPath(), map[string]any{"name": d.name, "location": m.Location,
			"schema": m.schema(), "partition-spec": m.spec(), "write-order": m.Orders[1], "properties": m.Properties}, nil)
		if err != nil && !isStatus(err, http.StatusConflict) {
			return err
		}
	}
	return nil
}

// tableChange is what a transaction does to one table.
type tableChange struct {
	Identifier struct {
		Namespace []string `json:"namespace"`
		Name      string   `json:"name"`
	} `json:"identifier"`
	Requirements []map[string]any `json:"requirements"`
	Updates      []map[string]any `json:"updates"`
}

func (r *rest) commit(ctx context.Context, base, next *state) error {
	var changes []tableChange
	for _, d := range definitions() {
		before, after := base.tables[d.name], next.tables[d.name]
		if before == after {
			continue
		}
		c := tableChange{Updates: updates(before, after)}
		c.Identifier.Namespace, c.Identifier.Name = []string{namespace}, d.name
		c.Requirements = []map[string]any{{"type": "assert-table-uuid", "uuid": before.UUID},
			{"type": "assert-current-schema-id", "current-schema-id": before.CurrentSchema},
			{"type": "assert-ref-snapshot-id", "ref": mainBranch, "snapshot-id": before.CurrentID}}
		changes = append(changes, c)
	}
	if err := r.l.After("metadata"); err != nil {
		return err
	}
	err := r.call(ctx, http.MethodPost, r.prefix+"transactions/commit", map[string]any{"table-changes": changes}, nil)
	switch {
	case isStatus(err, http.StatusConflict):
		return fmt.Errorf("%w: %w", fs.ErrExist, err)
	case isStatus(err, http.StatusNotFound), isStatus(err, http.StatusNotImplemented),
		isStatus(err, http.StatusMethodNotAllowed):
		return fmt.Errorf("the catalogue has no transactions over several tables, which a lake needs: %w", err)
	case err != nil:
		return err
	}
	return r.l.After("commit")
}

// updates returns the difference between two states of a table.
func updates(before, after *metadata) (list []map[string]any) {
	if before.CurrentSchema != after.CurrentSchema {
		list = append(list, map[string]any{"action": "add-schema", "schema": after.schema(),
			"last-column-id": after.LastColumn}, map[string]any{"action": "set-current-schema", "schema-id": -1})
	}
	if !reflect.DeepEqual(before.Properties, after.Properties) {
		list = append(list, map[string]any{"action": "set-properties", "updates": after.Properties})
	}
	has := func(m *metadata, id int64) bool {
		return slices.ContainsFunc(m.Snapshots, func(s snapshot) bool { return s.ID == id })
	}
	for i := range after.Snapshots {
		if s := &after.Snapshots[i]; !has(before, s.ID) {
			list = append(list, map[string]any{"action": "add-snapshot", "snapshot": s},
				map[string]any{"action": "set-snapshot-ref", "ref-name": mainBranch, "type": "branch",
					"snapshot-id": s.ID})
		}
	}
	var gone []int64
	for i := range before.Snapshots {
		if id := before.Snapshots[i].ID; !has(after, id) {
			gone = append(gone, id)
		}
	}
	if gone != nil {
		list = append(list, map[string]any{"action": "remove-snapshots", "snapshot-ids": gone})
	}
	return list
}

func (r *rest) settle(context.Context, *state) error { return nil } // a transaction leaves nothing

func (r *rest) address(s *state, table string) string { return s.files[table] }

func (r *rest) owns(string) bool { return false }
