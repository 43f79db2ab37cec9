// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// The document, as it is written. docs/tracers.md has what its keys mean, and Example.
type (
	document struct {
		Input   *inputTable   `toml:"input"`
		Capture captureTable  `toml:"capture"`
		Control controlTable  `toml:"control"`
		Tracer  []tracerTable `toml:"tracer"`
	}

	inputTable struct {
		Command []string    `toml:"command"`
		PID     []int       `toml:"pid"`
		Cgroup  string      `toml:"cgroup"`
		All     bool        `toml:"all"`
		Mount   *mountTable `toml:"mount"`

		User     string `toml:"user"`
		Duration string `toml:"duration"`
	}

	mountTable struct {
		Lower string `toml:"lower"`
		At    string `toml:"at"`
		Cache string `toml:"cache"`
	}

	captureTable struct {
		Backend    string `toml:"backend"`
		OnOverflow string `toml:"on-overflow"`
		Ring       string `toml:"ring"`
		Mmap       string `toml:"mmap"`
		Content    string `toml:"content"`
		Wakeups    bool   `toml:"wakeups"`
	}

	controlTable struct {
		Name    string `toml:"name"`
		Enabled *bool  `toml:"enabled"`
		Late    *bool  `toml:"late"`
	}

	tracerTable struct {
		Name       string         `toml:"name"`
		Filter     string         `toml:"filter"`
		FilterFile string         `toml:"filter-file"`
		Start      *bool          `toml:"start"`
		Input      *inputTable    `toml:"input"`
		Stream     *streamTable   `toml:"stream"`
		Aggregate  map[string]any `toml:"aggregate"`
		Output     outputTable    `toml:"output"`
	}

	streamTable struct {
		Content    string   `toml:"content"`
		Omit       []string `toml:"omit"`
		Resolution string   `toml:"resolution"`
		Wakeups    bool     `toml:"wakeups"`
	}

	outputTable struct {
		Tape       string   `toml:"tape"`
		To         string   `toml:"to"`
		Pipe       []string `toml:"pipe"`
		Index      *bool    `toml:"index"`
		KeepStream bool     `toml:"keep-stream"`
		Redact     string   `toml:"redact"`
	}
)

// tables are the keys of each table, by its name.
var tables = func() map[string][]string {
	all := map[string][]string{}
	var walk func(name string, t reflect.Type)
	walk = func(name string, t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return
		}
		all[name] = []string{}
		for i := range t.NumField() {
			key := t.Field(i).Tag.Get("toml")
			all[name] = append(all[name], key)
			walk(strings.TrimPrefix(name+"."+key, "."), t.Field(i).Type)
		}
	}
	walk("", reflect.TypeFor[document]())
	return all
}()

func keysOf(table string) ([]string, bool) {
	keys, ok := tables[table]
	return keys, ok
}

// tableWith returns a table that has a key, one of a tracer if there is one; "" if none has.
func tableWith(key string) (found string) {
	for _, table := range slices.Sorted(maps.Keys(tables)) {
		of := strings.HasPrefix(table, "tracer")
		if slices.Contains(tables[table], key) && (found == "" || of && !strings.HasPrefix(found, "tracer")) {
			found = table
		}
	}
	return found
}
