// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"

	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/store"
)

// column is a column of the table, what filters call it, and how a row fills it. Columns
// are only ever added: files of before have NULL for them.
type column struct {
	name  string
	typ   string // of SQL
	field predicate.Column
	value func(*Row) any
}

const (
	mapType  = "MAP(VARCHAR, UBIGINT)"
	listType = "VARCHAR[]"
)

func textColumn(name, about string, f func(*Row) string) column {
	return column{name, "VARCHAR", predicate.Column{Name: name, About: about}, func(r *Row) any {
		if s := f(r); s != "" {
			return store.Text(cut(s))
		}
		return nil
	}}
}

func listColumn(name, alias, about string, f func(*Row) []string) column {
	return column{name, listType, predicate.Column{Name: alias, Aliases: aliases(alias, name), Several: true,
		About: about}, func(r *Row) any {
		list := []string{}
		for _, s := range f(r)[:min(len(f(r)), maxEntries)] {
			list = append(list, store.Text(cut(s)))
		}
		return list
	}}
}

func aliases(name, other string) []string {
	if name == other {
		return nil
	}
	return []string{other}
}

func countColumn(name, about string, f func(*Row) uint64) column {
	return column{name, "UBIGINT", predicate.Column{Name: name, Kind: predicate.ColumnNumber, About: about},
		func(r *Row) any { return f(r) }}
}

func bytesColumn(name, about string, f func(*Row) uint64) column {
	c := countColumn(name, about, f)
	c.field.Kind = predicate.ColumnBytes
	return c
}

// spanColumn is called NAME in filters and NAME_ns in files.
func spanColumn(name, about string, f func(*Row) int64) column {
	return column{name + "_ns", "BIGINT", predicate.Column{Name: name, Aliases: []string{name + "_ns"},
		Kind: predicate.ColumnSpan, About: about}, func(r *Row) any { return f(r) }}
}

func mapColumn(name, about string, f func(*Row) map[string]uint64) column {
	c := column{name, mapType, predicate.Column{Name: name, Kind: predicate.ColumnNumber, Keyed: true, About: about},
		func(r *Row) any { return store.Map(largest(f(r))) }}
	if short, ok := strings.CutSuffix(name, "_ns"); ok {
		c.field.Name, c.field.Aliases, c.field.Kind = short, []string{name}, predicate.ColumnSpan
	}
	return c
}

// lossesColumn is for other engines: the reasons are sentences, and no names for filters.
func lossesColumn(name, about string, f func(*Row) map[string]uint64) column {
	c := mapColumn(name, about, f)
	c.field = predicate.Column{}
	return c
}

func flagColumn(name, about string, f func(*Row) bool) column {
	return column{name, "BOOLEAN", predicate.Column{Name: name, Kind: predicate.ColumnFlag, About: about},
		func(r *Row) any { return f(r) }}
}

func timeColumn(name, typ, about string, f func(*Row) any) column {
	return column{name, typ, predicate.Column{Name: name, Kind: predicate.ColumnTime, About: about}, f}
}

