// SPDX-License-Identifier: Apache-2.0
/* The positions of open files, which are counted instead of asked for where nothing but calls
 * that are recorded here can move them.
 *
 * That is so for an open file that this process made, if since then no call can have made another
 * descriptor or process stand for it (files.epoch), if it is a regular file of a file system whose calls
 * move the position by what they return, and not opened to append. Calls that move it and that the
 * tracer saw, wholly or in part, make it unknown (files.moves); it is asked for once, and counted on.
 * Threads that share descriptors hold the descriptor's lock from before the call until it is counted. */
#pragma once
#include "layout.h"

enum {
	NR_FTRUNCATE = 77, NR_FSTATFS = 138, O_APPEND = 02000,
};
/* types of file systems (linux/magic.h) */
#define EXT4 0xef53
#define XFS 0x58465342
#define BTRFS 0x9123683e
#define F2FS 0xf2f52010
#define TMPFS 0x01021994
#define RAMFS 0x858458f6
#define OVERLAYFS 0x794c7630

INLINE u64 current(const u64 *of) { return *(const volatile u64 *)of; }

/* share is called before open files may come to be shared. */
INLINE void share(struct files *fs) { __sync_fetch_and_add(&fs->epoch, 1); }

/* steady reports whether calls on an object move its position by what they return. The kernel says so of
 * no file: some of /proc do not. So it is a matter of the file system. */
static s32 steady(struct files *fs, const struct object *o)
{
	struct {
		s64 type, rest[14];
	} st;
	u64 key = 2 * ((u64)o->dev + 1), *at = &fs->devices[o->dev % DEVICES], known = current(at);
	if ((o->mode & S_IFMT) != S_IFREG || o->flags & O_APPEND)
		return 0;
	if ((known & ~1ul) == key)
		return known & 1;
	if (own_call(NR_FSTATFS, o->fd, (s64)&st, 0, 0) < 0)
		return 0;
	switch (st.type) {
	case EXT4: case XFS: case BTRFS: case F2FS: case TMPFS: case RAMFS: case OVERLAYFS:
		key |= 1;
	}
	*(volatile u64 *)at = key;
	return key & 1;
}

/* counts reports whether nothing but calls that are counted moves the position of a descriptor's open file. */
INLINE s32 counts(struct files *fs, const struct descriptor *d, const struct object *o)
{
	return current(&d->owned) == current(&fs->epoch) && !current(&fs->asks) && !current(&fs->left) && steady(fs, o);
}

/* moved_to returns where a call that has returned left the position of its object, -1 if that is not known.
 * d: of the object, 0 if it is not remembered. */
static s64 moved_to(struct slot *s, struct descriptor *d, const struct object *o)
{
	struct files *fs = s->files;
	u64 moves = current(&fs->moves);
	s64 at = -1;
	if (fs->shared && !s->locked) { /* another thread may have moved it since */
		if (d)
			*(volatile u64 *)&d->counted = 0;
		return -1;
	}
	s32 ours = d && counts(fs, d, o);
	if (ours && current(&d->counted) == moves) {
		at = d->position;
		if (s->nr == NR_LSEEK && s->result >= 0)
			at = s->result;
		else if (s->nr != NR_LSEEK && s->nr != NR_FTRUNCATE && s->result > 0)
			at += s->result;
	} else {
		at = own_call(NR_LSEEK, o->fd, 0, 1, 0);
	}
	if (ours && at >= 0) {
		d->position = at;
		*(volatile u64 *)&d->counted = moves;
	}
	return at;
}

/* opened_at notes that a call has made an open file. */
INLINE void opened_at(struct slot *s, struct descriptor *d)
{
	d->position = 0;
	*(volatile u64 *)&d->counted = current(&s->files->moves);
	*(volatile u64 *)&d->owned = s->epoch;
}
