package main

import (
	"context"

	"github.com/iotape/iotape/record/capture"
	"github.com/iotape/iotape/record/tracer"
	"github.com/iotape/iotape/trace"
)

// assembling is an assembly driver at work: stream is a tracerOutput.
type assembling interface {
	tracer.Assembly
	// discard takes away what was made, for a recording that did not begin.
	discard()
	// finish makes what is left to make after Close, and says in a line what came of it.
	// final: the target has ended.
	finish(ctx context.Context, res *capture.Result, counts tracer.Counts, final bool) (line string, err error)
}

// assemblyJob is what a driver is to do.
type assemblyJob struct {
	c        *console
	name     string           // of the tracer
	settings any              // what parse has made of the driver's table
	filter   tracer.Filter    // records that it cannot pick are left out; the driver does the rest
	head     *trace.Head      // of the recording: what a stream of the records would begin with
	output   recordPlan       // layers, and where to
	target   *capture.Options // what is recorded
}

// assemblyDriver is a driver other than stream.
type assemblyDriver struct {
	// parse reads the driver's table in a configuration. An error with a method Key() string
	// is shown at that key.
	parse func(table map[string]any) (any, error)
	// open begins. It may be asked again for the same tracer, for a recording after another.
	// What it returns gets records without content.
	open func(job *assemblyJob) (assembling, error)
}

// aggregateDriver is the driver of [tracer.aggregate].
var aggregateDriver = assemblyDriver{parseCounting, openCounting}
