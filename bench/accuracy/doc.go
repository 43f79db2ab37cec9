// Package accuracy measures how well a replay on one storage system tells how long the
// application would take there: the study of //TRACE (Mesnier et al., FAST 2007, section
// 5). Each application is recorded once, on one storage system, and replayed on the
// others, in several modes; beside that, it really runs there.
//
//	apps.c ──run──▶ storage A, B, C, D          what is true
//	   └───record──▶ tape ──annotate──replay──▶ storage A, B, C, D, in each mode
//
// The storage systems are made on one machine (store.go): its disk, the disk with a
// limit of requests, and models of a disk with one arm and of a drive with many
// channels, which a file system in user space (slowfs) holds requests for.
//
// An error is that of the replay's time against the application's own on the same
// storage system, each the median of some runs. Nothing else may run on the machine.
package accuracy
