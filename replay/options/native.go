// SPDX-License-Identifier: Apache-2.0

package options

// Native says what is repeated in the way that it was done, where another way does the
// same to files.
type Native struct {
	// Mmap reads and stores through mappings, instead of with pread and pwrite.
	Mmap bool
	// Requests makes reads, writes and syncs that were requests to an io_uring or to AIO
	// such requests, one at a time for each thread, instead of calls.
	Requests bool
}
