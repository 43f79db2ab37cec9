// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/analyze/diff"
	"github.com/iotape/iotape/analyze/explain"
	"github.com/iotape/iotape/analyze/processtree"
	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/fleet/broker"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/format/convert"
	"github.com/iotape/iotape/format/script"
	"github.com/iotape/iotape/internal/testenv"
	"github.com/iotape/iotape/pipe/tool"
	"github.com/iotape/iotape/record/tracer/control"
	"github.com/iotape/iotape/replay"
	"github.com/iotape/iotape/transform/anon"
)

// documented is a row of docs/json.md.
type documented struct {
	name, kind string
	fits       *regexp.Regexp
	above      *regexp.Regexp // the objects and arrays that it is in
}

// elsewhere are the sections of docs/json.md whose fields another page has, as code words.
var elsewhere = map[string]string{
	"print": "print.md", "trace": "print.md", "tail": "print.md", "record --print-json": "print.md",
	"catalogue list": "catalogue.md", "catalogue find": "catalogue.md", "query": "query.md",
}

// readJSONDoc returns the rows of the sections of docs/json.md, by command.
func readJSONDoc(t *testing.T) map[string][]documented {
	t.Helper()
	text, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]documented{}
	for _, part := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		rows := []documented{}
		for line := range strings.SplitSeq(body, "\n") {
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			if len(cells) != 3 || !strings.HasPrefix(cells[0], "`") {
				continue
			}
			for name := range strings.SplitSeq(cells[0], ", ") {
				name = strings.Trim(name, "`")
				rows = append(rows, newDocumented(name, cells[1]))
			}
		}
		command := "" // of "tracers start, stop"
		for name := range strings.SplitSeq(title, ", ") {
			if first, _, _ := strings.Cut(command, " "); first == "tracers" && !strings.Contains(name, " ") {
				name = first + " " + name
			}
			command = name
			sections[name] = rows
		}
	}
	return sections
}

func newDocumented(name, kind string) documented {
	pattern := regexp.QuoteMeta(name)
	pattern = strings.ReplaceAll(pattern, `\*\*`, `.+`)
	pattern = strings.ReplaceAll(pattern, `\*`, `[^.\[\]]+`)
	above := []string{}
	for i := range pattern {
		if strings.HasPrefix(pattern[i:], `\.`) {
			above = append(above, pattern[:i], strings.TrimSuffix(pattern[:i], `\[\]`))
		}
	}
	return documented{name, kind, regexp.MustCompile("^(" + pattern + `)(\[\])*$`),
		regexp.MustCompile("^(" + strings.Join(above, "|") + ")$")}
}

// sectionOf returns the section of a command line: that with the most words of it.
func sectionOf(sections map[string][]documented, line string) string {
	best, most := "", 0
	words := strings.Fields(line)
	for name := range sections {
		has := strings.Fields(name)
		command := 1
		if len(has) > 1 && !strings.HasPrefix(has[1], "-") {
			command = 2
		}
		if len(words) < command || !slices.Equal(has[:command], words[:command]) {
			continue
		}
		all := !slices.ContainsFunc(has, func(w string) bool { return !slices.Contains(words, w) })
		if all && len(has) > most {
			best, most = name, len(has)
		}
	}
	return best
}

// jsonFields are the fields of JSON values: their paths, with [] for the elements of an array, and their types.
type jsonFields map[string]string

func (f jsonFields) add(path string, v any) {
	kind := "null"
	switch v := v.(type) {
	case map[string]any:
		kind = "object"
		for name, field := range v {
			f.add(strings.TrimPrefix(path+"."+name, "."), field)
		}
	case []any:
		kind = "array"
		for _, element := range v {
			f.add(path+"[]", element)
		}
	case bool:
		kind = "boolean"
	case float64:
		kind = "number"
	case string:
		kind = "string"
	}
	if f[path] == "" || f[path] == "null" {
		f[path] = kind
	}
}

