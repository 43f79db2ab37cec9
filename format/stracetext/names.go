package stracetext

import "iotape/event"

// Names of values inside structures (linux/stat.h, linux/fcntl.h,
// linux/openat2.h, linux/magic.h).

var statxMask = &event.Set{Name: "statx", Items: []event.Item{
	{Name: "STATX_ALL", Value: 0xfff}, {Name: "STATX_BASIC_STATS", Value: 0x7ff},
	{Name: "STATX_TYPE", Value: 1}, {Name: "STATX_MODE", Value: 2}, {Name: "STATX_NLINK", Value: 4}, {Name: "STATX_UID", Value: 8},
	{Name: "STATX_GID", Value: 0x10}, {Name: "STATX_ATIME", Value: 0x20}, {Name: "STATX_MTIME", Value: 0x40}, {Name: "STATX_CTIME", Value: 0x80},
	{Name: "STATX_INO", Value: 0x100}, {Name: "STATX_SIZE", Value: 0x200}, {Name: "STATX_BLOCKS", Value: 0x400}, {Name: "STATX_BTIME", Value: 0x800},
	{Name: "STATX_MNT_ID", Value: 0x1000}, {Name: "STATX_DIOALIGN", Value: 0x2000}, {Name: "STATX_MNT_ID_UNIQUE", Value: 0x4000},
}}

var fsTypes = &event.Set{Name: "fs", Items: []event.Item{
	{Name: "EXT2_SUPER_MAGIC", Value: 0xef53}, {Name: "XFS_SUPER_MAGIC", Value: 0x58465342}, {Name: "BTRFS_SUPER_MAGIC", Value: 0x9123683e},
	{Name: "TMPFS_MAGIC", Value: 0x01021994}, {Name: "OVERLAYFS_SUPER_MAGIC", Value: 0x794c7630}, {Name: "NFS_SUPER_MAGIC", Value: 0x6969},
	{Name: "FUSE_SUPER_MAGIC", Value: 0x65735546}, {Name: "PROC_SUPER_MAGIC", Value: 0x9fa0}, {Name: "SYSFS_MAGIC", Value: 0x62656572},
	{Name: "CGROUP2_SUPER_MAGIC", Value: 0x63677270}, {Name: "DEVPTS_SUPER_MAGIC", Value: 0x1cd1}, {Name: "PIPEFS_MAGIC", Value: 0x50495045},
	{Name: "SOCKFS_MAGIC", Value: 0x534f434b}, {Name: "RAMFS_MAGIC", Value: 0x858458f6}, {Name: "ZFS_SUPER_MAGIC", Value: 0x2fc12fc1},
}}

var lockTypes = &event.Set{Name: "lock", Items: []event.Item{{Name: "F_RDLCK", Value: 0}, {Name: "F_WRLCK", Value: 1}, {Name: "F_UNLCK", Value: 2}}}

var seekNames = &event.Set{Name: "seek", Items: []event.Item{{Name: "SEEK_SET", Value: 0}, {Name: "SEEK_CUR", Value: 1}, {Name: "SEEK_END", Value: 2}}}

var resolveFlags = &event.Set{Name: "resolve", Items: []event.Item{
	{Name: "RESOLVE_NO_XDEV", Value: 1}, {Name: "RESOLVE_NO_MAGICLINKS", Value: 2}, {Name: "RESOLVE_NO_SYMLINKS", Value: 4},
	{Name: "RESOLVE_BENEATH", Value: 8}, {Name: "RESOLVE_IN_ROOT", Value: 0x10}, {Name: "RESOLVE_CACHED", Value: 0x20},
}}

var fdFlags = &event.Set{Name: "fd", Items: []event.Item{{Name: "FD_CLOEXEC", Value: 1}}}

// accessFlags are the flags of faccessat2, where 0x200 means something else than
// with unlinkat.
var accessFlags = &event.Set{Name: "access_flags", Items: []event.Item{
	{Name: "AT_SYMLINK_NOFOLLOW", Value: 0x100}, {Name: "AT_EACCESS", Value: 0x200}, {Name: "AT_EMPTY_PATH", Value: 0x1000},
}}

var direntTypes = &event.Set{Name: "dirent", Items: []event.Item{
	{Name: "DT_UNKNOWN", Value: 0}, {Name: "DT_FIFO", Value: 1}, {Name: "DT_CHR", Value: 2}, {Name: "DT_DIR", Value: 4}, {Name: "DT_BLK", Value: 6},
	{Name: "DT_REG", Value: 8}, {Name: "DT_LNK", Value: 10}, {Name: "DT_SOCK", Value: 12}, {Name: "DT_WHT", Value: 14},
}}

var socketFamilies = event.Lookup(event.OpSocket).Args[0].Set

// cloneSignalMask covers the signal in clone's flags.
const cloneSignalMask = 0xff
