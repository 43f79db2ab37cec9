// SPDX-License-Identifier: Apache-2.0

package bench

// A target is what a way should cost on a class of workloads.
type target struct {
	class Class
	way   string
	goal  float64 // greatest ratio to untraced; 0: none for a single workload
	// published is what others have published for the same: ratios, or time added
	// to a call.
	published string
}

// The goals are the project's own; see docs/performance.md for whose the published
// figures are.
var targets = []target{
	{Database, "metadata", 1.05, "1.05–1.17"},
	{Database, "full", 1.15, "1.8–2.3"},
	{Database, "strace", 0, "5–15"},
	{Program, "metadata", 1.05, "1.05–1.17"},
	{Build, "metadata", 1.02, "1.02–1.07"},
	{Build, "full", 1.02, "1.02–1.07"},
	{Synthetic, "metadata", 1.05, "1.05–1.17"},
	{Loop, "metadata", 3, ""},
	{Loop, "full", 3, ""},
	{Loop, "strace", 0, "+42 µs"},
	{Loop, "perf", 0, "+3 to 5 µs"},
	{Loop, "bpftrace", 0, "+1.5 µs"},
}

// Goals for the median over all programs: the databases, programs and builds.
var medianGoals = map[string]float64{"metadata": 1.05, "full": 1.10}

func (c Class) isProgram() bool { return c == Database || c == Program || c == Build }

func targetOf(c Class, way string) target {
	for _, t := range targets {
		if t.class == c && t.way == way {
			return t
		}
	}
	return target{}
}
