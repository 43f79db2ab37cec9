package main

// parseAggregate reads the table of the assembly driver aggregate, and makes what
// startAggregate is called with. It is nil where there is no such driver.
var parseAggregate func(table map[string]any) (any, error)
