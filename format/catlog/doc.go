// SPDX-License-Identifier: Apache-2.0

// Package catlog imports the event logs of Falcon and CAT: one format in three stages.
//
//	CatLog    what CatBpf and CatStrace write, a JSON object a line
//	Falcon    the same after the solver: id, dependency, dependencies and order
//	CAT       the same with data_similarities
//
// An event becomes the call that it stands for, and what has no place in a call stands
// in a note behind it (see Note): ids, dependencies, logical clocks, MinHash signatures,
// similarities, and for sockets both ends. Events that are no calls (shared variables,
// locks, log lines, handlers) are notes alone. Nothing of an event is left out.
//
// The formats say neither flags of opens, nor results of calls that failed, and often no
// descriptors: those that are missing are numbered from FirstMadeUp on.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package catlog
