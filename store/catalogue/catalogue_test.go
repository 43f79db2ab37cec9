// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/store"
	"github.com/iotape/iotape/trace"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// row is one of a host, hours after noon, that took some minutes.
func row(id, host string, hours, minutes int, ops map[string]uint64) *Row {
	start := noon.Add(time.Duration(hours) * time.Hour)
	r := &Row{ID: id, Tape: id + ".tape", Location: "/tapes/" + id + ".tape", Host: host, Hosts: []string{host},
		Start: start, End: start.Add(time.Duration(minutes) * time.Minute)}
	r.Ops = ops
	return r
}

// ids returns what a filter finds, in the order of the start.
func ids(t *testing.T, c *Catalogue, filter string) string {
	t.Helper()
	x, err := predicate.Parse(filter)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := c.Find(context.Background(), x, &Options{Columns: []string{"id"}})
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		list = append(list, rows.Values()[0].(string))
	}
	if rows.Err() != nil {
		t.Fatalf("%s: %v", filter, rows.Err())
	}
	return strings.Join(list, " ")
}

func add(t *testing.T, c *Catalogue, want int, rows ...*Row) {
	t.Helper()
	if n, err := c.Add(context.Background(), rows...); n != want || err != nil {
		t.Fatalf("%d added, %v; want %d", n, err, want)
	}
}

func TestFind(t *testing.T) {
	c := Open(t.TempDir())
	a := row("a", "db7", 0, 90, map[string]uint64{"fsync": 2_000_000, "read": 5})
	a.Users, a.Commands, a.HotFiles, a.P99NS = []uint32{0, 999}, []string{"mysqld"}, []string{"/var/lib/mysql/ibdata1"},
		map[string]uint64{"fsync": 20e6}
	a.Bytes, a.Lost, a.Incomplete, a.Ends = 3<<20, 7, true, "loss"
	b := row("b", "db7", 24, 30, map[string]uint64{"fsync": 2_000_000})
	b.Command, b.Backend = "make -j8", "ptrace"
	w := row("w", "web1", 24*31, 120, map[string]uint64{"read": 9})
	w.Users, w.Command = []uint32{1000}, `it's "?" 100%; DROP TABLE tapes`
	add(t, c, 3, a, b, w)
	for _, x := range []struct{ filter, want string }{
		{`host == "db7" && ops.fsync > 1e6 && duration > 1h`, "a"},
		{`host = db7`, "a b"}, {`host != db7`, "w"}, {`not host = db7`, "w"}, {`host in {web1, nobody}`, "w"}, {`host startsWith db and host endsWith 7`, "a b"},
		{`ops.fsync = 0`, "w"}, {`ops.fsync != 0`, "a b"}, {`ops.read in {1..5}`, "a"}, {`ops.read >= 5 or ops.fsync < 3`, "a w"},
		{`p99.fsync > 10ms`, "a"}, {`p99.fsync < 1h`, "a"}, {`not p99.fsync > 10ms`, "b w"}, {`p99_ns.fsync = 20ms`, "a"},
		{`duration < 1h`, "b"}, {`duration in {30m, 2h}`, "b w"}, {`duration_ns > 1h`, "a w"},
		{`start >= 2026-05-02`, "b w"}, {`start < "2026-05-01 12:01"`, "a"}, {`day = 2026-05-02`, "b"}, {`end > 2026-06-01T14:00:00Z`, ""}, {`end >= 2026-06-01T14:00:00Z`, "w"},
		{`user = 999`, "a"}, {`user in {1..1000}`, "a w"}, {`user != 0`, "b w"}, {`users = 1000 or comm = mysqld`, "a w"},
		{`hot under /var/lib`, "a"}, {`hot under /var/li`, ""}, {`hot matches /ibdata[0-9]/`, "a"}, {`hot contains "data1" and hot glob "*mysql*"`, "a"},
		{`incomplete`, "a"}, {`not incomplete`, "b w"}, {`lost > 0 and ends = loss`, "a"}, {`tape_bytes > 2MiB`, "a"},
		{`command contains "?" and command startsWith "it's" and command contains "100%"`, "w"}, {`command = "' OR true --"`, ""}, {`backend = ptrace`, "b"}, {`backend != ptrace`, ""},
		{`true`, "a b w"}, {`false or (tape = a.tape and true)`, "a"}, {`calls >= 0`, "a b w"}, {`calls > -5 and calls <= 9223372036854775807`, "a b w"},
	} {
		if got := ids(t, c, x.filter); got != x.want {
			t.Errorf("%s finds %q, not %q", x.filter, got, x.want)
		}
	}
}

