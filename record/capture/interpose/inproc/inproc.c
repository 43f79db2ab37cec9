// SPDX-License-Identifier: Apache-2.0
/* The part of the recorder that runs in the recorded process, between a system call's return
 * and the program: it appends the call's record to the thread's ring. It runs on a stack of
 * its own, without C library, thread-local storage or vector registers, and is never
 * interrupted by a handler of the program (../signal.go). */
#include "layout.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define INLINE static inline __attribute__((always_inline))

HIDDEN s64 own_call(s64 nr, s64 a, s64 b, s64 c, s64 d);
HIDDEN s64 own_call5(s64 nr, s64 a, s64 b, s64 c, s64 d, s64 e);
extern HIDDEN const u8 gates_begin[], raw[], trap_end[];
HIDDEN u64 copy_from(void *to, u64 from, u64 n);
HIDDEN s64 string_length(u64 s, u64 most);

enum {
	NR_READ = 0, NR_FSTAT = 5, NR_LSEEK = 8, NR_MMAP = 9, NR_MREMAP = 25, NR_SCHED_YIELD = 24, NR_SENDMSG = 46, NR_FCNTL = 72,
	NR_WRITE = 1, NR_CLOSE = 3, NR_SOCKET = 41, NR_GETSOCKNAME = 51, NR_GETPEERNAME = 52, NR_GETSOCKOPT = 55,
	NR_OPEN = 2, NR_CREAT = 85, NR_OPENAT = 257,
	F_DUPFD = 0, F_GETFD = 1, F_SETFD = 2, F_GETFL = 3, F_SETFL = 4, F_DUPFD_CLOEXEC = 1030,
	F_GETLK = 5, F_SETLK = 6, F_SETLKW = 7, F_OFD_GETLK = 36, F_OFD_SETLK = 37, F_OFD_SETLKW = 38,
	O_TRANSIENT = 0100 | 0200 | 0400 | 01000, /* O_CREAT O_EXCL O_NOCTTY O_TRUNC */
	VALID_OPEN = 0x7fffc3, /* VALID_OPEN_FLAGS (linux/fcntl.h) */
	O_CREAT = 0100, O_LARGEFILE = 0100000, O_CLOEXEC = 02000000, O_PATH = 010000000,
	S_IFMT = 0170000, S_IFREG = 0100000, S_IFDIR = 0040000, S_IFBLK = 0060000, S_IFSOCK = 0140000,
	PROT_WRITE = 2, PROT_EXEC = 4, MAP_SHARED = 1, MAP_ANONYMOUS = 0x20, MAP_FIXED = 0x10, MAP_FIXED_NOREPLACE = 0x100000,
	MREMAP_FIXED = 2,
	EINTR = 4, RESTART_BLOCK = 516, MAX_ERRNO = 4095,
	MAX_VECTOR = 64,     /* elements that are recorded here */
	FAILED_BYTES = 65536, /* of memory of a call that failed */
	SPINS = 200,
	SA_RESTORER = 0x04000000,
	SIGSYS = 31, SIG_BLOCK = 0, SIG_UNBLOCK = 1, SIG_SETMASK = 2, SIG_IGN = 1, EFAULT = 14,
	NR_MPROTECT = 10, NR_SIGACTION = 13, NR_SIGMASK = 14, NR_GETPID = 39, NR_GETTID = 186, NR_TGKILL = 234, NR_RESTART = 219,
	NR_SIGSUSPEND = 130, NR_PSELECT6 = 270, NR_PPOLL = 271, NR_IO_PGETEVENTS = 333,
	SYS_USER_DISPATCH = 2,
	FRAME_MASK = 296, /* where rt_sigreturn finds the mask: struct ucontext, uc_sigmask */
};
#define SYS_BIT (1ul << (SIGSYS - 1))
#define MAX_COUNT (1u << 20)
#define MAX_BYTES 0x7fffffffu
#define SOCKADDR_MAX 128 /* sizeof(struct sockaddr_storage) */

struct stat {
	u64 dev, ino, nlink;
	u32 mode, uid, gid, pad;
	u64 rdev;
	s64 size, blksize, blocks;
	u64 times[6];
	s64 unused[3];
};

struct iovec {
	u64 base, len;
};

/* A part of the memory of an argument. */
struct segment {
	u64 addr, n, off;
	u8 arg, flags;
	u16 vector; /* so many elements of the call's vector, which addr is not used for */
};

INLINE s32 failed(s64 ret) { return ret < 0 && ret >= -MAX_ERRNO; }
INLINE u64 least(u64 a, u64 b) { return a < b ? a : b; }

