// Package effect says what a recorded call did to files, and what it told of them:
// the structures that it filled in, the names in a listing, where a copy inside the
// kernel began, which flags an open had. Everything that replays a tape, or finds out
// what it needs, reads events through it.
//
// It is pure: it looks at an event, and at nothing else.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package effect
