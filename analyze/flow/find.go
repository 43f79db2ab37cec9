// SPDX-License-Identifier: Apache-2.0

package flow

import "context"

// A SelectError says that a text stands for nothing, see Select.
type SelectError struct{ Err error }

// Error returns the message of Err.
func (e *SelectError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SelectError) Unwrap() error { return e.Err }

// Find returns the ways from one place to another, or the moves of the same content as at
// same, where each is a text for Select, or "". Without any it returns nil. An error of type
// *SelectError is in a text.
func (f *Flow) Find(ctx context.Context, from, to, same string) (*Path, error) {
	var ids [3][]int
	for i, what := range []string{from, to, same} {
		if what == "" {
			continue
		}
		var err error
		if ids[i], err = f.Select(what); err != nil {
			return nil, &SelectError{err}
		}
	}
	switch {
	case same != "":
		return &Path{Start: ids[2], Moves: f.Same(ids[2])}, nil
	case from == "" && to == "":
		return nil, nil
	}
	return f.Path(ctx, ids[0], ids[1])
}