#include "position.h"

INLINE u64 time_of(const struct control *c, u64 tsc)
{
	const struct clock *k = &c->clocks[*(volatile const u64 *)&c->clock % CLOCKS];
	return k->base_ns + (u64)(((__int128)(s64)(tsc - k->base_tsc) * k->mult) >> 32);
}

/* device makes the kernel's number of stat's. */
INLINE u32 device(u64 d)
{
	u32 major = (d >> 8 & 0xfff) | (d >> 32 & ~0xfffu), minor = (d & 0xff) | (d >> 12 & 0xffffff00u);
	return major << 20 | minor;
}

/* look fills what the kernel knows of a descriptor. flags: those of the open that made it, -1 if it
 * is to be asked. Returns 0 if it is not open. */
static s32 look(struct object *o, s32 fd, s64 flags)
{
	struct stat st;
	if (own_call(NR_FSTAT, fd, (s64)&st, 0, 0) < 0)
		return 0;
	o->ino = st.ino;
	o->size = st.size;
	o->dev = device(st.dev);
	o->rdev = device(st.rdev);
	o->mode = st.mode;
	o->nlink = (u32)st.nlink;
	o->uid = st.uid;
	o->gid = st.gid;
	o->fd = fd;
	o->past = 0;
	o->pos = 0;
	*(u32 *)&o->arg = 0;
	if (flags < 0) {
		s64 got = own_call(NR_FCNTL, fd, F_GETFL, 0, 0);
		if (got < 0)
			return 0;
		flags = got & ~(s64)(O_CREAT | O_CLOEXEC);
		if (own_call(NR_FCNTL, fd, F_GETFD, 0, 0) & 1)
			flags |= O_CLOEXEC;
		u32 kind = st.mode & S_IFMT;
		if ((kind == S_IFREG || kind == S_IFDIR || kind == S_IFBLK) && !(flags & O_PATH)) {
			s64 pos = own_call(NR_LSEEK, fd, 0, 1, 0);
			if (pos > 0)
				o->pos = pos;
		}
	}
	o->flags = (u32)flags;
	return 1;
}

/* object_of appends what is known of a descriptor to the record. Its size is known only when
 * it has just been looked up: others may change it without a word. */
static struct object *object_of(struct slot *s, struct object *at, s32 fd, s8 arg, s64 flags)
{
	struct files *fs = s->files;
	u64 generation = *(volatile u64 *)&fs->generation;
	if (fd < 0)
		return at;
	if (fd >= DESCRIPTORS || !generation) {
		if (!look(at, fd, flags))
			return at;
		at->arg = arg;
		return at + 1;
	}
	struct descriptor *d = &fs->d[fd];
	if (flags < 0 && *(volatile u64 *)&d->generation == generation) {
		const u64 *from = (const u64 *)&d->o;
		u64 *to = (u64 *)at;
		for (u32 i = 0; i < sizeof(*at) / 8; i++)
			to[i] = from[i];
		at->size = (u64)-1;
		struct stat st;
		if (s->control->sizes && (at->mode & S_IFMT) == S_IFREG && own_call(NR_FSTAT, fd, (s64)&st, 0, 0) == 0)
			at->size = (u64)st.size;
	} else {
		*(volatile u64 *)&d->generation = 0;
		d->type = 0;
		if (!look(at, fd, flags))
			return at;
		const u64 *from = (const u64 *)at;
		u64 *to = (u64 *)&d->o;
		for (u32 i = 0; i < sizeof(*at) / 8; i++)
			to[i] = from[i];
		*(volatile u64 *)&d->generation = generation;
	}
	at->arg = arg;
	return at + 1;
}

INLINE void unlock(struct slot *s)
{
	if (s->locked) {
		*(volatile u64 *)s->locked = 0;
		s->locked = 0;
	}
}

/* forget drops what is remembered of a descriptor. */
INLINE void forget(struct slot *s, s64 fd)
{
	if (fd >= 0 && fd < DESCRIPTORS)
		*(volatile u64 *)&s->files->d[fd].generation = 0;
}

/* ends drops all that is remembered of a descriptor whose open file it is not any more. */
INLINE void ends(struct slot *s, s64 fd)
{
	forget(s, fd);
	if (fd >= 0 && fd < DESCRIPTORS)
		*(volatile u64 *)&s->files->d[fd].owned = 0;
}

/* harmless reports whether an ioctl only asks. */
INLINE s32 harmless(u32 request)
{
	switch (request) {
	case 0x5401: /* TCGETS */
	case 0x540f: /* TIOCGPGRP */
	case 0x5411: /* TIOCOUTQ */
	case 0x5413: /* TIOCGWINSZ */
	case 0x541b: /* FIONREAD */
	case 0x8905: /* SIOCATMARK */
		return 1;
	}
	return 0;
}

