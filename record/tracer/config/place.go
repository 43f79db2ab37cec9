// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// places are where the keys and values of a document stand, by their path, as
// tracer[1].output.pipe[0].
type places map[string]place

type place struct {
	key   int    // offset; -1 in an array
	value int    // offset; -1 if the library does not say
	text  string // of a string, as it is written, with its quotes
}

// findPlaces walks a document. Of one that is wrong it has what comes before.
func findPlaces(doc []byte) places {
	w := walker{all: places{}, count: map[string]int{}}
	w.p.Reset(doc)
	prefix := ""
	for w.p.NextExpression() {
		switch e := w.p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			prefix = w.table(e)
		case unstable.KeyValue:
			w.pair(prefix, e)
		}
	}
	return w.all
}

type walker struct {
	p     unstable.Parser
	all   places
	count map[string]int // elements of arrays of tables
}

// table returns the path of a table that begins.
func (w *walker) table(e *unstable.Node) (path string) {
	at := -1
	for it := e.Key(); it.Next(); {
		n := it.Node()
		path = join(path, string(n.Data))
		at = int(n.Raw.Offset)
		if it.IsLast() && e.Kind == unstable.ArrayTable {
			w.count[path]++
		}
		if n := w.count[path]; n > 0 {
			path = fmt.Sprintf("%s[%d]", path, n-1)
		}
	}
	if _, known := w.all[path]; !known {
		w.all[path] = place{key: at, value: -1}
	}
	return path
}

func (w *walker) pair(prefix string, e *unstable.Node) {
	path, at := prefix, -1
	for it := e.Key(); it.Next(); {
		path = join(path, string(it.Node().Data))
		at = int(it.Node().Raw.Offset)
	}
	w.value(path, at, e.Value())
}

func (w *walker) value(path string, key int, n *unstable.Node) {
	v := place{key: key, value: -1}
	if n.Raw.Length > 0 {
		v.value = int(n.Raw.Offset)
	}
	if n.Kind == unstable.String {
		v.text = string(w.p.Raw(n.Raw))
	}
	w.all[path] = v
	switch n.Kind {
	case unstable.Array:
		i := 0
		for it := n.Children(); it.Next(); i++ {
			w.value(fmt.Sprintf("%s[%d]", path, i), -1, it.Node())
		}
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			w.pair(path, it.Node())
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// of returns where the value of a path stands; its key, or that of what it is in, if that
// is not known.
func (l places) of(path string) (place, bool) {
	for path != "" {
		if v, ok := l[path]; ok && (v.value >= 0 || v.key >= 0) {
			return v, true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return place{key: -1, value: -1}, false
}

// inside returns the offset in the document of a byte of a string's value.
func (v place) inside(pos int) (offset int, ok bool) {
	for _, quote := range []string{"'''", `"""`, "'", `"`} {
		body, found := strings.CutPrefix(v.text, quote)
		if !found {
			continue
		}
		if quote[0] == '"' && strings.Contains(body, `\`) || strings.Contains(body, "\r") {
			return 0, false // the value is not what is written
		}
		skip := len(quote)
		if len(quote) == 3 && strings.HasPrefix(body, "\n") {
			skip++
		}
		return v.value + skip + pos, true
	}
	return 0, false
}

// lineColumn returns the position of an offset, from 1.
func lineColumn(doc []byte, offset int) (line, column int) {
	before := doc[:min(max(offset, 0), len(doc))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}
