// SPDX-License-Identifier: Apache-2.0

package event

// Flags of mmap_pread: what kind of mapping it was, and of access.
//
// An mmap_pread says that pages of a file became readable through a mapping when the
// program touched one of them: "fault" is the file offset of that page. All the
// others were mapped by the kernel of its own accord (fault-around), because they
// were in the page cache: nobody asked for them, though the program may have read
// them since. The length is in whole pages, the result in bytes up to the end of
// the file.
//
// An mmap_pwrite says what a range of a file holds that programs stored to through
// a shared mapping. It stands where the content was looked at: before the return
// of the call that makes it matter (msync, munmap, fsync, a read of the file, …),
// or before the end of the process. Its thread is the one that made that call.
const (
	MappedShared = 1 << 0 // MAP_SHARED; without it, MAP_PRIVATE
	MappedStore  = 1 << 1 // the access was a store, into the program's copy of the page
	MappedCode   = 1 << 2 // of a file that is mapped to be executed
	MappedInCall = 1 << 3 // the access was the kernel's, in a system call of the thread
)