/* controls prepares what fcntl does. Locks change nothing that is remembered. */
INLINE void controls(struct slot *s)
{
	switch ((u32)s->args[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		share(s->files);
		break;
	case F_GETFD: case F_GETFL:
	case F_GETLK: case F_SETLK: case F_SETLKW: case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW:
		break;
	default:
		forget(s, (s32)s->args[0]);
	}
}

/* controlled forgets what fcntl or ioctl may have changed. */
INLINE void controlled(struct slot *s)
{
	u32 command = (u32)s->args[1];
	if (s->control->check[s->nr] == CHECK_REQUEST ? !harmless(command) : command == F_SETFL) {
		/* of the open file: other descriptors may stand for it, too */
		__sync_fetch_and_add(&s->files->generation, 1);
		__sync_fetch_and_add(&s->files->moves, 1);
	} else if (s->control->check[s->nr] == CHECK_CONTROL && command == F_SETFD) {
		forget(s, (s32)s->args[0]); /* another thread may have looked at it meanwhile */
	}
}

/* seekable reports whether a descriptor has a position, and no call on it waits for others. */
static s32 seekable(const struct files *fs, const struct descriptor *d, s32 fd)
{
	struct object o;
	u32 kind = d->o.mode & S_IFMT;
	if (*(volatile const u64 *)&d->generation != *(volatile const u64 *)&fs->generation) {
		if (!look(&o, fd, 0))
			return 0;
		kind = o.mode & S_IFMT;
	}
	return kind == S_IFREG || kind == S_IFBLK;
}

/* give makes the kernel get another pointer for an argument. */
INLINE void give(struct slot *s, u32 arg, const void *to)
{
	s->original = s->args[arg];
	s->given = arg + 1;
	s->args[arg] = (u64)to;
}

INLINE void take_back(struct slot *s)
{
	if (s->given) {
		s->args[s->given - 1] = s->original;
		s->given = 0;
	}
}

/* unblock keeps SIGSYS unblocked, and its action ours: where there is no tracer any more, a
 * call that is not made here must lead to orphaned(). The program sees what it asked for. It
 * returns 1 if after() has to put things right. */
static s32 unblock(struct slot *s)
{
	struct files *fs = s->files;
	u64 set;
	s->was = 0;
	switch (s->nr) {
	case NR_SIGMASK: {
		u64 how = s->args[0], hides = 0;
		s->was = s->blocked;
		if (s->args[1] && !copy_from(&set, s->args[1], sizeof(set))) {
			u64 bit = set >> (SIGSYS - 1) & 1;
			hides = bit && how != SIG_UNBLOCK;
			if (how == SIG_SETMASK)
				s->blocked = bit;
			else if (bit)
				s->blocked = how == SIG_BLOCK;
		}
		if (hides) {
			s->act.mask = set & ~SYS_BIT;
			give(s, 1, &s->act.mask);
		}
		return hides || (s->was && s->args[2]);
	}
	case NR_SIGACTION: {
		u64 sig = s->args[0], bit = 1ul << ((sig - 1) & 63);
		s32 sets = s->args[1] && !copy_from(&s->act, s->args[1], sizeof(s->act));
		if (sig < 1 || sig > 64 || (s->args[1] && !sets))
			return 0;
		if (sig == SIGSYS) {
			s->was = sets;
			give(s, 1, 0);
			return 1;
		}
		s->was = (fs->masking & bit) != 0;
		if (sets && s->act.mask & SYS_BIT) {
			fs->masking |= bit;
			s->act.mask &= ~SYS_BIT;
			give(s, 1, &s->act);
		} else if (sets) {
			fs->masking &= ~bit;
		}
		return s->given || (s->was && s->args[2]);
	}
	}
	u32 arg = s->nr == NR_SIGSUSPEND ? 0 : s->nr == NR_PPOLL ? 3 : 4; /* epoll_pwait, epoll_pwait2 */
	u64 at = s->args[arg];
	if (s->nr == NR_PSELECT6 || s->nr == NR_IO_PGETEVENTS) {
		arg = 5;
		if (!s->args[5] || copy_from(s->sixth, s->args[5], sizeof(s->sixth)))
			return 0;
		at = s->sixth[0];
	}
	if (!at || copy_from(&set, at, sizeof(set)) || !(set & SYS_BIT))
		return 0;
	s->act.mask = set & ~SYS_BIT;
	s->sixth[0] = (u64)&s->act.mask;
	give(s, arg, arg == 5 ? (const void *)s->sixth : &s->act.mask);
	return 1;
}

/* put_right makes the program see what it asked for. */
static void put_right(struct slot *s)
{
	struct files *fs = s->files;
	take_back(s);
	if (s->result != 0)
		return;
	u64 *old = (u64 *)s->args[2];
	if (s->nr == NR_SIGMASK && s->was && old)
		*old |= SYS_BIT;
	if (s->nr != NR_SIGACTION)
		return;
	if (s->args[0] != SIGSYS) {
		if (s->was && old)
			((struct action *)old)->mask |= SYS_BIT;
		return;
	}
	struct action was = fs->action;
	if (s->was)
		fs->action = s->act;
	if (old)
		*(struct action *)old = was;
}

/* ours reports whether a range may have memory of ours. */
INLINE s32 ours(const struct control *c, u64 from, u64 bytes)
{
	u64 to = from + bytes;
	return to < from || (from < c->hi && to > c->lo) || (from < c->beyond && to > c->stubs);
}

/* before decides what is done with a call that CLASS_CHECK has, and prepares it. */
HIDDEN u32 before(struct slot *s)
{
	const struct control *c = s->control;
	u32 fast = c->fast[s->nr];
	s64 fd = (s32)s->args[0];
	s->given = 0;
	struct descriptor *d = fd >= 0 && fd < DESCRIPTORS ? &s->files->d[fd] : 0;

	switch (c->check[s->nr]) {
	case CHECK_POSITION:
		if (!s->files->shared || !d || !seekable(s->files, d, (s32)fd))
			break;
		for (u32 n = 0; !__sync_bool_compare_and_swap(&d->lock, 0, (u64)s->tid); n++) {
			if (*(volatile u64 *)&s->pending)
				return fast;
			if (n >= SPINS)
				own_call(NR_SCHED_YIELD, 0, 0, 0, 0);
			else
				__builtin_ia32_pause();
		}
		s->locked = (u64)&d->lock;
		break;
	case CHECK_OPEN:
		s->epoch = current(&s->files->epoch);
		break;
	case CHECK_CLOSE: /* before, since the number may stand for another file at once */
		ends(s, fd);
		break;
	case CHECK_CONTROL:
		controls(s);
		/* fall through */
	case CHECK_REQUEST:
		if (fast == CLASS_PASS)
			return CLASS_RECORD; /* after() forgets what it changed, and records nothing */
		break;
	case CHECK_SHARE_1:
		ends(s, (s32)s->args[1]);
		/* fall through */
	case CHECK_SHARE: {
		u64 control; /* msg_controllen */
		if (s->nr != NR_SENDMSG || copy_from(&control, s->args[1] + 40, sizeof(control)) || control)
			share(s->files);
		break;
	}
	case CHECK_MOVE:
		if (s->args[3] == (u64)-1)
			return CLASS_TRACE;
		break;
	case CHECK_MMAP:
		if (s->args[2] & PROT_EXEC || (s->args[2] & PROT_WRITE && s->args[3] & MAP_SHARED && !(s->args[3] & MAP_ANONYMOUS)))
			return CLASS_TRACE;
		if (!(s->args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
			break;
		/* fall through */
	case CHECK_RANGE:
		if (ours(c, s->args[0], s->args[1]))
			return CLASS_TRACE;
		if (s->nr == NR_MREMAP && s->args[3] & MREMAP_FIXED && ours(c, s->args[4], s->args[2]))
			return CLASS_TRACE;
		break;
	case CHECK_OFFER: {
		const struct spec *sp = &c->rows[c->row[s->nr]];
		u64 at = s->args[sp->offer_arg];
		u32 room;
		s->offered = ~0ul;
		if (at && !copy_from(&room, at + sp->offer_off, sizeof(room)))
			s->offered = room;
		break;
	}
	case CHECK_MASK:
	case CHECK_ACTION:
	case CHECK_WAIT:
		if (fast == CLASS_PASS && unblock(s))
			return CLASS_RECORD; /* after() puts things right, and records nothing */
		break;
	case CHECK_RETURN: {
		u64 set;
		if (copy_from(&set, s->rsp + FRAME_MASK, sizeof(set)))
			set = 0;
		if (s->inherited && !s->frames)
			s->blocked = set >> (SIGSYS - 1) & 1; /* the frame is of before the recording */
		else if (s->inherited)
			s->frames--;
		if (set & SYS_BIT)
			*(u64 *)(s->rsp + FRAME_MASK) = set & ~SYS_BIT;
		s->entry = s->open; /* it does not return to us */
		break;
	}
	}
	return fast;
}

/* What a piece of IOT_PART_SOCKET is (package event/socket). */
struct ends {
	u16 family, type, protocol;
	u8 local, peer; /* bytes of their addresses, which follow */
	u64 peer_ino;
	u32 pid, uid;
	u64 zero;
	u8 addresses[2 * SOCKADDR_MAX];
};

struct record {
	struct slot *s;
	const struct spec *sp;
	struct object objects[IOT_MAX_OBJS];
	u32 nobjects, nsegments, room; /* room: what the call was told of, if the record has that */
	struct segment segments[3 * IOT_MAX_CAPS];
	struct ends ends[IOT_MAX_OBJS];
	struct iovec vector[MAX_VECTOR];
	u32 nvector;
	s32 partial; /* the call filled less memory than it was given */
	u64 bytes; /* of all pieces, with their heads */
};

INLINE void add(struct record *r, u8 arg, u8 flags, u64 addr, u64 n, u64 off)
{
	struct segment *g = &r->segments[r->nsegments++];
	g->addr = addr;
	g->n = n;
	g->off = off;
	g->arg = arg;
	g->flags = flags;
	g->vector = 0;
	r->bytes += sizeof(struct piece);
	if (!(flags & (PIECE_MISSING | PIECE_OMITTED)))
		r->bytes += (n + 7) & ~7ull;
}

/* content adds n bytes as far as they are wanted. */
INLINE void content(struct record *r, const struct cap *k, u64 addr, u64 n)
{
	u64 wanted = least(n, k->keep);
	if (wanted)
		add(r, k->arg, 0, addr, wanted, 0);
	if (n > wanted)
		add(r, k->arg, PIECE_OMITTED, 0, n - wanted, wanted);
}

/* vector adds an array of buffers and their bytes. Returns 0 if the tracer has to. */
static s32 vector(struct record *r, const struct cap *k, s64 ret)
{
	u64 count = r->s->args[k->len_arg], left = (u64)ret, total = 0;
	if (count == 0 || count > 1024)
		return 1;
	if (count > MAX_VECTOR || k->bytes != sizeof(struct iovec) || r->nvector)
		return 0;
	if (copy_from(r->vector, r->s->args[k->arg], count * sizeof(struct iovec)))
		return 0;
	r->nvector = (u32)count;
	add(r, k->arg, PIECE_SHAPE, (u64)r->vector, count * sizeof(struct iovec), 0);
	if (failed(ret))
		return 1;
	if (k->len == IOT_LEN_VEC_ALL)
		left = 1ul << 31;
	for (u64 i = 0; i < count; i++) {
		u64 n = least(r->vector[i].len, left);
		r->partial |= n < r->vector[i].len;
		total += n;
		left -= n;
	}
	u64 wanted = least(total, k->keep);
	if (wanted) {
		add(r, k->arg, 0, 0, wanted, 0);
		r->segments[r->nsegments - 1].vector = (u16)count;
	}
	if (total > wanted)
		add(r, k->arg, PIECE_OMITTED, 0, total - wanted, wanted);
	return 1;
}

#include "command.h"
#include "ends.h"
#include "filter.h"

/* memory adds what an argument points to. Returns 0 if the tracer has to. */
static s32 memory(struct record *r, const struct cap *k, s64 ret)
{
	const struct slot *s = r->s;
	const u64 *args = s->args;
	u64 addr = args[k->arg], n = 0, v = k->len_arg < IOT_MAX_ARGS ? args[k->len_arg] : 0;
	if (k->len == IOT_LEN_COMMAND)
		return command(r, k, ret);
	if (!addr)
		return 1;
	if (k->cond_mask) {
		u64 c = args[k->cond_arg] & k->cond_bits;
		if (c >= 64 || !(k->cond_mask >> c & 1))
			return 1;
	}
	if (k->len == IOT_LEN_NUL) {
		s64 length = string_length(addr, IOT_MAX_PATH);
		if (length < 0 || length >= IOT_MAX_PATH)
			return 0;
		add(r, k->arg, 0, addr, (u64)length, 0);
		return 1;
	}
	if (k->len == IOT_LEN_VEC || k->len == IOT_LEN_VEC_ALL)
		return vector(r, k, ret);
	if (failed(ret) && (k->len == IOT_LEN_RET || (k->dir == IOT_DIR_OUT && k->len != IOT_LEN_INTERRUPTED)))
		return 1;
	switch (k->len) {
	case IOT_LEN_CONST:
		n = k->bytes;
		break;
	case IOT_LEN_ARG:
		n = v + k->bytes;
		break;
	case IOT_LEN_RET:
		n = (u64)ret;
		r->partial = k->len_arg != IOT_NO_ARG && n < v;
		if (k->len_arg != IOT_NO_ARG)
			n = least(n, v);
		n += k->bytes;
		break;
	case IOT_LEN_ARRAY:
		n = least((u32)v, MAX_COUNT) * k->bytes;
		break;
	case IOT_LEN_RET_ARRAY:
		n = (u64)ret;
		if (k->len_arg != IOT_NO_ARG)
			n = least(n, (u32)v);
		n *= k->bytes;
		break;
	case IOT_LEN_PTR: {
		u32 got;
		if (v && !copy_from(&got, v, sizeof(got)))
			n = least(least(got, s->offered), k->bytes);
		break;
	}
	case IOT_LEN_POSITIVE:
		n = ret > 0 ? k->bytes : 0;
		break;
	case IOT_LEN_INTERRUPTED:
		n = ret == -EINTR || ret == -RESTART_BLOCK ? k->bytes : 0;
		break;
	default:
		return 0;
	}
	if (failed(ret) && n > FAILED_BYTES)
		return 0;
	content(r, k, addr, least(n, MAX_BYTES));
	return 1;
}

/* opened returns the flags that a descriptor has which the call opened, -1 if they have to
 * be asked for. */
INLINE s64 opened(const struct slot *s)
{
	u64 flags;
	switch (s->nr) {
	case NR_OPEN:
		flags = s->args[1];
		break;
	case NR_OPENAT:
		flags = s->args[2];
		break;
	default:
		return -1;
	}
	if (flags & O_PATH) /* drops others */
		return -1;
	return (s64)(((u32)flags & VALID_OPEN & ~(u32)O_TRANSIENT) | O_LARGEFILE);
}

/* objects looks up the call's descriptors. */
INLINE void objects(struct record *r, s64 ret)
{
	struct slot *s = r->s;
	struct object *at = r->objects;
	u32 check = s->control->check[s->nr];
	for (u32 i = 0; check != CHECK_CLOSE && i < r->sp->nobjects && i < IOT_MAX_OBJS - 1; i++) {
		u8 arg = r->sp->objects[i];
		at = object_of(s, at, (s32)s->args[arg], (s8)arg, -1);
	}
	if (check == CHECK_POSITION && at > r->objects) {
		struct object *o = r->objects;
		u32 kind = o->mode & S_IFMT;
		if (kind == S_IFREG || kind == S_IFBLK || kind == S_IFDIR) {
			struct descriptor *d = o->fd < DESCRIPTORS ? &s->files->d[o->fd] : 0;
			if (s->position < 0) /* else the call has been counted already */
				s->position = moved_to(s, d, o);
			o->pos = (u64)(s->position < 0 ? -1 : s->position);
			if (s->position >= 0 && d)
				d->o.pos = o->pos;
		}
	}
	if (!failed(ret) && ((r->sp->flags & SPEC_FD_RESULT) ||
			     ((r->sp->flags & SPEC_FCNTL) && (s->args[1] == F_DUPFD || s->args[1] == F_DUPFD_CLOEXEC)))) {
		ends(s, ret);
		if (check == CHECK_OPEN && ret < DESCRIPTORS)
			opened_at(s, &s->files->d[ret]);
		at = object_of(s, at, (s32)ret, IOT_RESULT_ARG, opened(s));
	}
	for (u32 i = 0; !failed(ret) && i < r->sp->ncaps; i++) {
		const struct cap *k = &r->sp->caps[i];
		s32 pair[2];
		if (!(k->flags & CAP_FDS) || copy_from(pair, s->args[k->arg], sizeof(pair)))
			continue;
		for (u32 n = 0; n < 2; n++) {
			ends(s, pair[n]);
			at = object_of(s, at, pair[n], IOT_MEMORY_ARG, -1);
		}
	}
	r->nobjects = (u32)(at - r->objects);
}

/* ended asks for the size of a file of which a call moved less than it was asked to, and something: whether the file
 * ended there, or the memory, says its size alone. */
INLINE void ended(struct record *r, s64 ret)
{
	struct object *o = r->objects;
	struct stat st;
	if (r->partial && ret > 0 && r->nobjects && o->size == (u64)-1 && (o->mode & S_IFMT) == S_IFREG &&
	    own_call(NR_FSTAT, o->fd, (s64)&st, 0, 0) == 0)
		o->size = (u64)st.size;
}

/* clones reports whether files share content after an ioctl. */
INLINE s32 clones(u32 request)
{
	switch (request) {
	case 0x40049409: /* FICLONE */
	case 0x4020940d: /* FICLONERANGE */
	case 0xc0189436: /* FIDEDUPERANGE */
		return 1;
	}
	return 0;
}

/* watched reports whether a call has to do with a file that programs store to through mappings. */
static s32 watched(const struct control *c, const struct record *r)
{
	if (c->watched && r->sp->op == IOT_OP_IOCTL && clones((u32)r->s->args[1]))
		return 1; /* the file that they take it from can be in memory */
	for (u32 i = 0; i < r->nobjects; i++) {
		if ((r->objects[i].mode & S_IFMT) != S_IFREG)
			continue;
		if (c->watched > WATCHED)
			return 1;
		for (u64 k = 0; k < c->watched; k++)
			if (c->inodes[k] == r->objects[i].ino)
				return 1;
	}
	return 0;
}

/* put_vector copies n bytes of the call's vector. */
INLINE u64 put_vector(const struct record *r, u8 *to, u64 n)
{
	for (u32 i = 0; i < r->nvector && n; i++) {
		u64 part = least(r->vector[i].len, n);
		if (copy_from(to, r->vector[i].base, part))
			return 1;
		to += part;
		n -= part;
	}
	return n;
}

/* put writes the pieces. Returns 0 if memory could not be read. */
INLINE s32 put(const struct record *r, u8 *at)
{
	for (u32 i = 0; i < r->nsegments; i++) {
		const struct segment *g = &r->segments[i];
		struct piece *p = (struct piece *)at;
		*(u64 *)p = g->arg | (u64)g->flags << 8 | g->n << 32;
		p->off = g->off;
		at += sizeof(*p);
		if (g->flags & (PIECE_MISSING | PIECE_OMITTED) || !g->n)
			continue;
		u64 padded = (g->n + 7) & ~7ull;
		*(u64 *)(at + padded - 8) = 0;
		if (g->vector ? put_vector(r, at, g->n) : copy_from(at, g->addr, g->n))
			return 0;
		at += padded;
	}
	return 1;
}

/* after records a call that has returned. It returns what the tracer is needed for. */
HIDDEN u32 after(struct slot *s)
{
	const struct control *c = s->control;
	struct record r;
	s64 ret = s->result;
	u32 class = c->class[s->nr];

	if (class == CLASS_CHECK)
		class = c->fast[s->nr];
	if (class == CLASS_PASS) { /* for the program's sake, or the recording ended meanwhile */
		u32 check = c->check[s->nr];
		if (check == CHECK_MASK || check == CHECK_ACTION || check == CHECK_WAIT)
			put_right(s);
		if (check == CHECK_CONTROL || check == CHECK_REQUEST)
			controlled(s);
		unlock(s);
		return REASON_NONE;
	}
	if (class != CLASS_RECORD || ret == -EFAULT) /* whose memory may not be there */
		goto tracer;
	r.s = s;
	r.sp = &c->rows[c->row[s->nr]];
	r.nsegments = r.nvector = 0;
	r.partial = 0;
	r.bytes = 0;
	if (c->check[s->nr] == CHECK_FILES)
		__sync_fetch_and_add(&s->files->generation, 1);
	if (c->check[s->nr] == CHECK_CONTROL || c->check[s->nr] == CHECK_REQUEST)
		controlled(s);
	objects(&r, ret);
	if (*(volatile const u64 *)&c->watched && watched(c, &r))
		goto tracer;
	if (r.nobjects && r.objects[0].dev == c->cgroups && c->cgroups)
		goto tracer;
	u64 enter = time_of(c, s->enter), exit = time_of(c, s->exit);
	if (enter < s->last) /* clocks differ a little */
		enter = s->last;
	if (exit < enter)
		exit = enter;
	if (refused(s, c->steps, r.sp->prefilter, exit - enter)) {
		unlock(s);
		s->position = -1;
		return REASON_NONE;
	}
	if (!refused(s, c->stack_steps, c->stacks[c->row[s->nr]], exit - enter) || !tell_ends(&r))
		goto tracer;
	for (u32 i = 0; i < r.sp->ncaps && i < IOT_MAX_CAPS; i++)
		if (!memory(&r, &r.sp->caps[i], ret))
			goto tracer;
	ended(&r, ret);
	if (c->check[s->nr] == CHECK_OFFER && !failed(ret) && s->offered != ~0ul) {
		r.room = (u32)s->offered;
		add(&r, (u8)(IOT_PART_BEFORE + r.sp->offer_arg), 0, (u64)&r.room, sizeof(r.room), 0);
	}

	u64 len = sizeof(struct rec_call) + r.nobjects * sizeof(struct object) + r.bytes, need = len + 8;
	u64 head = s->head, size = s->ring_bytes, at = head & (size - 1);
	if (need > size / 4)
		goto tracer;
	if (at + need > size) { /* the lap ends here */
		s->lap_end[head / size & 1] = at;
		head += size - at;
		at = 0;
	}
	if (head + need - *(volatile u64 *)&s->tail > size)
		return REASON_ROOM;
	if (at + need == size)
		s->lap_end[head / size & 1] = size;

	u8 *to = s->ring + at;
	*(u64 *)to = len;
	struct rec_call *call = (struct rec_call *)(to + 8);
	call->p.type = REC_CALL;
	call->p.op = r.sp->op;
	call->p.pid = s->pid;
	call->p.tid = s->tid;
	call->p.flags = 0;
	s->last = exit;
	call->enter = enter;
	call->exit = exit;
	call->cpu = 0;
	call->ret = ret;
	for (u32 i = 0; i < IOT_MAX_ARGS; i++)
		call->args[i] = s->args[i];
	call->nr = (u32)s->nr;
	call->nobjects = (u8)r.nobjects;
	call->zero = 0;
	call->npieces = (u16)r.nsegments;
	u64 *words = (u64 *)(call + 1);
	for (u32 i = 0; i < r.nobjects; i++)
		for (u32 k = 0; k < sizeof(struct object) / 8; k++)
			*words++ = ((const u64 *)&r.objects[i])[k];
	if (!put(&r, (u8 *)words))
		goto tracer;
	unlock(s);
	s->calls++;
	s->position = -1;
	__asm__ volatile("" ::: "memory"); /* stores are seen in their order on x86 */
	*(volatile u64 *)&s->head = head + need;
	return REASON_NONE;

tracer: /* which reads the position, and unlocks it */
	s->position = -1;
	return REASON_RECORD;
}

struct siginfo {
	s32 signo, err, code, pad;
	u64 call; /* of SIGSYS: the address behind it */
};

/* struct ucontext of the kernel, as far as it matters. */
struct context {
	u64 head[5];
	u64 registers[16], rip; /* from r8 on; 13 is rax */
	u64 rest[15];
	u64 mask;
};

/* orphaned is told of a SIGSYS. The tracer, while there is one, takes those of Syscall User
 * Dispatch: so now there is none. All processes of the arena make their calls themselves from
 * now on. Returns the program's handler if the signal is for that: it returns to where the program wants it to, since
 * our code may be taken away meanwhile. */
HIDDEN u64 orphaned(s32 sig, const struct siginfo *info, struct context *context, struct slot *s, u64 *back)
{
	struct control *c = (struct control *)(gates_begin + CODE_BYTES);
	if (info->code != SYS_USER_DISPATCH || s->files->left) {
		struct action *a = &s->files->action;
		if (a->handler == SIG_IGN)
			return 0;
		if (!a->handler) {
			own_call(NR_SIGACTION, SIGSYS, (s64)a, 0, sizeof(u64));
			own_call(NR_TGKILL, own_call(NR_GETPID, 0, 0, 0, 0), own_call(NR_GETTID, 0, 0, 0, 0), sig, 0);
		}
		if (a->handler && a->flags & SA_RESTORER)
			*back = a->restorer;
		return a->handler;
	}
	u64 control_bytes = (sizeof(*c) + 4095) & ~4095ul;
	s32 writable = own_call(NR_MPROTECT, (s64)c, (s64)control_bytes, 3, 0) == 0;
	for (u32 i = 0; i < SLOTS; i++) {
		if (writable)
			*(volatile u8 *)&c->selectors[i] = 0;
		volatile struct slot *each = (struct slot *)((u8 *)c + control_bytes + i * SLOT_BYTES);
		each->open = (u64)raw;
		each->entry = (u64)raw;
	}
	if (context->rip != info->call)
		return 0; /* the tracer had sent it on */
	if (context->rip == (u64)trap_end)
		return 0;
	if (context->registers[13] == NR_RESTART) /* after the way back from here it would fail (restore_sigcontext) */
		context->registers[13] = (u64)own_call(NR_RESTART, 0, 0, 0, 0);
	else
		context->rip -= 2; /* again */
	return 0;
}

/* alone does without a tracer what that was needed for. */
HIDDEN void alone(struct slot *s)
{
	unlock(s);
	take_back(s);
	if (s->pending) {
		s->pending = 0;
		own_call(NR_SIGMASK, SIG_SETMASK, (s64)&s->mask, 0, sizeof(u64));
	}
}