// ofType adds the fields that a Go type can have.
func (f jsonFields) ofType(path string, typ reflect.Type, within []reflect.Type) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	own := typ.Implements(reflect.TypeFor[json.Marshaler]()) ||
		reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Marshaler]())
	switch {
	case own || slices.Contains(within, typ):
		f[path] = ""
	case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array:
		f.ofType(path+"[]", typ.Elem(), within)
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-" || !field.IsExported() && !field.Anonymous:
			case name == "" && field.Anonymous:
				f.ofType(path, field.Type, append(within, typ))
			default:
				if name == "" {
					name = field.Name
				}
				f.ofType(strings.TrimPrefix(path+"."+name, "."), field.Type, append(within, typ))
			}
		}
	default:
		f[path] = ""
	}
}

// children are levels of the tree of processes.
var children = regexp.MustCompile(`(\.children\[\])+`)

// undocumented returns the fields that a section does not have, or has with another type.
func (f jsonFields) undocumented(rows []documented) (list []string) {
	for path, kind := range f {
		path = children.ReplaceAllString(path, "")
		if path == "" || path == "[]" {
			continue
		}
		i := slices.IndexFunc(rows, func(d documented) bool { return d.fits.MatchString(path) })
		above := slices.ContainsFunc(rows, func(d documented) bool { return d.above.MatchString(path) })
		switch {
		case i < 0 && !above:
			list = append(list, path)
		case i >= 0 && !fitsKind(rows[i].kind, kind, strings.HasSuffix(path, "[]")):
			list = append(list, path+" is "+kind+", documented is "+rows[i].kind)
		}
	}
	slices.Sort(list)
	return list
}

// fitsKind reports whether a documented type has values of a JSON type.
func fitsKind(doc, kind string, element bool) bool {
	switch {
	case kind == "" || kind == "null" || element || doc == "any":
		return true
	case kind == "number":
		return strings.Contains(doc, "integer") || strings.Contains(doc, "number")
	}
	return strings.Contains(doc, kind) || kind == "object" && strings.HasPrefix(doc, "o,") ||
		kind == "array" && strings.HasSuffix(doc, ", a")
}

// TestJSONDocumented runs every command with --json, and looks for the fields in docs/json.md.
func TestJSONDocumented(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it runs every command with --json")
	sections := readJSONDoc(t)
	h := newHostile(t)
	ran := map[string]bool{}
	for _, line := range everyCommand {
		if !strings.Contains(line, "json ") && !strings.HasSuffix(line, "json") || strings.HasSuffix(line, ".json") {
			if strings.HasPrefix(line, "catalogue") || strings.HasPrefix(line, "lake add") ||
				strings.HasPrefix(line, "collector enrol db7") {
				_ = h.line(t, line).Run() // the others need what it makes
			}
			continue
		}
		section := sectionOf(sections, line)
		if section == "" {
			t.Errorf("%s: no section of docs/json.md", line)
			continue
		}
		ran[section] = true
		fields := h.jsonOf(t, line)
		if page := elsewhere[section]; page != "" {
			for _, name := range notOnPage(t, page, fields) {
				t.Errorf("%s: docs/%s does not have %s", line, page, name)
			}
			continue
		}
		for _, what := range fields.undocumented(sections[section]) {
			t.Errorf("%s: section %s of docs/json.md: %s", line, section, what)
		}
	}
	if len(ran) < 30 {
		t.Errorf("%d sections are tried, want 30 or more: %v", len(ran), slices.Sorted(maps.Keys(ran)))
	}
}

