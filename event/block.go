// SPDX-License-Identifier: Apache-2.0

package event

// Flags of requests to block devices (block_read and its like): what the file system said of them
// (linux/blk_types.h).
//
// A request is what file systems, the page cache and programs that use a device directly ask a device for.
// Its event begins when the driver gets it, and ends when the device has done it; the thread is the one that
// gave it to the driver, often one of the kernel's own. "position" is its place on the whole disk in bytes.
// "file" and "offset" are of the first page of the page cache that it is about; requests without a file are
// for a file system's own data (a journal, tables), for the memory of programs (O_DIRECT), or flushes.
const (
	BlockSync       = 1 << 0 // somebody waits for it
	BlockMeta       = 1 << 1 // it is for the file system's own data
	BlockFUA        = 1 << 2 // it is done when it is on the medium
	BlockPreFlush   = 1 << 3 // the device's cache is to be on the medium before
	BlockAhead      = 1 << 4 // read before anybody asked
	BlockBackground = 1 << 5 // written back by the kernel of its own accord
	BlockZeroes     = 1 << 6 // of block_discard: writes zeros
)