func TestWrongFilters(t *testing.T) {
	c := Open(t.TempDir())
	add(t, c, 1, row("a", "h", 0, 1, nil))
	for filter, want := range map[string]string{
		"hots = db7": "did you mean host?", "ops > 5": "write ops.NAME", "host.name = a": "no values by name", "duration > 5": "needs a unit", "duration > 5KiB": "is a time",
		"start > 5h": "a date or a time", "host": "has to be compared", "incomplete = 1": "stands alone", "host < a": "is compared by", "descendant of 5": "processes of a tape",
		"hot matches /[/": "missing closing", "ops.fsync > many": "compared with a number",
	} {
		x, err := predicate.Parse(filter)
		if err == nil {
			_, err = c.Find(context.Background(), x, nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", filter, err, want)
		}
	}
	if _, err := c.Find(context.Background(), nil, &Options{Columns: []string{`id", (SELECT 1) "x`}}); err == nil {
		t.Error("a column that there is not is taken")
	}
}

// TestChanges adds, replaces, compacts and removes, and looks at what is there.
func TestChanges(t *testing.T) {
	ctx, c := context.Background(), Open(filepath.Join(t.TempDir(), "catalogue"))
	if _, err := c.Find(ctx, nil, nil); err == nil {
		t.Error("nothing is a catalogue")
	}
	add(t, c, 3, row("a", "../../x", 0, 1, nil), row("b", "", 0, 1, nil), row("m", "h", 24*31, 1, nil))
	add(t, c, 0, row("a", "../../x", 0, 1, nil))
	if n, err := c.Compact(ctx); n != 1 || err != nil {
		t.Errorf("%d files went, %v", n, err)
	}
	add(t, c, 0, row("b", "", 0, 1, nil))
	moved := row("b", "", 0, 1, nil)
	moved.Location = "s3://x/b.tape"
	add(t, c, 1, moved)
	sealedAgain := row("n", "h", 24*31, 1, nil)
	sealedAgain.Location = "/tapes/m.tape"
	add(t, c, 1, sealedAgain)
	if got := ids(t, c, "true"); got != "a b n" {
		t.Errorf("there are %s", got)
	}
	if n, err := c.Remove(ctx, []string{"a.tape", "/tapes/m.tape", "' OR true"}); n != 2 || err != nil {
		t.Errorf("%d removed, %v", n, err)
	}
	if got := ids(t, c, "true"); got != "b" {
		t.Errorf("there are %s", got)
	}
	outside, _ := filepath.Glob(filepath.Join(filepath.Dir(c.dir), "*"))
	if len(outside) != 1 {
		t.Errorf("a host's name led to %q", outside)
	}
	// Of somebody who was killed.
	if err := os.MkdirAll(filepath.Join(c.dir, workName, "month=2026-05"), 0o777); err != nil {
		t.Fatal(err)
	}
	add(t, c, 1, row("c", "h", 1, 1, nil))
}

// TestReadersAndWriters finds while rows come and months are compacted.
func TestReadersAndWriters(t *testing.T) {
	ctx, c := context.Background(), Open(t.TempDir())
	add(t, c, 2, row("0", "h", 0, 1, nil), row("1", "h", 1, 1, nil))
	var all sync.WaitGroup
	all.Go(func() {
		for i := 2; i < 12; i++ {
			if _, err := c.Add(ctx, row(fmt.Sprint(i), "h", i, 1, nil)); err != nil {
				t.Error(err)
			}
			if _, err := c.Compact(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	least := 2
	for range 20 {
		n := len(strings.Fields(ids(t, c, "true")))
		if n < least {
			t.Errorf("%d rows, %d before", n, least)
		}
		least = n
	}
	all.Wait()
	if got := ids(t, c, "true"); got != "0 1 2 3 4 5 6 7 8 9 10 11" {
		t.Errorf("there are %s", got)
	}
}

// TestOfTape makes the row of a real recording, and reads it back.
func TestOfTape(t *testing.T) {
	ctx := context.Background()
	tape, err := trace.Open("../testdata/job.tape")
	if err != nil {
		t.Fatal(err)
	}
	defer tape.Close()
	r, err := OfTape(ctx, tape, "/somewhere/job.tape", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := Open(t.TempDir())
	add(t, c, 1, r)
	for _, filter := range []string{"tape = job.tape", "ops.openat > 100",
		"ops_failed.openat > 100 and errors.ENOENT > 100", "comm = sort and comm = dd", "user = 0", "patterns.read_only_whole > 5",
		"made > 0 and files > 10", "hot endsWith data.txt", "written > 10KiB and read > 10KiB", "duration > 1ms and duration < 1s", "sessions = 1", "not incomplete", "syncs = 1", "max.wait4 > 1ms",
		fmt.Sprintf("calls = %d and failed = %d", r.Calls, r.Failed)} {
		if got := ids(t, c, filter); got != r.ID {
			t.Errorf("%s does not find it: %+v", filter, r)
		}
	}
}

// TestHostileRow has what a tape may claim.
func TestHostileRow(t *testing.T) {
	c := Open(t.TempDir())
	r := row("a", strings.Repeat("../\x00\xff", 2000), 0, 1, map[string]uint64{})
	r.Start, r.End = wallTime(-1<<63), wallTime(1<<63-1)
	for i := range 5000 {
		r.Ops[fmt.Sprintf("\xffcall%d", i)] = uint64(i)
	}
	r.Commands, r.Command = slices.Repeat([]string{strings.Repeat("x", 1<<16)}, 3), "\x00\xf0\x28"
	add(t, c, 1, r)
	if got := ids(t, c, "processes = 0 and duration > 1h and calls = 0"); got != "a" {
		t.Errorf("found %q", got)
	}
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{"db7", "", ".", "..", "a/b", "\x00\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if e := PathPart(s); filepath.Base(e) != e || e == "." || e == ".." || len(e) > 110 {
			t.Errorf("%q is encoded as %q", s, e)
		}
	})
}

// synthetic is a row as a fleet of 300 hosts makes them, in a month.
func synthetic(r *rand.Rand, i, month int) *Row {
	host := fmt.Sprintf("db%d", r.IntN(300))
	hours := int(noon.AddDate(0, month, 0).Sub(noon)/time.Hour) + r.IntN(28*24)
	x := row(fmt.Sprintf("%032x", i), host, hours, 1+r.IntN(1440), map[string]uint64{})
	x.Failed, x.Read, x.Written, x.Events = r.Uint64N(1e5), r.Uint64N(1e11), r.Uint64N(1e11), r.Uint64N(1e8)
	x.Users, x.Commands, x.Command = []uint32{0, r.Uint32N(2000)}, []string{"mysqld", "sh", "cron"}, "all"
	x.OpsFailed, x.Errors, x.P50NS, x.P99NS, x.MaxNS, x.Patterns = map[string]uint64{},
		map[string]uint64{"ENOENT": r.Uint64N(1e6)}, map[string]uint64{}, map[string]uint64{}, map[string]uint64{},
		map[string]uint64{"read_only_whole": r.Uint64N(1e5)}
	for _, op := range syntheticOps {
		n := r.Uint64N(3e6)
		x.Ops[op], x.P50NS[op], x.P99NS[op], x.MaxNS[op] = n, r.Uint64N(1e5), r.Uint64N(1e8), r.Uint64N(1e10)
		x.Calls += n
	}
	x.HotFiles = []string{"/var/lib/mysql/ibdata1", fmt.Sprintf("/var/lib/mysql/t%d.ibd", r.IntN(1000))}
	return x
}

// syntheticOps are 60 operations, as many as a busy host calls.
var syntheticOps = func() (list []string) {
	for i := range 59 {
		list = append(list, fmt.Sprintf("operation%d", i))
	}
	return append(list, "fsync")
}()

// fill puts n synthetic rows into a catalogue, a compacted file for each of 36 months, and
// calls seen with each.
func fill(tb testing.TB, c *Catalogue, n int, seen func(*Row)) {
	tb.Helper()
	const months = 36
	random := rand.New(rand.NewPCG(1, 2))
	for m := range months {
		var rows []*Row
		for i := n * m / months; i < n*(m+1)/months; i++ {
			r := synthetic(random, i, m)
			seen(r)
			rows = append(rows, r)
		}
		dir := filepath.Join(tapesName, fmt.Sprintf("month=%d", m))
		if err := os.MkdirAll(filepath.Join(c.dir, dir), 0o777); err != nil {
			tb.Fatal(err)
		}
		if err := c.write(context.Background(), filepath.Join(dir, rowsName), rows...); err != nil {
			tb.Fatal(err)
		}
	}
}

const question = `host == "db7" && ops.fsync > 1e6 && duration > 1h`

// TestMany compares what is found among some thousand rows with the rows themselves.
func TestMany(t *testing.T) {
	testenv.Short(t, "it makes thousands of rows")
	c, want := Open(t.TempDir()), 0
	fill(t, c, 2000, func(r *Row) {
		if r.Host == "db7" && r.Ops["fsync"] > 1e6 && r.End.Sub(r.Start) > time.Hour {
			want++
		}
	})
	if got := len(strings.Fields(ids(t, c, question))); got != want || want == 0 {
		t.Errorf("found %d, want %d", got, want)
	}
}

// BenchmarkFind is scripts/bench-catalogue.sh's. Beside the time it gives the time of
// processors, which others on the machine do not change.
func BenchmarkFind(b *testing.B) {
	n := 10_000
	if s := os.Getenv("CATALOGUE_ROWS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			b.Fatal(err)
		}
	}
	c := Open(b.TempDir())
	fill(b, c, n, func(*Row) {})
	people := []string{"start", "host", "duration_ns", "calls", "failed", "read", "written",
		"lost", "begins", "ends", "location"}
	for _, x := range []struct {
		name, filter string
		columns      []string
	}{{"host", question, people}, {"host-json", question, nil}, {"all", `ops.fsync > 2.9e6 and duration > 23h`, people},
		{"text", `hot contains t77.ibd`, people}} {
		filter, err := predicate.Parse(x.filter)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(x.name, func(b *testing.B) {
			found := int64(0)
			before := processors()
			for b.Loop() {
				rows, err := c.Find(context.Background(), filter, &Options{Columns: x.columns})
				if err != nil {
					b.Fatal(err)
				}
				if found, err = store.Render(io.Discard, rows, store.JSON); err != nil {
					b.Fatal(err)
				}
				rows.Close()
			}
			b.ReportMetric(float64((processors()-before).Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(n), "tapes")
			b.ReportMetric(float64(found), "found")
		})
	}
}

// processors is the time of processors that was used so far.
func processors() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
