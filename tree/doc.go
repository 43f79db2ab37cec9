// SPDX-License-Identifier: Apache-2.0

// Package tree keeps manifests of directory trees: it takes them from a live
// file system, encodes them as JSON lines, compares two of them, and recreates a
// tree from one.
//
// A manifest may be complete (a snapshot of a directory), partial (the paths that
// a recording touched) or inferred (the initial tree that a replay needs before its
// first event). Each entry therefore says which of its attributes are known; an
// attribute that is not known is zero, is not encoded, not restored and not
// compared.
//
//	         Take, TakePaths                    Restore
//	live tree ───────────────▶ Manifest ───────────────────▶ live tree
//	                │           │  ▲  │                          ▲
//	           Sink │    Encode │  │  │ Compare                  │ content(id)
//	                ▼           ▼  │  ▼                          │
//	      content store    JSON lines  []Difference        content store
//
// # Promises
//
//   - Take never follows a symbolic link below its root, never opens anything but
//     directories and regular files, and does not enter pseudo file systems such as
//     proc. A rename that races with it cannot lead it outside the root. What it
//     could not read becomes a Note in the manifest, not silence.
//   - Restore never creates, changes or removes anything outside its root, however
//     hostile the manifest is. It replaces nothing: a file that is already there is
//     an error, a directory is used as it is.
//   - Decode treats every byte as hostile. It returns either a valid manifest or an
//     error, and its memory is bounded by the Max constants.
//   - What Encode accepts, Decode returns unchanged.
//
// # What it does not promise
//
//   - A manifest is not an atomic picture of a tree that changes meanwhile. Files
//     that were seen to change are noted.
//   - Space that was allocated but never written (fallocate) is a hole here, as
//     SEEK_DATA reports it.
//   - Inode flags (chattr), quotas, access and change times are not kept.
//   - Restore gives the modes, owners, capabilities and device nodes that the
//     manifest asks for, like tar as root does. Inside the root that may be a set-uid
//     program or a node that leads to a disk: for tapes of strangers set NoDevices
//     and mount the place nodev,nosuid.
//
// The package knows nothing of events, tapes or stores: where content lies is a
// number that a sink gave out and that means nothing here.
//
// # The encoded form, version 1
//
// One JSON object per line, each at most MaxLineBytes long, fields that are not
// known to the reader are skipped, and so are lines of another kind:
//
//	{"format":"iotape.tree","version":1,"root":"/srv/db"}     first line
//	{"path":"a","type":"f","mode":"0644","uid":0,"gid":0,     one per entry, in the order of
//	 "mtime":1700000000000000000,"size":9000,"hash":"ab…",    ComparePaths; a field is present
//	 "content":true,"chunks":[[0,4096,7,2],[8192,808,3]],     if and only if it is known
//	 "xattrs":[{"name":"user.k","value":"dg=="}],"nlink":1}
//	{"more":[[16384,4096,9]]}                                 further chunks of the entry above
//	{"note":"permission denied","path":"b"}                   what could not be learnt
//	{"end":true,"entries":1,"notes":1}                        last line; without it the manifest
//	                                                          is truncated
//
// A chunk is [offset, length, id] or, for n whole chunks of 4096 bytes with
// consecutive offsets and ids, [offset, 4096, id, n] with n at most 256. Text that
// is not UTF-8 is in the field of the same name with 64 appended (path64, link64,
// target64, name64, root64), as base64. Times are nanoseconds since 1970, modes
// octal, hashes BLAKE3-256 in hexadecimal of the whole content with holes read as
// zeros. A file of 1 GiB or more has the field blocks in place of hash: see LargeBytes.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package tree