// jsonOf returns the fields that a command line prints.
func (h *hostileTapes) jsonOf(t *testing.T, line string) jsonFields {
	t.Helper()
	cmd := h.line(t, line)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", line, err)
	}
	in := &out
	if strings.HasPrefix(line, "trace ") || strings.HasPrefix(line, "record") {
		in = &bytes.Buffer{}
		for l := range bytes.Lines(errs.Bytes()) { // what the program writes stands between
			if bytes.HasPrefix(l, []byte(`{"`)) {
				in.Write(l)
			}
		}
	}
	fields, d, n := jsonFields{}, json.NewDecoder(in), 0
	for ; ; n++ {
		var v any
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%s: no JSON: %v", line, err)
		}
		fields.add("", v)
	}
	if n == 0 {
		t.Errorf("%s: no output: %s", line, errs.Bytes())
	}
	return fields
}

// notOnPage returns the fields, on the first level and in files, that a page of docs/ does not have as code words.
func notOnPage(t *testing.T, page string, fields jsonFields) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	for path := range fields {
		name := strings.TrimSuffix(strings.TrimPrefix(path, "files[]."), "64")
		known := name == "" || page == "query.md" || strings.ContainsAny(name, ".[")
		if !known && !strings.Contains(string(text), "`"+name+"`") {
			list = append(list, path)
		}
	}
	return list
}

// TestJSONTypesDocumented looks for what objects can have, whether it was seen or not.
func TestJSONTypesDocumented(t *testing.T) {
	t.Parallel()
	sections := readJSONDoc(t)
	for section, typ := range map[string]reflect.Type{
		"stat": reflect.TypeFor[report.Stat](), "stat --by-note": reflect.TypeFor[report.Phases](),
		"ps": reflect.TypeFor[processtree.Tree](), "diff": reflect.TypeFor[diff.Report](),
		"explain-filter": reflect.TypeFor[explain.Filter](), "replay": reflect.TypeFor[replay.Report](),
		"replay --dry-run": reflect.TypeFor[replay.Plan](), "fleet": reflect.TypeFor[collector.Fleet](),
		"collector keys": reflect.TypeFor[broker.Key](), "tracers list": reflect.TypeFor[[]control.Info](),
		"tracers show": reflect.TypeFor[control.TracerStatus](), "convert": reflect.TypeFor[convert.Result](),
		"pipe --check": reflect.TypeFor[tool.Checked](), "anonymise": reflect.TypeFor[anon.Survey](),
		"script": reflect.TypeFor[script.Written](),
	} {
		fields := jsonFields{}
		fields.ofType("", typ, nil)
		if section == "replay" { // in the place of its differences of trees it writes others
			maps.DeleteFunc(fields, func(path, _ string) bool { return strings.HasPrefix(path, "tree[]") })
		}
		for _, what := range fields.undocumented(sections[section]) {
			t.Errorf("section %s of docs/json.md: %s", section, what)
		}
	}
}

// TestJSONDocPossible looks for documented fields that no source has, and for commands that have --json and no section.
func TestJSONDocPossible(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	quoted := regexp.MustCompile(`"([a-z0-9_]+)(,omit[a-z]+)?"`)
	for _, dir := range []string{"analyze", "cmd", "causal", "event", "fleet", "format", "model", "pipe", "predicate",
		"record", "replay", "store", "trace", "transform"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			for _, m := range quoted.FindAllSubmatch(b, -1) {
				words[string(m[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	sections := readJSONDoc(t)
	rows := 0
	for section, list := range sections {
		for _, d := range list {
			rows++
			name := d.name[strings.LastIndexByte(d.name, '.')+1:]
			if name = strings.TrimSuffix(name, "[]"); !strings.Contains(name, "*") && !words[name] {
				t.Errorf("section %s of docs/json.md: no source has %q", section, d.name)
			}
		}
	}
	if rows < 400 {
		t.Errorf("docs/json.md has %d fields, want 400 or more", rows)
	}
	for name, help := range helpTexts(t) {
		if strings.Contains(help, "  --json ") && sectionOf(sections, name+" --check --json") == "" {
			t.Errorf("%s has --json, and docs/json.md has no section of it", name)
		}
	}
}
