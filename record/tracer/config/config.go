// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/iotape/iotape/pipe/chain"
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/tracer"
)

// Config is a configuration without mistakes.
type Config struct {
	File    string
	Capture Capture
	Control Control
	Tracers []*TracerSpec // at least one
	// Warnings are what is odd, and not wrong.
	Warnings Errors

	places places
	doc    []byte
}

// Capture says how is recorded, whatever the tracers want.
type Capture struct {
	Backend  string           // "auto", "ebpf", "interpose" or "ptrace"
	Overflow capture.Overflow // "" if not given
	Ring     int64            // bytes; 0 is the default
	Mmap     capture.Mmap     // "" if not given
	Content  *capture.Content // what tracers may ask for later; nil: what they do now
	Wakeups  bool             // likewise
}

// Control says who may change the tracers while they run.
type Control struct {
	Name string // of the socket; "" is the file's, without its end
	Off  bool   // nobody
	Late bool   // tracers can be added, stopped and started again
}

// TracerSpec is a tracer as it was configured.
type TracerSpec struct {
	Path   string // in the document: tracer[0]
	Name   string
	Input  *Input
	Start  bool             // from the beginning on
	Filter *predicate.Graph // nil: all
	// Aggregate is what Options.Aggregate made of the table; nil: the driver is stream.
	Aggregate  any
	Verbosity  tracer.Verbosity
	Resolution time.Duration // of the times of events; at least 1 ns
	Output     Output
}

// Input is what is recorded. Tracers with equal inputs share a capture.
type Input struct {
	Command []string
	PIDs    []int
	Cgroup  string
	All     bool
	Mount   *Mount

	User     string        // as whom the command runs; "" is who started iotape, or sudo
	Duration time.Duration // 0 is to the end

	path string
}

// Path returns where the input stands in the document, "" if it is none of it.
func (in *Input) Path() string { return in.path }

// Mount is a directory and where it is shown.
type Mount struct {
	Lower, At string
	Cache     time.Duration
}

// Output is where to a tracer's stream goes.
type Output struct {
	Tape       string      // name; "" is the tracer's
	To         string      // a sink instead of a tape; "": a tape
	Pipe       *chain.Spec // nil: no layers
	Index      bool        // of the tape
	KeepStream bool        // beside the tape
	Redact     any         `json:",omitempty"` // what Options.Redact made of the patterns; nil: nothing is masked
}

// Options say what a configuration cannot. Nil and zero values are the defaults.
type Options struct {
	Input *Input // of tracers that have none
	// Filter reads and checks a filter. Its error should be a *predicate.Error.
	Filter func(text string) (*predicate.Graph, error)
	// FilterFile reads a file with a filter.
	FilterFile func(name string) (string, error)
	// Aggregate reads the table of the assembly driver aggregate. An error with a method
	// Key() string, a key of the table, is shown there. Nil: there is no such driver.
	Aggregate func(table map[string]any) (any, error)
	// Redact reads the patterns of what a tracer masks: "builtin", or the name of a file.
	Redact func(name string) (any, error)
}

// MaxBytes is the longest configuration.
const MaxBytes = 1 << 20

// Parse reads a configuration. The error, if any, is Errors.
func Parse(file string, doc []byte, o *Options) (*Config, error) {
	p := &parser{file: file, doc: doc, o: o}
	if p.o == nil {
		p.o = &Options{}
	}
	if len(doc) > MaxBytes {
		return nil, Errors{{File: file, Line: 1, Column: 1,
			What: fmt.Sprintf("a configuration has at most %d bytes", MaxBytes)}}
	}
	var d document
	dec := toml.NewDecoder(bytes.NewReader(doc)).DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return nil, p.tomlErrors(err)
	}
	p.places = findPlaces(doc)
	c := p.config(&d)
	if len(p.errs) > 0 {
		return nil, p.sorted()
	}
	p.errs, c.Warnings = c.Warnings, nil
	c.Warnings = p.sorted()
	return c, nil
}

// Errorf returns an error about the value at a path, such as tracer[0].output.tape.
func (c *Config) Errorf(path, format string, args ...any) *Error {
	return newError(c.File, c.doc, c.places, path, fmt.Sprintf(format, args...))
}

// Has reports whether the document has a table or a key.
func (c *Config) Has(path string) bool {
	_, ok := c.places[path]
	return ok
}

// Warn adds a warning about the value at a path.
func (c *Config) Warn(path, format string, args ...any) {
	c.Warnings = append(c.Warnings, c.Errorf(path, format, args...))
}

func newError(file string, doc []byte, places places, path, what string) *Error {
	e := &Error{File: file, Line: 1, Column: 1, What: what}
	if v, ok := places.of(path); ok {
		at := v.value
		if at < 0 {
			at = v.key
		}
		e.Line, e.Column = lineColumn(doc, at)
	}
	return e
}

// Groups returns the tracers by what they record, in order: those of a group share a capture.
func (c *Config) Groups() [][]*TracerSpec {
	var groups [][]*TracerSpec
next:
	for _, t := range c.Tracers {
		for i, g := range groups {
			if g[0].Input.Same(t.Input) {
				groups[i] = append(g, t)
				continue next
			}
		}
		groups = append(groups, []*TracerSpec{t})
	}
	return groups
}

// Same reports whether two inputs are equal, wherever they were written.
func (in *Input) Same(other *Input) bool {
	a, b := *in, *other
	a.path, b.path = "", ""
	return reflect.DeepEqual(a, b)
}
