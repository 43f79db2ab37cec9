// SPDX-License-Identifier: Apache-2.0

package event

// Names of arguments of file and mount calls (linux/fcntl.h, linux/stat.h, linux/xattr.h, linux/mount.h,
// sys/mount.h, linux/quota.h).

var (
	xattrFlags = bits("xattr", "0",
		b("XATTR_CREATE", 1), b("XATTR_REPLACE", 2))
	statxMask = bits("statx", "0",
		b("STATX_ALL", 0xfff), b("STATX_BASIC_STATS", 0x7ff), b("STATX_TYPE", 1), b("STATX_MODE", 2), b("STATX_NLINK", 4), b("STATX_UID", 8),
		b("STATX_GID", 0x10), b("STATX_ATIME", 0x20), b("STATX_MTIME", 0x40), b("STATX_CTIME", 0x80), b("STATX_INO", 0x100), b("STATX_SIZE", 0x200),
		b("STATX_BLOCKS", 0x400), b("STATX_BTIME", 0x800), b("STATX_MNT_ID", 0x1000), b("STATX_DIOALIGN", 0x2000), b("STATX_MNT_ID_UNIQUE", 0x4000),
		b("STATX_SUBVOL", 0x8000), b("STATX_WRITE_ATOMIC", 0x10000), b("STATX_DIO_READ_ALIGN", 0x20000))
	mountFlags = bits("mount", "0",
		b("MS_RDONLY", 1), b("MS_NOSUID", 2), b("MS_NODEV", 4), b("MS_NOEXEC", 8), b("MS_SYNCHRONOUS", 0x10), b("MS_REMOUNT", 0x20), b("MS_MANDLOCK", 0x40),
		b("MS_DIRSYNC", 0x80), b("MS_NOSYMFOLLOW", 0x100), b("MS_NOATIME", 0x400), b("MS_NODIRATIME", 0x800), b("MS_BIND", 0x1000), b("MS_MOVE", 0x2000),
		b("MS_REC", 0x4000), b("MS_SILENT", 0x8000), b("MS_POSIXACL", 0x10000), b("MS_UNBINDABLE", 0x20000), b("MS_PRIVATE", 0x40000), b("MS_SLAVE", 0x80000),
		b("MS_SHARED", 0x100000), b("MS_RELATIME", 0x200000), b("MS_I_VERSION", 0x800000), b("MS_STRICTATIME", 0x1000000), b("MS_LAZYTIME", 0x2000000),
		b("MS_NOSEC", 0x10000000), b("MS_BORN", 0x20000000), b("MS_ACTIVE", 0x40000000), b("MS_NOUSER", 0x80000000))
	umountFlags = bits("umount", "0",
		b("MNT_FORCE", 1), b("MNT_DETACH", 2), b("MNT_EXPIRE", 4), b("UMOUNT_NOFOLLOW", 8))
	fsopenFlags = bits("fsopen", "0",
		b("FSOPEN_CLOEXEC", 1))
	fsmountFlags = bits("fsmount", "0",
		b("FSMOUNT_CLOEXEC", 1))
	fspickFlags = bits("fspick", "0",
		b("FSPICK_CLOEXEC", 1), b("FSPICK_SYMLINK_NOFOLLOW", 2), b("FSPICK_NO_AUTOMOUNT", 4), b("FSPICK_EMPTY_PATH", 8))
	fsconfigCommands = one("fsconfig",
		b("FSCONFIG_SET_FLAG", 0), b("FSCONFIG_SET_STRING", 1), b("FSCONFIG_SET_BINARY", 2), b("FSCONFIG_SET_PATH", 3), b("FSCONFIG_SET_PATH_EMPTY", 4),
		b("FSCONFIG_SET_FD", 5), b("FSCONFIG_CMD_CREATE", 6), b("FSCONFIG_CMD_RECONFIGURE", 7), b("FSCONFIG_CMD_CREATE_EXCL", 8))
	mountAttrs = bits("mount_attr", "0",
		b("MOUNT_ATTR_RDONLY", 1), b("MOUNT_ATTR_NOSUID", 2), b("MOUNT_ATTR_NODEV", 4), b("MOUNT_ATTR_NOEXEC", 8), b("MOUNT_ATTR_NOATIME", 0x10),
		b("MOUNT_ATTR_STRICTATIME", 0x20), b("MOUNT_ATTR_NODIRATIME", 0x80), b("MOUNT_ATTR_IDMAP", 0x100000), b("MOUNT_ATTR_NOSYMFOLLOW", 0x200000))
	moveMountFlags = bits("move_mount", "0",
		b("MOVE_MOUNT_F_SYMLINKS", 1), b("MOVE_MOUNT_F_AUTOMOUNTS", 2), b("MOVE_MOUNT_F_EMPTY_PATH", 4), b("MOVE_MOUNT_T_SYMLINKS", 0x10),
		b("MOVE_MOUNT_T_AUTOMOUNTS", 0x20), b("MOVE_MOUNT_T_EMPTY_PATH", 0x40), b("MOVE_MOUNT_SET_GROUP", 0x100), b("MOVE_MOUNT_BENEATH", 0x200))
	swapFlags = bits("swapon", "0",
		b("SWAP_FLAG_PREFER", 0x8000), b("SWAP_FLAG_DISCARD", 0x10000), b("SWAP_FLAG_DISCARD_ONCE", 0x20000), b("SWAP_FLAG_DISCARD_PAGES", 0x40000))
	sealFlags = bits("seal", "0",
		b("F_SEAL_SEAL", 1), b("F_SEAL_SHRINK", 2), b("F_SEAL_GROW", 4), b("F_SEAL_WRITE", 8), b("F_SEAL_FUTURE_WRITE", 0x10), b("F_SEAL_EXEC", 0x20))
	leaseTypes = one("lease",
		b("F_RDLCK", 0), b("F_WRLCK", 1), b("F_UNLCK", 2))
	notifyFlags = bits("dnotify", "0",
		b("DN_ACCESS", 1), b("DN_MODIFY", 2), b("DN_CREATE", 4), b("DN_DELETE", 8), b("DN_RENAME", 0x10), b("DN_ATTRIB", 0x20), b("DN_MULTISHOT", 0x80000000))
)
