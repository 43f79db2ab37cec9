// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/store/catalogue"
)

// writer makes files of rows, and stores them in the lake.
type writer struct {
	l    *Lake
	dir  string // for files until they are stored
	keys []string
}

// partition is a day and a host.
type partition struct {
	day  int32
	host string
}

func (p *partition) time() time.Time { return time.Unix(int64(p.day)*secondsOfDay, 0).UTC() }

// key returns a new key for a file of the partition. Several programs may add the same tape:
// each has files of its own.
func (p *partition) key(table, tapeID string) string {
	// Some programs decode a % in addresses, and others do not. What a file's host is stands in
	// the manifest; the path is for people.
	host := strings.ReplaceAll(catalogue.PathPart(p.host), "%", "_")
	return path.Join(table, "data", "day="+p.time().Format(time.DateOnly), "host="+host,
		tapeID+"-"+uuid.NewString()[:8]+".parquet")
}

// write stores the rows of a SELECT as a file of a table's partition. Without rows it stores
// nothing, and returns nil.
func (w *writer) write(ctx context.Context, t *store.Tables, d *definition, m *metadata, p *partition, prefix,
	query string,
	args ...any) (iceberg.DataFile, error) {
	file := filepath.Join(w.dir, d.name+".parquet")
	defer os.Remove(file)
	fields := fieldsOf(m.schema(), d.all())
	rows, chunks, err := t.WriteFile(ctx, file, query, args, d.all(), fields)
	if err != nil || rows == 0 {
		return nil, err
	}
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	key := p.key(d.name, prefix)
	w.keys = append(w.keys, key)
	if err := w.l.put(ctx, key, file); err != nil {
		return nil, err
	}
	b, err := iceberg.NewDataFileBuilder(*m.spec(), iceberg.EntryContentData, w.l.prefix+key, iceberg.ParquetFile,
		map[int]any{firstPartID: iceberg.Date(p.day), firstPartID + 1: p.host}, map[int]string{firstPartID: "date"},
		nil, rows, st.Size())
	if err != nil {
		return nil, fmt.Errorf("file of table %s: %w", d.name, err)
	}
	describeColumns(b, d.all(), fields, chunks)
	return b.SortOrderID(m.DefaultOrder).Build(), nil
}

// drop removes the files that were stored.
func (w *writer) drop() {
	for _, key := range w.keys {
		_ = w.l.files.Remove(context.Background(), key) // what stays is removed by Expire
	}
	w.keys = nil
}

// describeColumns gives a file the sizes, counts and bounds of its columns.
func describeColumns(b *iceberg.DataFileBuilder, columns []store.Column, fields []store.Field,
	chunks []store.ColumnChunk) {
	index := map[string]int{}
	for i, c := range columns {
		index[c.Name] = i
	}
	sizes, values, nulls := map[int]int64{}, map[int]int64{}, map[int]int64{}
	low, high, unknown := map[int]bound{}, map[int]bound{}, map[int]bool{}
	for _, c := range chunks {
		i, ok := index[c.Path]
		if !ok { // a part of a column
			continue
		}
		id := fields[i].ID
		sizes[id] += c.Bytes
		values[id] += c.Values
		nulls[id] += c.Nulls
		if c.Nulls == c.Values {
			continue
		}
		least, ok1 := boundOf(columns[i].Type, c.Min)
		most, ok2 := boundOf(columns[i].Type, c.Max)
		if !ok1 || !ok2 {
			unknown[id] = true
			continue
		}
		if old, ok := low[id]; !ok || least.less(old) {
			low[id] = least
		}
		if old, ok := high[id]; !ok || old.less(most) {
			high[id] = most
		}
	}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	for id := range low {
		if l, h := low[id].lower(), high[id].upper(); !unknown[id] && h != nil {
			lower[id], upper[id] = l, h
		}
	}
	b.ColumnSizes(sizes).ValueCounts(values).NullValueCounts(nulls).LowerBoundValues(lower).UpperBoundValues(upper)
}

// bound is a least or largest value of a column.
type bound struct {
	number int64
	text   string
	bytes  int // of the number; 0: it is a text
}

func (b bound) less(other bound) bool {
	if b.bytes > 0 {
		return b.number < other.number
	}
	return b.text < other.text
}

// boundOf reads a bound in the engine's words.
func boundOf(typ string, s *string) (bound, bool) {
	if s == nil {
		return bound{}, false
	}
	var n int64
	var err error
	size := 8
	switch typ {
	case "INTEGER":
		size = 4
		n, err = strconv.ParseInt(*s, 10, 32)
	case "BIGINT":
		n, err = strconv.ParseInt(*s, 10, 64)
	case "DATE":
		var t time.Time
		size = 4
		t, err = time.Parse(time.DateOnly, *s)
		n = int64(dayOf(t))
	case "TIMESTAMP":
		var t time.Time
		t, err = time.Parse("2006-01-02 15:04:05.999999", *s)
		n = t.UnixMicro()
	case "VARCHAR":
		return bound{text: *s}, utf8.ValidString(*s)
	default:
		return bound{}, false
	}
	return bound{number: n, bytes: size}, err == nil
}

// maxBound limits the texts of bounds, in bytes.
const maxBound = 128

// lower returns the bound as manifests have it; a long text becomes a shorter one before it.
func (b bound) lower() []byte {
	if b.bytes == 0 {
		return []byte(cut(b.text))
	}
	return b.encode()
}

// upper returns the bound as manifests have it; a long text becomes a shorter one behind it,
// nil if there is none.
func (b bound) upper() []byte {
	if b.bytes > 0 {
		return b.encode()
	}
	if len(b.text) <= maxBound {
		return []byte(b.text)
	}
	if s := after(cut(b.text)); s != "" {
		return []byte(s)
	}
	return nil
}

func (b bound) encode() []byte {
	if b.bytes == 4 {
		return binary.LittleEndian.AppendUint32(nil, uint32(int32(b.number)))
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(b.number))
}

// cut shortens a text between two characters.
func cut(s string) string {
	if len(s) <= maxBound {
		return s
	}
	n := maxBound
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
