// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"github.com/iotape/iotape/store"
)

// What scripts/bench-lake.sh sets: where the lake of TestScale is made, and how large.
const (
	scaleLake  = "LAKE_SCALE_LAKE"
	scaleHosts = "LAKE_SCALE_HOSTS"
	scaleDays  = "LAKE_SCALE_DAYS"
	scaleRows  = "LAKE_SCALE_ROWS" // events, over all hosts and days
)

// TestScale makes the lake of a simulated fleet: a tape for each host and day. Rows are made
// by the engine, not from tapes, which would take a hundred times as long. Alone it makes a small
// one.
func TestScale(t *testing.T) {
	where := cmp.Or(os.Getenv(scaleLake), filepath.Join(t.TempDir(), "lake"))
	number := func(name, small string) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), small))
		if err != nil || n < 1 {
			t.Fatalf("%s=%q, want a number", name, os.Getenv(name))
		}
		return n
	}
	hosts, days, rows := number(scaleHosts, "3"), number(scaleDays, "2"), number(scaleRows, "600")
	each := max(rows/hosts/days, 1)
	first := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	l := lakeAt(t, where, nil)
	if err := l.tables.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	began, took := time.Now(), time.Duration(0)
	for day := range days {
		at := first.AddDate(0, 0, day)
		took += simulateDay(t, l, at, hosts, each)
		t.Logf("day %d of %d, %s", day+1, days, time.Since(began).Round(time.Second))
	}
	list, err := l.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if x.Name == "events" && (x.Rows != int64(each*hosts*days) || x.Hosts != hosts) {
			t.Errorf("the lake has %d events of %d hosts, want %d of %d", x.Rows, x.Hosts, each*hosts*days, hosts)
		}
	}
	t.Logf("%d commits of %d files each took %s in all", days, 6*hosts, took.Round(time.Millisecond))
}

// simulateDay adds a day of all hosts in one commit, and returns how long the commit took.
func simulateDay(t *testing.T, l *Lake, at time.Time, hosts, rows int) time.Duration {
	t.Helper()
	ctx := context.Background()
	s, err := l.load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]iceberg.DataFile{}
	var both sync.Mutex
	var all sync.WaitGroup
	workers := runtime.NumCPU()
	for i := range workers {
		dir := t.TempDir()
		all.Go(func() {
			tables, err := store.OpenTables(ctx, nil, dir, &store.QueryOptions{Threads: 1})
			if err != nil {
				t.Error(err)
				return
			}
			defer tables.Close()
			w := &writer{l: l, dir: dir}
			for host := i; host < hosts; host += workers {
				made, err := simulateHost(ctx, tables, w, s, &partition{dayOf(at), fmt.Sprintf("host%04d", host)}, rows)
				both.Lock()
				for name, f := range made {
					files[name] = append(files[name], f)
				}
				both.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	began := time.Now()
	err = l.commit(ctx, func(c *change) error {
		for name, list := range files {
			if err := c.replace(ctx, name, nil, list, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// simulateHost stores the files of a host's day, one for each table.
func simulateHost(ctx context.Context, tables *store.Tables, w *writer, s *state, p *partition,
	rows int) (files map[string]iceberg.DataFile, err error) {
	files = map[string]iceberg.DataFile{}
	for _, d := range definitions() {
		if d.name == findingsTable {
			continue
		}
		files[d.name], err = w.write(ctx, tables, d, s.tables[d.name], p, "made", simulated(d, p, rows))
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// shares are the rows of a table for each event, as builds and databases have them.
var shares = map[string]int{"events": 1, "opens": 8, "processes": 200, "files": 20, "content": 3}

// simulated is a SELECT of rows of a table. Names are those of 5,000 files of the host, and, on
// one host-day of thirty, /etc/shadow.
func simulated(d *definition, p *partition, rows int) string {
	n := 1
	if share := shares[d.name]; share > 0 {
		n = max(rows/share, 1)
	}
	day := p.time().Format(time.DateOnly)
	at := fmt.Sprintf("TIMESTAMP '%s' + to_microseconds(CAST(i * %d AS BIGINT))", day, 86_400_000_000/n)
	file := fmt.Sprintf("'/srv/%s/' || hash(i, '%s') %% 5000", p.host, p.host)
	if hash := (int(p.day) + len(p.host)*7 + int(p.host[len(p.host)-1])) % 30; hash == 0 {
		file = "CASE WHEN i = 0 THEN '/etc/shadow' ELSE " + file + " END"
	}
	list := []string{}
	for _, c := range d.all() {
		value := "CAST(NULL AS " + c.Type + ")"
		switch {
		case c.Name == tapeIDColumn:
			value = text(day + p.host)
		case c.Name == tapeColumn:
			value = text(p.host + ".tape")
		case c.Name == dayColumn:
			value = "DATE " + text(day)
		case c.Name == hostColumn:
			value = text(p.host)
		case c.Name == d.path || c.Name == "abs":
			value = file
		case c.Name == "comm":
			value = "['mysqld', 'nginx', 'cron', 'python3'][(1 + hash(i) % 4)::BIGINT]"
		case c.Name == "op":
			value = "['read', 'write', 'openat', 'close', 'fsync', 'stat'][(1 + hash(i, 1) % 6)::BIGINT]"
		case c.Name == "hash":
			value = "sha256(CAST(hash(i) % 100000 AS VARCHAR))"
		case c.Name == d.time:
			value = at
		case c.Name == "seq" || strings.HasSuffix(c.Name, "_id"):
			value = "i"
		case c.Type == "BIGINT" || c.Type == "INTEGER":
			value = fmt.Sprintf("CAST(hash(i, '%s') %% 4096 AS %s)", c.Name, c.Type)
		case c.Type == "MAP(VARCHAR, BIGINT)":
			value = "MAP {'read': 1000::BIGINT, 'write': 500::BIGINT, 'fsync': 3::BIGINT}"
		}
		list = append(list, value+" AS "+name(c.Name))
	}
	return fmt.Sprintf("SELECT %s FROM range(%d) AS r(i) ORDER BY %s", strings.Join(list, ", "), n, d.order())
}