// columns is the table.
var columns = []column{
	textColumn("id", "of the tape: from the hash of its manifest", func(r *Row) string { return r.ID }),
	textColumn("tape", "its name", func(r *Row) string { return r.Tape }),
	textColumn("location", "where it is: a path, or s3://BUCKET/KEY", func(r *Row) string { return r.Location }),
	textColumn("host", "that was recorded; the first of several", func(r *Row) string { return r.Host }),
	listColumn("hosts", "hosts", "all of them", func(r *Row) []string { return r.Hosts }),
	timeColumn("day", "DATE", "of the first event (UTC)", func(r *Row) any { return r.Start }),
	timeColumn("start", "TIMESTAMP", "of the first event (UTC)", func(r *Row) any { return r.Start }),
	timeColumn("end", "TIMESTAMP", "of the last event (UTC)", func(r *Row) any { return r.End }),
	spanColumn("duration", "from the first to the last event", func(r *Row) int64 { return int64(r.End.Sub(r.Start)) }),

	bytesColumn("tape_bytes", "of the tape's files", func(r *Row) uint64 { return r.Bytes }),
	countColumn("events", "in the tape", func(r *Row) uint64 { return r.Events }),
	countColumn("calls", "system calls and requests", func(r *Row) uint64 { return r.Calls }),
	countColumn("failed", "of these", func(r *Row) uint64 { return r.Failed }),
	countColumn("processes", "", func(r *Row) uint64 { return r.Processes }),
	countColumn("threads", "", func(r *Row) uint64 { return r.Threads }),
	spanColumn("in_calls", "time in calls, over all threads", func(r *Row) int64 { return r.InCallsNS }),
	bytesColumn("read", "by calls", func(r *Row) uint64 { return r.Read }),
	bytesColumn("written", "by calls", func(r *Row) uint64 { return r.Written }),
	bytesColumn("content_moved", "content that calls moved", func(r *Row) uint64 { return r.Moved }),
	bytesColumn("content_unique", "of it, different", func(r *Row) uint64 { return r.Unique }),

	countColumn("lost", "records or events that are known to be lost", func(r *Row) uint64 { return r.Lost }),
	lossesColumn("losses", "by reason", func(r *Row) map[string]uint64 { return r.Losses }),
	flagColumn("incomplete", "the recording did not end in order, or something was lost", func(r *Row) bool { return r.Incomplete }),
	textColumn("reason", "why it is incomplete", func(r *Row) string { return r.Reason }),
	countColumn("damaged", "parts of the tape that could not be read", func(r *Row) uint64 { return r.Damaged }),
	textColumn("begins", "why a part of a longer recording begins there", func(r *Row) string { return r.Begins }),
	textColumn("ends", "why it ends there", func(r *Row) string { return r.Ends }),
	textColumn("level", "what an agent kept: content, hashes, metadata or counters", func(r *Row) string { return r.Level }),

	usersColumn(),
	listColumn("commands", "comm", "names of processes, up to 64", func(r *Row) []string { return r.Commands }),
	textColumn("command", "what was recorded", func(r *Row) string { return r.Command }),
	textColumn("program", "that sealed the tape", func(r *Row) string { return r.Program }),
	textColumn("backend", "of the recorder: ebpf, ptrace, …", func(r *Row) string { return r.Backend }),
	textColumn("kernel", "of the host", func(r *Row) string { return r.Kernel }),
	textColumn("arch", "of the host", func(r *Row) string { return r.Arch }),
	textColumn("boot_id", "of the host's kernel", func(r *Row) string { return r.BootID }),
	textColumn("content", "what was kept of content", func(r *Row) string { return r.Content }),
	flagColumn("anonymised", "not as it was recorded", func(r *Row) bool { return r.Anonymised }),

	mapColumn("ops", "calls by operation", func(r *Row) map[string]uint64 { return r.Ops }),
	mapColumn("ops_failed", "of these, failed", func(r *Row) map[string]uint64 { return r.OpsFailed }),
	mapColumn("errors", "failures by the name of the error", func(r *Row) map[string]uint64 { return r.Errors }),
	mapColumn("p50_ns", "median time by operation", func(r *Row) map[string]uint64 { return r.P50NS }),
	mapColumn("p99_ns", "99th percentile of the time by operation", func(r *Row) map[string]uint64 { return r.P99NS }),
	mapColumn("max_ns", "longest time by operation", func(r *Row) map[string]uint64 { return r.MaxNS }),
	mapColumn("patterns", "accesses of files: read_only, write_only, read_write _ whole, sequential, random", func(r *Row) map[string]uint64 { return r.Patterns }),
	mapColumn("pattern_bytes", "what these moved", func(r *Row) map[string]uint64 { return r.PatternBytes }),
	sizesColumn("read_sizes", func(r *Row) []uint64 { return r.ReadSizes }),
	sizesColumn("write_sizes", func(r *Row) []uint64 { return r.WriteSizes }),

	countColumn("sessions", "stretches of time in which files were used", func(r *Row) uint64 { return r.Sessions }),
	countColumn("sessions_low", "of these, with low activity", func(r *Row) uint64 { return r.Low }),
	countColumn("sessions_medium", "with medium activity", func(r *Row) uint64 { return r.Medium }),
	countColumn("sessions_high", "with high activity", func(r *Row) uint64 { return r.High }),
	spanColumn("active", "time in sessions", func(r *Row) int64 { return r.ActiveNS }),

	countColumn("files", "regular files that calls were about", func(r *Row) uint64 { return r.Files }),
	countColumn("small_files", "of these, below 4096 bytes", func(r *Row) uint64 { return r.Small }),
	countColumn("made", "files that were made", func(r *Row) uint64 { return r.Made }),
	countColumn("removed", "files that were removed", func(r *Row) uint64 { return r.Removed }),
	spanColumn("life_p50", "median life of files that were made and removed", func(r *Row) int64 { return r.LifeP50NS }),
	spanColumn("life_max", "the longest", func(r *Row) int64 { return r.LifeMaxNS }),
	listColumn("hot_files", "hot", "the ten files with the most bytes moved", func(r *Row) []string { return r.HotFiles }),
	countColumn("syncs", "of files", func(r *Row) uint64 { return r.Syncs }),
	countColumn("small_writes", "below 4096 bytes, right behind one another", func(r *Row) uint64 { return r.SmallWrites }),
	bytesColumn("reread", "read again by the same process, and the same", func(r *Row) uint64 { return r.Reread }),
	bytesColumn("rewritten", "the same as what was there", func(r *Row) uint64 { return r.Rewritten }),
	bytesColumn("unsynced", "written and in the end not synced", func(r *Row) uint64 { return r.Unsynced }),
	countColumn("never_synced", "files that were written and never synced", func(r *Row) uint64 { return r.NeverSynced }),
	countColumn("durability_warnings", "renames before a sync", func(r *Row) uint64 { return r.DurabilityWarnings }),
}

// sizesColumn is for other engines: filters do not ask for it.
func sizesColumn(name string, f func(*Row) []uint64) column {
	return column{name, "UBIGINT[]", predicate.Column{}, func(r *Row) any { return f(r) }}
}

func usersColumn() column {
	return column{"users", "UINTEGER[]", predicate.Column{Name: "user", Aliases: []string{"users"},
		Kind: predicate.ColumnNumber, Several: true, About: "numbers of users (uid), up to 64"},
		func(r *Row) any { return append([]uint32{}, r.Users...) }}
}

// StoreColumns returns the columns of rows as files have them.
func StoreColumns() (list []store.Column) {
	for i := range columns {
		list = append(list, store.Column{Name: columns[i].name, Type: columns[i].typ})
	}
	return list
}

// Fields are what filters can ask for.
func Fields() (list []predicate.Column) {
	for i := range columns {
		if columns[i].field.Name != "" {
			list = append(list, columns[i].field)
		}
	}
	return list
}

// values are the row as a file has it.
func (r *Row) values() (list []any) {
	for i := range columns {
		list = append(list, columns[i].value(r))
	}
	return list
}
