// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// metadata is a table as its metadata file has it: version 2 of the table specification
// (iceberg.apache.org/spec, "Table Metadata Fields"). The module's package for it makes every
// start of a program slower by 140 ms, whether or not there is a lake.
type metadata struct {
	FormatVersion  int                      `json:"format-version"`
	UUID           string                   `json:"table-uuid"`
	Location       string                   `json:"location"`
	LastSequence   int64                    `json:"last-sequence-number"`
	LastUpdated    int64                    `json:"last-updated-ms"`
	LastColumn     int                      `json:"last-column-id"`
	CurrentSchema  int                      `json:"current-schema-id"`
	Schemas        []*iceberg.Schema        `json:"schemas"`
	DefaultSpec    int                      `json:"default-spec-id"`
	Specs          []*iceberg.PartitionSpec `json:"partition-specs"`
	LastPartition  int                      `json:"last-partition-id"`
	DefaultOrder   int                      `json:"default-sort-order-id"`
	Orders         []sortOrder              `json:"sort-orders"`
	Properties     map[string]string        `json:"properties,omitempty"`
	CurrentID      *int64                   `json:"current-snapshot-id,omitempty"`
	Refs           map[string]ref           `json:"refs,omitempty"`
	Snapshots      []snapshot               `json:"snapshots,omitempty"`
	SnapshotLog    []logEntry               `json:"snapshot-log,omitempty"`
	MetadataLog    []json.RawMessage        `json:"metadata-log,omitempty"`
	Statistics     []json.RawMessage        `json:"statistics,omitempty"`
	PartitionStats []json.RawMessage        `json:"partition-statistics,omitempty"`
}

type sortOrder struct {
	ID     int         `json:"order-id"`
	Fields []sortField `json:"fields"`
}

type sortField struct {
	Transform string `json:"transform"`
	Source    int    `json:"source-id"`
	Direction string `json:"direction"`
	Nulls     string `json:"null-order"`
}

type ref struct {
	Snapshot int64  `json:"snapshot-id"`
	Type     string `json:"type"`
}

type snapshot struct {
	ID        int64             `json:"snapshot-id"`
	Parent    *int64            `json:"parent-snapshot-id,omitempty"`
	Sequence  int64             `json:"sequence-number"`
	Timestamp int64             `json:"timestamp-ms"`
	List      string            `json:"manifest-list"`
	Summary   map[string]string `json:"summary"`
	Schema    *int              `json:"schema-id,omitempty"`
}

type logEntry struct {
	Timestamp int64 `json:"timestamp-ms"`
	Snapshot  int64 `json:"snapshot-id"`
}

const (
	mainBranch   = "main"
	formatV2     = 2
	firstPartID  = 1000 // the specification's first number of a partition field
	productKey   = "iotape.lake"
	lakeVersion  = 1
	maxSnapshots = 100 // of a table that stay; the files of others go with Expire
)

// newMetadata makes an empty table at a location.
func newMetadata(d *definition, location string, now time.Time) *metadata {
	schema, last, _ := d.schemaOf(nil, 0)
	field := func(column string) int {
		f, _ := schema.FindFieldByName(column)
		return f.ID
	}
	spec := iceberg.NewPartitionSpecID(0,
		iceberg.PartitionField{SourceIDs: []int{field(dayColumn)}, FieldID: firstPartID, Name: dayColumn,
			Transform: iceberg.IdentityTransform{}},
		iceberg.PartitionField{SourceIDs: []int{field(hostColumn)}, FieldID: firstPartID + 1, Name: hostColumn,
			Transform: iceberg.IdentityTransform{}})
	order := sortOrder{ID: 1}
	for _, s := range d.sort {
		order.Fields = append(order.Fields, sortField{"identity", field(s), "asc", "nulls-last"})
	}
	return &metadata{
		FormatVersion: formatV2, UUID: uuid.NewString(), Location: location, LastUpdated: now.UnixMilli(),
		LastColumn: last, Schemas: []*iceberg.Schema{schema}, Specs: []*iceberg.PartitionSpec{&spec},
		LastPartition: firstPartID + 1, DefaultOrder: 1, Orders: []sortOrder{{ID: 0, Fields: []sortField{}}, order},
		Properties: map[string]string{productKey: fmt.Sprint(lakeVersion), "write.format.default": "parquet",
			"write.parquet.compression-codec": "zstd"},
	}
}

