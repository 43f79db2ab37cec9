// SPDX-License-Identifier: Apache-2.0

// Package source reads filters from where users have them: texts and files, in the language
// of package predicate, with the options of strace (strace:OPTIONS), or as a file of DFSTrace
// (dfstrace:FILE).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package source

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/iotape/iotape/predicate"
)

// All returns the conjunction of expressions and of that in a file, "" if there is none. It
// is nil if none is given. Errors in an expression are of type *Error.
func All(texts []string, file string) (*predicate.Expr, error) {
	if file != "" {
		b, err := Read(file)
		if err != nil {
			return nil, err
		}
		texts = append(texts[:len(texts):len(texts)], b)
	}
	var all *predicate.Expr
	for _, text := range texts {
		x, err := Parse(text)
		if err != nil {
			return nil, err
		}
		all = predicate.And(all, x)
	}
	return all, nil
}

// An Error says what is wrong with an expression.
type Error struct{ Err error }

// Error returns the message of Err.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// prefix is of filter files of DFSTrace.
const prefix = "dfstrace:"

// Parse reads one expression. Errors in it are of type *Error.
func Parse(text string) (*predicate.Expr, error) {
	if file, ok := strings.CutPrefix(text, prefix); ok {
		b, err := Read(file)
		if err != nil {
			return nil, err
		}
		if text, err = predicate.DFSTrace(b); err != nil {
			return nil, &Error{err}
		}
	}
	x, err := predicate.Parse(text)
	if err != nil {
		return nil, &Error{err}
	}
	return x, nil
}

// Read reads a file with an expression, as Limited does.
func Read(name string) (string, error) { return Limited(name, predicate.MaxSource) }

// Limited reads a file, and of one that is longer than most bytes that and one more.
func Limited(name string, most int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(b), nil
}
