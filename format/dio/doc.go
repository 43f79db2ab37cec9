// SPDX-License-Identifier: Apache-2.0

// Package dio imports the events of DIO (dsrhaslab/dio): JSON lines, as its file writer
// makes them and as they lie in Elasticsearch.
//
// An event becomes the system call that it is; sched_process_fork and sched_process_exit
// become the beginnings and ends of threads. Descriptors get the device and inode of the
// file_tag and, from the EventPath records, the path of the file. What an event says
// beyond its call (signatures of content, the ends of a connection) stands in a note
// behind it, see Note.
//
// DIO says what a program did, not all of how: names behind a directory's descriptor are
// taken as if from the working directory, a vector is one element, sizes and permissions
// of files are unknown.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package dio