// check returns what is wrong with a table that somebody else may have made.
func (m *metadata) check(table string) error {
	switch {
	case m.FormatVersion != formatV2:
		return fmt.Errorf("table %s has version %d of Iceberg's format; a lake of iotape has %d", table,
			m.FormatVersion, formatV2)
	case m.Properties[productKey] == "":
		return fmt.Errorf("table %s was not made by iotape; use another place for the lake", table)
	case m.Properties[productKey] != fmt.Sprint(lakeVersion):
		return fmt.Errorf("table %s is of a newer lake (version %s); this iotape knows version %d", table,
			m.Properties[productKey], lakeVersion)
	case m.schema() == nil || m.spec() == nil:
		return fmt.Errorf("table %s: its metadata is damaged: no current schema or partition specification", table)
	}
	for _, c := range []string{tapeIDColumn, dayColumn, hostColumn} {
		if _, ok := m.schema().FindFieldByName(c); !ok {
			return fmt.Errorf("table %s: its metadata is damaged: no column %s", table, c)
		}
	}
	if m.spec().NumFields() != 2 {
		return fmt.Errorf("table %s is not partitioned by day and host", table)
	}
	return nil
}

// clone returns a copy that can be changed.
func (m *metadata) clone() *metadata {
	c := *m
	c.Schemas, c.Snapshots = slices.Clone(m.Schemas), slices.Clone(m.Snapshots)
	c.SnapshotLog, c.Refs = slices.Clone(m.SnapshotLog), maps.Clone(m.Refs)
	c.Properties = maps.Clone(m.Properties)
	return &c
}

func (m *metadata) schema() *iceberg.Schema {
	for _, s := range m.Schemas {
		if s != nil && s.ID == m.CurrentSchema {
			return s
		}
	}
	return nil
}

func (m *metadata) spec() *iceberg.PartitionSpec {
	for _, s := range m.Specs {
		if s != nil && s.ID() == m.DefaultSpec {
			return s
		}
	}
	return nil
}

// current returns the current snapshot, nil if the table never had rows.
func (m *metadata) current() *snapshot {
	if m.CurrentID == nil {
		return nil
	}
	for i := range m.Snapshots {
		if m.Snapshots[i].ID == *m.CurrentID {
			return &m.Snapshots[i]
		}
	}
	return nil
}

// extend adds the columns that the table does not have yet.
func (m *metadata) extend(d *definition) {
	schema, last, changed := d.schemaOf(m.schema(), m.LastColumn)
	if !changed {
		return
	}
	for _, s := range m.Schemas { // numbers are not used twice
		if s.ID >= schema.ID {
			schema = iceberg.NewSchema(s.ID+1, schema.Fields()...)
		}
	}
	m.Schemas, m.CurrentSchema, m.LastColumn = append(m.Schemas, schema), schema.ID, last
}

// add makes a snapshot the current one, and forgets the oldest beyond maxSnapshots.
func (m *metadata) add(s snapshot) {
	m.Snapshots = append(m.Snapshots, s)
	m.keep(m.Snapshots[max(len(m.Snapshots)-maxSnapshots, 0):])
	m.SnapshotLog = append(m.SnapshotLog, logEntry{s.Timestamp, s.ID})
	m.CurrentID, m.LastSequence, m.LastUpdated = &s.ID, s.Sequence, max(m.LastUpdated, s.Timestamp)
	m.Refs = map[string]ref{mainBranch: {s.ID, "branch"}}
}

// keep forgets all other snapshots.
func (m *metadata) keep(list []snapshot) {
	m.Snapshots = slices.Clone(list)
	known := map[int64]bool{}
	for i := range list {
		known[list[i].ID] = true
	}
	// The log may begin only with a snapshot that is there, and has no gap behind it.
	last := slices.IndexFunc(m.SnapshotLog, func(e logEntry) bool { return known[e.Snapshot] })
	if last < 0 {
		last = len(m.SnapshotLog)
	}
	m.SnapshotLog = slices.Clone(m.SnapshotLog[last:])
}

// newSnapshotID returns a number for a snapshot.
func newSnapshotID() int64 { return rand.Int64N(1<<62) + 1 }
