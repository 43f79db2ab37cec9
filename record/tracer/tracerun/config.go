// SPDX-License-Identifier: Apache-2.0

package tracerun

import (
	"github.com/iotape/iotape/predicate"
	"github.com/iotape/iotape/predicate/source"
	"github.com/iotape/iotape/record/redact"
	"github.com/iotape/iotape/record/session"
	"github.com/iotape/iotape/record/tracer/config"
)

// ReadConfig reads a configuration from a file and checks its targets. input is what tracers
// record that do not say it; it may be nil. What is wrong with the configuration is an error
// of type config.Errors or *config.Error.
func ReadConfig(name string, input *config.Input) (*config.Config, error) {
	doc, err := source.Limited(name, config.MaxBytes)
	if err != nil {
		return nil, err
	}
	cfg, err := ParseConfig(name, doc, input)
	if err != nil {
		return nil, err
	}
	return cfg, CheckTargets(cfg)
}

// ParseConfig reads a configuration from a text; name is that of its file.
func ParseConfig(name, doc string, input *config.Input) (*config.Config, error) {
	return config.Parse(name, []byte(doc), &config.Options{
		Input: input,
		Filter: func(text string) (*predicate.Graph, error) {
			x, err := source.Parse(text)
			if err != nil {
				return nil, err
			}
			return predicate.Compile(x, session.FilterOptions())
		},
		FilterFile: source.Read,
		Aggregate:  ParseAggregate,
		Redact:     func(name string) (any, error) { return redact.Load(name) },
	})
}
