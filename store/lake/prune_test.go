// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// fleetLake is a lake of three days of three hosts, one of whose names needs quotes.
func fleetLake(t testing.TB) *Lake {
	t.Helper()
	l := lakeAt(t, filepath.Join(t.TempDir(), "lake"), nil)
	for day := range 3 {
		for _, host := range []string{"db1", "db2", "o'x%"} {
			if _, err := l.Add(t.Context(), made(t, host, noon.AddDate(0, 0, day), 3), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	return l
}

func TestPruning(t *testing.T) {
	testenv.Short(t, "it asks a lake eighty statements")
	l := fleetLake(t)
	t.Run("conditions", func(t *testing.T) { conditionsPrune(t, l) })
	t.Run("answers", func(t *testing.T) { answersArePrunedRight(t, l) })
	t.Run("manifests", func(t *testing.T) { manifestsArePruned(t, l) })
	t.Run("wrong statements", func(t *testing.T) { wrongStatements(t, l) })
}

// A statement's own conditions keep the engine from opening the files that it does not need.
func conditionsPrune(t *testing.T, l *Lake) {
	const all = 9 * 5 // there is no content, and no finding
	for _, c := range []struct {
		query string
		files int // that are left of those of the tables that it names
	}{
		{"FROM events", 9},
		{"FROM events WHERE day = '2026-05-02'", 3},
		{"FROM events WHERE day = DATE '2026-05-02' AND host = 'db2'", 1},
		{"FROM events WHERE host IN ('db2', 'o''x%')", 6},
		{"FROM events e WHERE E.HOST LIKE 'db%'", 6},
		{"FROM events WHERE NOT (host = 'db1') AND month(day) = 5", 6},
		{"FROM events WHERE day BETWEEN '2026-05-01' AND '2026-05-02'", 6},
		{"FROM events WHERE time >= '2026-05-02 12:00:00' AND TIMESTAMP '2026-05-02 12:00:00.5' > time", 3},
		{"FROM events WHERE time::DATE = '2026-05-03'", 3},
		{"FROM events WHERE date_trunc('day', time) = '2026-05-03' OR host = 'db1'", 5},
		{"FROM events WHERE day >= current_date - 7000 AND year(day) = 2025", 0},
		{"FROM events WHERE time > now() + INTERVAL 1 YEAR", 0},
		{"FROM events WHERE file = '/data/db1/log'", 3},
		{"FROM events WHERE file LIKE '/zzz%' OR starts_with(file, '/data/db1/')", 3},
		{"FROM events WHERE uid = 1001", 0},
		{"FROM events e JOIN files f USING (tape_id) WHERE e.day = '2026-05-01' AND f.host = 'db1'", 3 + 3},
		{"FROM events e LEFT JOIN files f USING (tape_id) WHERE f.day = '2026-05-01'", 9 + 3},
		{"FROM (SELECT * FROM events WHERE host = 'db1') WHERE day = '2026-05-01'", 3},
		{"WITH x AS (FROM events WHERE host = 'db1') FROM x UNION ALL FROM x", 3},
		{"FROM events WHERE host = 'db1' UNION ALL FROM events WHERE day = '2026-05-01'", 5},
		{"SELECT (SELECT count(*) FROM opens WHERE host = 'db2') FROM events WHERE host = 'db1'", 3 + 3},
		// What must not exclude files.
		{"FROM events e LEFT JOIN files f USING (tape_id) WHERE f.day IS NULL", 18},
		{"FROM events e ASOF JOIN files f ON e.time >= f.first_time WHERE f.host = 'db1' AND e.host = 'db1'", 18},
		{"FROM events POSITIONAL JOIN files WHERE events.host = 'db1'", 18},
		{"WITH events AS (FROM files) FROM events WHERE host = 'db1'", 18},
		{"FROM events WHERE host = 'db1' OR random() < 2", 9},
		{"FROM events e(host) WHERE host = 'db1'", 9},
		{"FROM events WHERE host = 'db1' USING SAMPLE 100%", 9},
		{"FROM query('FROM events')", all},
		{"FROM query_table('files')", all},
	} {
		rows, err := l.Select(t.Context(), "SELECT count(*) FROM ("+c.query+")", &Range{})
		if err != nil {
			t.Errorf("%s: %v", c.query, err)
			continue
		}
		if rows.Close(); rows.Files != c.files {
			t.Errorf("%s: %d files are read, want %d", c.query, rows.Files, c.files)
		}
	}
}

// statements makes statements at random.
type statements struct{ *rand.Rand }

func (s statements) one(list ...string) string { return list[s.IntN(len(list))] }

func (s statements) value(column string) string {
	switch column {
	case "day":
		return s.one("'2026-05-01'", "DATE '2026-05-02'", "DATE '2026-05-03' - 1", "'2026-04-30'", "current_date",
			"NULL", "CAST('2026-05-02' AS TIMESTAMP)")
	case "time", "first_time":
		return s.one("'2026-05-01 12:00:00'", "TIMESTAMP '2026-05-02 12:00:00.3'", "DATE '2026-05-02'", "now()",
			"DATE '2026-05-01' + INTERVAL 36 HOUR", "NULL")
	case "uid", "seq":
		return s.one("1000", "0", "-1", "'3'", "2.5", "NULL")
	}
	return s.one("'db1'", "'db2'", "'o''x%'", "'/data/db1/log'", "'/etc/config'", "''", "'zz'", "NULL")
}

func (s statements) condition(prefix string, columns []string, depth int) string {
	if depth > 0 && s.IntN(2) == 0 {
		a, b := s.condition(prefix, columns, depth-1), s.condition(prefix, columns, depth-1)
		return s.one("("+a+" AND "+b+")", "("+a+" OR "+b+")", "NOT ("+a+")", "coalesce("+a+", true)",
			"CASE WHEN "+a+" THEN "+b+" ELSE true END")
	}
	c := s.one(columns...)
	name := prefix + c
	if c == "time" || c == "day" {
		name = s.one(name, name, name+"::DATE", "date_trunc('month', "+name+")", "year("+name+")")
		if strings.HasPrefix(name, "year") {
			return name + s.one(" = ", " < ", " <> ") + s.one("2026", "2025")
		}
	}
	how := s.one(" = ", " < ", " <= ", " > ", " >= ", " <> ", " IS DISTINCT FROM ")
	switch s.IntN(7) {
	case 0:
		return s.value(c) + how + name
	case 1:
		return name + s.one(" IN (", " NOT IN (") + s.value(c) + ", " + s.value(c) + ")"
	case 2:
		return name + s.one(" BETWEEN ", " NOT BETWEEN ") + s.value(c) + " AND " + s.value(c)
	case 3:
		return name + s.one(" IS NULL", " IS NOT NULL")
	case 4:
		if c == "host" || c == "file" || c == "path" {
			return s.one(name+" LIKE ", name+" NOT LIKE ", name+" ILIKE ", name+" ^@ ") +
				s.one("'db%'", "'d_1'", "'/data/%'", "'%x%'", "'/etc/config'", "'/DATA%'")
		}
	}
	return name + how + s.value(c)
}

func (s statements) statement() string {
	events := []string{"day", "host", "time", "file", "uid", "seq"}
	files := []string{"day", "host", "first_time", "path"}
	e := func() string { return s.condition("e.", events, 2) }
	f := func() string { return s.condition("f.", files, 2) }
	both := func() string { return s.one(e(), f(), e()+" AND "+f(), "("+e()+" OR "+f()+")") }
	bare := func() string { return s.condition("", events, 3) }
	join := s.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
	return s.one(
		"SELECT count(*), sum(e.seq), count(f.path) FROM events e "+join+" files f ON e.tape_id = f.tape_id "+
			"AND e.file = f.path WHERE "+both(),
		"SELECT count(*), sum(e.seq) FROM events e "+s.one("SEMI", "ANTI")+" JOIN files f ON e.tape_id = f.tape_id "+
			"AND "+f()+" WHERE "+e(),
		"SELECT count(*) FROM events e ASOF JOIN files f ON e.host = f.host AND e.time >= f.first_time WHERE "+both(),
		"SELECT count(*), sum(seq) FROM events WHERE "+bare(),
		"SELECT sum(n) FROM (SELECT upper(host) AS host, count(*) AS n FROM events WHERE "+bare()+" GROUP BY ALL "+
			"UNION ALL SELECT host, count(*) FROM events WHERE "+bare()+" GROUP BY ALL)",
		"WITH x AS (SELECT * FROM events WHERE "+bare()+") SELECT count(*) FROM x WHERE "+bare(),
		"WITH events AS (SELECT * EXCLUDE (host), 'db1' AS host FROM main.events) SELECT count(*) FROM events WHERE "+
			bare(),
		"SELECT count(*) FROM events e WHERE "+e()+" AND EXISTS (SELECT 1 FROM files f "+
			"WHERE f.tape_id = e.tape_id AND "+both()+")",
		"SELECT count(*) FROM files f WHERE "+f()+" OR f.host IN (SELECT host FROM events WHERE "+bare()+")",
		"SELECT count(*) FROM files f, events e WHERE "+both()+" AND e.day = f.day",
	)
}

// The answers of statements are those that they have if all files are read.
func answersArePrunedRight(t *testing.T, l *Lake) {
	n := 80
	if testing.Short() {
		n = 20
	}
	s := statements{rand.New(rand.NewPCG(7, 33))}
	pruned, read := 0, 0
	for range n {
		query := s.statement()
		ask := func(prune bool) (string, int) {
			rows, err := l.selectRows(t.Context(), query, nil, &Range{}, prune)
			if err != nil {
				return "an error", 0
			}
			defer rows.Close()
			var list []string
			for rows.Next() {
				list = append(list, fmt.Sprint(rows.Values()...))
			}
			if rows.Err() != nil {
				return "an error", 0
			}
			slices.Sort(list)
			return strings.Join(list, "\n"), rows.Files
		}
		want, all := ask(false)
		got, some := ask(true)
		if got != want && want != "an error" {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if want != "an error" {
			read++
		}
		if some < all {
			pruned++
		}
	}
	if pruned < n/8 || read < n*2/3 {
		t.Errorf("of %d statements %d could be run, and %d read fewer files: too few for this test", n, read, pruned)
	}
}

// What is no SELECT is an error before any file is read.
func wrongStatements(t *testing.T, l *Lake) {
	for query, want := range map[string]string{
		"SELEC":                              "syntax error",
		"":                                   "query",
		"DROP VIEW events":                   "only a single SELECT",
		"SELECT nothing FROM events":         "nothing",
		"SELECT * FROM events WHERE day = x": "x",
	} {
		rows, err := l.Select(t.Context(), query, &Range{})
		if err == nil {
			rows.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", query, err, want)
		}
	}
}

// A condition on a day decides by manifests, too.
func manifestsArePruned(t *testing.T, l *Lake) {
	s, err := l.load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := definitionOf("events")
	list, err := l.manifests(t.Context(), s.tables[d.name].current())
	if err != nil || len(list) != 9 {
		t.Fatalf("%d manifests, %v, want 9", len(list), err)
	}
	for condition, want := range map[string]int{
		"day = '2026-05-02'": 3, "host > 'db1' AND day < '2026-05-02'": 2,
		"time < '" + noon.Format(time.DateOnly) + "'": 0,
		"upper(host) = 'DB1'":                         9, "uid = 7": 9,
	} {
		q, err := newPruner(t.Context(), "SELECT * FROM events WHERE "+condition, nil)
		if err != nil {
			t.Fatal(err)
		}
		left, err := q.pruneManifests(t.Context(), d, list)
		if err != nil || len(left) != want {
			t.Errorf("%s: %d manifests are left, %v, want %d", condition, len(left), err, want)
		}
		if err := q.close(); err != nil {
			t.Error(err)
		}
	}
}
