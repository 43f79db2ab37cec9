// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/iotape/iotape/internal/spell"
	"github.com/iotape/iotape/predicate"
)

// Error is what is wrong with a configuration, and where. Line and Column count from 1, the
// column in bytes.
type Error struct {
	File         string
	Line, Column int
	What         string
	Hint         string           // what was perhaps meant; "" if there is nothing to say
	Filter       *predicate.Error // that it is about; nil if it is none
}

// Error returns one line.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.What)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Unwrap returns the error of the filter.
func (e *Error) Unwrap() error {
	if e.Filter == nil {
		return nil
	}
	return e.Filter
}

// Errors are all that is wrong, in the order of the text. There is at least one.
type Errors []*Error

// Error returns one line for each.
func (l Errors) Error() string {
	var lines []string
	for _, e := range l {
		lines = append(lines, e.Error())
	}
	return strings.Join(lines, "\n")
}

// maxErrors bounds what is listed.
const maxErrors = 20

// tomlErrors makes errors of the TOML library's.
func (p *parser) tomlErrors(err error) Errors {
	var strict *toml.StrictMissingError
	var decode *toml.DecodeError
	switch {
	case errors.As(err, &strict):
		for i := range strict.Errors {
			e := &strict.Errors[i]
			line, column := e.Position()
			p.add(p.unknown(line, column, e.Key()))
		}
	case errors.As(err, &decode):
		line, column := decode.Position()
		p.add(&Error{Line: line, Column: column, What: reason(decode)})
	default:
		p.add(&Error{Line: 1, Column: 1, What: strings.TrimPrefix(err.Error(), "toml: ")})
	}
	return p.sorted()
}

// wrongType is how the library says that a value has the wrong type.
var wrongType = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`cannot (?:decode|unmarshal|store|assign|read)\D* (?:TOML|toml|a)?\s*(\S+) (?:in)?to ` +
			`.*?(?:of type |type )?(\S+)$`)
})

// reason puts what the library says into the words of this package.
func reason(e *toml.DecodeError) string {
	text := strings.TrimPrefix(e.Error(), "toml: ")
	if strings.Contains(text, "struct field") || strings.HasPrefix(text, "cannot decode") ||
		wrongType().MatchString(text) {
		name := strings.Join(e.Key(), ".")
		if name == "" {
			return "the value has the wrong type (" + text + ")"
		}
		return fmt.Sprintf("%s: the value has the wrong type (%s)", name, text)
	}
	return text
}

// unknown says that there is no such key, and which was perhaps meant.
func (p *parser) unknown(line, column int, key toml.Key) *Error {
	name := key[len(key)-1]
	table := strings.Join(key[:len(key)-1], ".")
	known, ok := keysOf(table)
	if !ok { // of a table that is itself unknown
		for i := 1; i < len(key); i++ {
			if known, ok = keysOf(strings.Join(key[:i], ".")); !ok {
				name, table = key[i-1], strings.Join(key[:i-1], ".")
				known, _ = keysOf(table)
				break
			}
		}
	}
	e := &Error{Line: line, Column: column, What: fmt.Sprintf("%s has no key %q", tableName(table), name)}
	if in := tableWith(name); in != "" {
		e.Hint = "it is a key of " + tableName(in)
	} else if near := spell.Nearest(name, known); near != "" {
		e.Hint = "did you mean " + near + "?"
	} else {
		e.Hint = "its keys are " + strings.Join(known, ", ")
	}
	return e
}

func tableName(table string) string {
	switch table {
	case "":
		return "the configuration"
	case "tracer":
		return "[[tracer]]"
	}
	return "[" + table + "]"
}

func (p *parser) add(e *Error) {
	e.File = p.file
	p.errs = append(p.errs, e)
}

func (p *parser) sorted() Errors {
	slices.SortStableFunc(p.errs, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if len(p.errs) > maxErrors {
		return p.errs[:maxErrors]
	}
	return p.errs
}
