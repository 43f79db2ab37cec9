// SPDX-License-Identifier: Apache-2.0
/* A file system of a speed that is chosen: it passes everything on to a directory, best
 * one in memory, and holds each read, write and flush for as long as a modelled device
 * would take.
 *
 *   slowfs [-arms N] [-seek T] [-transfer T] [-input] BACKING MOUNTPOINT
 *   slowfs [-arms N] [-seek T] [-transfer T] -model
 *
 * A device has N arms, of which each does one request at a time, first come first served:
 * a disk has one, a flash drive many. A request that does not follow the one before on
 * its arm takes the seek time; each 64 KiB take the transfer time. There is no cache:
 * writes are done when they return. A flush of a file that was written since its last one
 * takes a seek, and so does each write through a descriptor with O_SYNC or O_DSYNC; others
 * take nothing. Names, sizes and attributes take no time. Times are like 3ms and 300us.
 *
 * What a request costs this program is done within the modelled time. It should be little
 * all the same: it is taken from the processors of those who are measured. So this talks
 * to /dev/fuse itself, and each of its threads does nothing for a request but to read it,
 * do it, sleep and answer. A program with Go's runtime took some hundred µs for each,
 * because the runtime watches threads in system calls, and slept up to 1 ms too long.
 *
 * It writes a line when it is mounted, and ends with SIGTERM; with -input also when its
 * standard input does. With -model it holds nothing: for each line "AT WHAT FILE OFFSET
 * BYTES" of its input (times in ns; WHAT is read, write or flush; FILE is a number below
 * 64) it prints when the request would be done. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* --- the device: when requests would be done ------------------------------------------ */

typedef int64_t ns;

enum { MAX_ARMS = 1024, UNIT = 64 << 10 /* bytes of a transfer */ };

/* A file's content, however many names it has. */
struct content {
	int dirty;  /* written since a flush began */
	ns flushed; /* when the last flush that was begun is done */
};

/* Where an arm is, and when it has done all that it was given. */
struct arm {
	const struct content *on;
	int64_t off;
	ns free;
};

static struct {
	ns seek, transfer;
	int arms;
	struct arm arm[MAX_ARMS];
	pthread_mutex_t lock;
} device = {3000000, 300000, 1, {{0}}, PTHREAD_MUTEX_INITIALIZER};

/* The arm that is free first. */
static struct arm *next_arm(ns now)
{
	struct arm *a = device.arm;
	for (int i = 1; i < device.arms; i++)
		if (device.arm[i].free < a->free)
			a = &device.arm[i];
	if (a->free < now)
		a->free = now;
	return a;
}

/* Gives a read or write to an arm; returns when it is done. */
static ns transfer(ns now, struct content *c, int64_t off, int64_t n, int write)
{
	pthread_mutex_lock(&device.lock);
	c->dirty |= write;
	struct arm *a = next_arm(now);
	a->free += n * device.transfer / UNIT;
	if (device.arms > 1 || a->on != c || a->off != off)
		a->free += device.seek;
	a->on = c, a->off = off + n;
	ns done = a->free;
	pthread_mutex_unlock(&device.lock);
	return done;
}

/* Gives a flush to an arm; returns when it is done. Writes are done when they return: what
 * is left is to write down that the file has changed, one request elsewhere with next to
 * no bytes. A flush that is under way is waited for: its caller relies on it as well. */
static ns flush(ns now, struct content *c)
{
	pthread_mutex_lock(&device.lock);
	if (c->dirty) {
		struct arm *a = next_arm(now);
		a->free += device.seek;
		a->on = 0;
		c->dirty = 0, c->flushed = a->free;
	}
	ns done = c->flushed > now ? c->flushed : now;
	pthread_mutex_unlock(&device.lock);
	return done;
}

/* Marks a file as changed by something that takes no time. */
static void changed(struct content *c)
{
	pthread_mutex_lock(&device.lock);
	c->dirty = 1;
	pthread_mutex_unlock(&device.lock);
}

/* A file that is gone: what has its address later is another one. */
static void forgotten(const struct content *c)
{
	pthread_mutex_lock(&device.lock);
	for (int i = 0; i < device.arms; i++)
		if (device.arm[i].on == c)
			device.arm[i].on = 0;
	pthread_mutex_unlock(&device.lock);
}

static ns now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void wait_until(ns t)
{
	struct timespec at = {t / 1000000000, t % 1000000000};
	while (t > now() && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0) == EINTR)
		;
}

/* Reads requests with their times, and says when they are done. */
static int model(void)
{
	static struct content files[64];
	long long at, off, n;
	unsigned file;
	char what[16];
	int got;
	while ((got = scanf("%lld %15s %u %lld %lld", &at, what, &file, &off, &n)) == 5 && file < 64) {
		if (!strcmp(what, "flush"))
			printf("%lld\n", (long long)flush(at, &files[file]));
		else
			printf("%lld\n", (long long)transfer(at, &files[file], off, n, !strcmp(what, "write")));
	}
	return got != EOF;
}

/* --- files ---------------------------------------------------------------------------- */

/* So many requests are held at the same time; more wait. The threads take turns, so with
 * more of them their buffers would leave the cache. */
enum { THREADS = 32, MOST = 128 << 10 /* bytes of a read or write */, NODES = 4096 };

/* A file or directory that the kernel knows. */
struct node {
	struct content content;
	int fd; /* O_PATH */
	dev_t dev;
	ino_t ino;
	uint64_t looked_up;
	struct node *next;
};

/* An open file or directory. */
struct handle {
	int fd, sync;
	DIR *dir;
};

static int fuse_fd;
static const char *mountpoint;
static struct node root, *nodes[NODES];
static pthread_mutex_t nodes_lock = PTHREAD_MUTEX_INITIALIZER;

static struct node *node_of(uint64_t id) { return id == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)id; }

static struct handle *handle_of(uint64_t fh) { return (struct handle *)(uintptr_t)fh; }

/* The name of a node, for calls that take no O_PATH descriptor. */
static const char *name_of(const struct node *n, char b[32])
{
	snprintf(b, 32, "/proc/self/fd/%d", n->fd);
	return b;
}

static void fill(struct fuse_attr *a, const struct stat *st)
{
	*a = (struct fuse_attr){
		.ino = st->st_ino, .size = st->st_size, .blocks = st->st_blocks, .atime = st->st_atim.tv_sec, .mtime = st->st_mtim.tv_sec, .ctime = st->st_ctim.tv_sec,
		.atimensec = st->st_atim.tv_nsec, .mtimensec = st->st_mtim.tv_nsec, .ctimensec = st->st_ctim.tv_nsec,
		.mode = st->st_mode, .nlink = st->st_nlink, .uid = st->st_uid, .gid = st->st_gid, .rdev = st->st_rdev, .blksize = 4096};
}

enum { LONG = 3600 }; /* s that the kernel may keep what it was told: nobody else changes it */

/* Finds a name, and counts that the kernel knows it. */
static int look_up(struct node *parent, const char *name, struct fuse_entry_out *out)
{
	int fd = openat(parent->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return -errno;
	if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0) {
		close(fd);
		return -errno;
	}
	pthread_mutex_lock(&nodes_lock);
	struct node **at = &nodes[st.st_ino % NODES], *n = *at;
	while (n && (n->ino != st.st_ino || n->dev != st.st_dev))
		n = n->next;
	if (n)
		close(fd);
	else if ((n = calloc(1, sizeof *n)))
		n->fd = fd, n->dev = st.st_dev, n->ino = st.st_ino, n->next = *at, *at = n;
	if (n)
		n->looked_up++;
	pthread_mutex_unlock(&nodes_lock);
	if (!n) {
		close(fd);
		return -ENOMEM;
	}
	*out = (struct fuse_entry_out){.nodeid = (uintptr_t)n, .entry_valid = LONG, .attr_valid = LONG};
	fill(&out->attr, &st);
	return 0;
}

static void forget(uint64_t id, uint64_t times)
{
	struct node *n = node_of(id), **at;
	if (n == &root)
		return;
	pthread_mutex_lock(&nodes_lock);
	n->looked_up -= times;
	if (n->looked_up) {
		pthread_mutex_unlock(&nodes_lock);
		return;
	}
	for (at = &nodes[n->ino % NODES]; *at != n; at = &(*at)->next)
		;
	*at = n->next;
	pthread_mutex_unlock(&nodes_lock);
	forgotten(&n->content);
	close(n->fd);
	free(n);
}

/* What was just made belongs to who made it. */
static int made(const struct fuse_in_header *in, const char *name, struct fuse_entry_out *out)
{
	struct node *parent = node_of(in->nodeid);
	if (fchownat(parent->fd, name, in->uid, in->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return look_up(parent, name, out);
}

/* Direct and synchronous I/O are not for what is behind: that is memory. */
static int passed(int flags) { return (flags & (O_ACCMODE | O_TRUNC | O_EXCL)) | O_CLOEXEC | O_NOFOLLOW; }

static int opened(int fd, int flags, struct fuse_open_out *out)
{
	struct handle *h = fd < 0 ? 0 : calloc(1, sizeof *h);
	if (!h)
		return fd < 0 ? -errno : -ENOMEM;
	h->fd = fd, h->sync = (flags & O_DSYNC) != 0; /* O_SYNC has this bit as well */
	*out = (struct fuse_open_out){.fh = (uintptr_t)h, .open_flags = FOPEN_DIRECT_IO};
	return 0;
}

static int set_attributes(struct node *n, const struct fuse_setattr_in *in)
{
	char b[32];
	const char *name = name_of(n, b);
	int fd = in->valid & FATTR_FH ? handle_of(in->fh)->fd : -1;
	if (in->valid & FATTR_MODE && chmod(name, in->mode) < 0)
		return -errno;
	if (in->valid & (FATTR_UID | FATTR_GID) && fchownat(n->fd, "", in->valid & FATTR_UID ? in->uid : (uid_t)-1, in->valid & FATTR_GID ? in->gid : (gid_t)-1, AT_EMPTY_PATH) < 0)
		return -errno;
	if (in->valid & FATTR_SIZE) {
		changed(&n->content);
		if (fd >= 0 ? ftruncate(fd, in->size) : truncate(name, in->size))
			return -errno;
	}
	if (in->valid & (FATTR_ATIME | FATTR_MTIME)) {
		struct timespec t[2] = {{in->atime, in->atimensec}, {in->mtime, in->mtimensec}};
		if (!(in->valid & FATTR_ATIME))
			t[0].tv_nsec = UTIME_OMIT;
		else if (in->valid & FATTR_ATIME_NOW)
			t[0].tv_nsec = UTIME_NOW;
		if (!(in->valid & FATTR_MTIME))
			t[1].tv_nsec = UTIME_OMIT;
		else if (in->valid & FATTR_MTIME_NOW)
			t[1].tv_nsec = UTIME_NOW;
		if (utimensat(n->fd, "", t, AT_EMPTY_PATH) < 0)
			return -errno;
	}
	return 0;
}

static int attributes(int fd, struct fuse_attr_out *out)
{
	struct stat st;
	if (fstatat(fd, "", &st, AT_EMPTY_PATH) < 0)
		return -errno;
	*out = (struct fuse_attr_out){.attr_valid = LONG};
	fill(&out->attr, &st);
	return sizeof *out;
}

static int list(struct handle *h, const struct fuse_read_in *in, char *out)
{
	size_t n = 0;
	struct dirent *e;
	seekdir(h->dir, in->offset);
	while (errno = 0, (e = readdir(h->dir))) {
		size_t length = strlen(e->d_name), size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
		if (n + size > in->size || n + size > MOST)
			return n;
		struct fuse_dirent *d = (struct fuse_dirent *)(out + n);
		memset(d, 0, size);
		d->ino = e->d_ino, d->off = e->d_off, d->namelen = length, d->type = e->d_type;
		memcpy(d->name, e->d_name, length);
		n += size;
	}
	return errno ? -errno : (int)n;
}

/* --- requests ------------------------------------------------------------------------- */

enum { NO_ANSWER = -100000 };

/* Does a request; returns the size of the answer, or an error number below 0. */
static int serve(const struct fuse_in_header *in, const void *arg, char *out)
{
	struct node *n = node_of(in->nodeid);
	struct fuse_entry_out *entry = (void *)out;
	char b[32];
	int r;
	switch (in->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_in *i = arg;
		struct fuse_init_out *o = (void *)out;
		*o = (struct fuse_init_out){.major = FUSE_KERNEL_VERSION, .minor = i->minor < FUSE_KERNEL_MINOR_VERSION ? i->minor : FUSE_KERNEL_MINOR_VERSION,
			.max_readahead = i->max_readahead, .max_write = MOST, .max_pages = MOST / 4096, .max_background = THREADS, .congestion_threshold = THREADS, .time_gran = 1,
			.flags = i->flags & (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ATOMIC_O_TRUNC | FUSE_PARALLEL_DIROPS | FUSE_MAX_PAGES)};
		return sizeof *o;
	}
	case FUSE_READ: {
		const struct fuse_read_in *i = arg;
		ns begun = now();
		ssize_t k = pread(handle_of(i->fh)->fd, out, i->size < MOST ? i->size : MOST, i->offset);
		if (k > 0) /* behind the end there is nothing to get */
			wait_until(transfer(begun, &n->content, i->offset, k, 0));
		return k < 0 ? -errno : k;
	}
	case FUSE_WRITE: {
		const struct fuse_write_in *i = arg;
		ns begun = now();
		ssize_t k = pwrite(handle_of(i->fh)->fd, i + 1, i->size, i->offset);
		if (k < 0)
			return -errno;
		ns done = transfer(begun, &n->content, i->offset, k, 1);
		wait_until(handle_of(i->fh)->sync ? flush(done, &n->content) : done);
		*(struct fuse_write_out *)out = (struct fuse_write_out){.size = k};
		return sizeof(struct fuse_write_out);
	}
	case FUSE_FSYNC:
		wait_until(flush(now(), &n->content));
		return 0;
	case FUSE_FLUSH: /* that of close(2) */
	case FUSE_FSYNCDIR:
		return 0;
	case FUSE_LOOKUP:
		return (r = look_up(n, arg, entry)) < 0 ? r : (int)sizeof *entry;
	case FUSE_FORGET:
		forget(in->nodeid, ((const struct fuse_forget_in *)arg)->nlookup);
		return NO_ANSWER;
	case FUSE_BATCH_FORGET: {
		const struct fuse_batch_forget_in *i = arg;
		const struct fuse_forget_one *one = (const void *)(i + 1);
		for (uint32_t k = 0; k < i->count; k++)
			forget(one[k].nodeid, one[k].nlookup);
		return NO_ANSWER;
	}
	case FUSE_GETATTR: {
		const struct fuse_getattr_in *i = arg;
		return attributes(i->getattr_flags & FUSE_GETATTR_FH ? handle_of(i->fh)->fd : n->fd, (void *)out);
	}
	case FUSE_SETATTR:
		return (r = set_attributes(n, arg)) < 0 ? r : attributes(n->fd, (void *)out);
	case FUSE_READLINK:
		return (r = readlinkat(n->fd, "", out, PATH_MAX)) < 0 ? -errno : r;
	case FUSE_SYMLINK: {
		const char *name = arg, *to = name + strlen(name) + 1;
		r = symlinkat(to, n->fd, name) < 0 ? -errno : made(in, name, entry);
		return r < 0 ? r : (int)sizeof *entry;
	}
	case FUSE_MKNOD: {
		const struct fuse_mknod_in *i = arg;
		const char *name = (const char *)(i + 1);
		r = mknodat(n->fd, name, i->mode, i->rdev) < 0 ? -errno : made(in, name, entry);
		return r < 0 ? r : (int)sizeof *entry;
	}
	case FUSE_MKDIR: {
		const struct fuse_mkdir_in *i = arg;
		const char *name = (const char *)(i + 1);
		r = mkdirat(n->fd, name, i->mode) < 0 ? -errno : made(in, name, entry);
		return r < 0 ? r : (int)sizeof *entry;
	}
	case FUSE_UNLINK:
		return unlinkat(n->fd, arg, 0) < 0 ? -errno : 0;
	case FUSE_RMDIR:
		return unlinkat(n->fd, arg, AT_REMOVEDIR) < 0 ? -errno : 0;
	case FUSE_RENAME: {
		const struct fuse_rename_in *i = arg;
		const char *name = (const char *)(i + 1);
		return renameat(n->fd, name, node_of(i->newdir)->fd, name + strlen(name) + 1) < 0 ? -errno : 0;
	}
	case FUSE_RENAME2: {
		const struct fuse_rename2_in *i = arg;
		const char *name = (const char *)(i + 1);
		return renameat2(n->fd, name, node_of(i->newdir)->fd, name + strlen(name) + 1, i->flags) < 0 ? -errno : 0;
	}
	case FUSE_LINK: {
		const struct fuse_link_in *i = arg;
		const char *name = (const char *)(i + 1);
		if (linkat(AT_FDCWD, name_of(node_of(i->oldnodeid), b), n->fd, name, AT_SYMLINK_FOLLOW) < 0)
			return -errno;
		return (r = look_up(n, name, entry)) < 0 ? r : (int)sizeof *entry;
	}
	case FUSE_OPEN: {
		const struct fuse_open_in *i = arg;
		if (i->flags & O_TRUNC)
			changed(&n->content);
		r = opened(open(name_of(n, b), passed(i->flags) & ~O_NOFOLLOW), i->flags, (void *)out);
		return r < 0 ? r : (int)sizeof(struct fuse_open_out);
	}
	case FUSE_CREATE: {
		const struct fuse_create_in *i = arg;
		const char *name = (const char *)(i + 1);
		int fd = openat(n->fd, name, passed(i->flags) | O_CREAT, i->mode);
		if (fd < 0)
			return -errno;
		if ((r = made(in, name, entry)) < 0 || (r = opened(fd, i->flags, (void *)(entry + 1))) < 0) {
			close(fd);
			return r;
		}
		changed(&node_of(entry->nodeid)->content); /* it is new */
		return sizeof *entry + sizeof(struct fuse_open_out);
	}
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR: {
		struct handle *h = handle_of(((const struct fuse_release_in *)arg)->fh);
		if (h->dir)
			closedir(h->dir);
		else
			close(h->fd);
		free(h);
		return 0;
	}
	case FUSE_OPENDIR: {
		r = opened(openat(n->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0, (void *)out);
		if (r < 0)
			return r;
		struct fuse_open_out *o = (void *)out;
		struct handle *h = handle_of(o->fh);
		o->open_flags = 0;
		return (h->dir = fdopendir(h->fd)) ? (int)sizeof *o : -errno;
	}
	case FUSE_READDIR:
		return list(handle_of(((const struct fuse_read_in *)arg)->fh), arg, out);
	case FUSE_STATFS: {
		struct statvfs st;
		if (fstatvfs(root.fd, &st) < 0)
			return -errno;
		*(struct fuse_statfs_out *)out = (struct fuse_statfs_out){.st = {.blocks = st.f_blocks, .bfree = st.f_bfree, .bavail = st.f_bavail, .files = st.f_files, .ffree = st.f_ffree,
			.bsize = st.f_bsize, .namelen = st.f_namemax, .frsize = st.f_frsize}};
		return sizeof(struct fuse_statfs_out);
	}
	case FUSE_FALLOCATE: {
		const struct fuse_fallocate_in *i = arg;
		changed(&n->content);
		return fallocate(handle_of(i->fh)->fd, i->mode, i->offset, i->length) < 0 ? -errno : 0;
	}
	case FUSE_LSEEK: {
		const struct fuse_lseek_in *i = arg;
		off_t at = lseek(handle_of(i->fh)->fd, i->offset, i->whence);
		if (at < 0)
			return -errno;
		*(struct fuse_lseek_out *)out = (struct fuse_lseek_out){.offset = at};
		return sizeof(struct fuse_lseek_out);
	}
	}
	return -ENOSYS; /* the kernel does without */
}

static void *worker(void *unused)
{
	enum { ROOM = MOST + 8192 };
	char *in, *out;
	if (posix_memalign((void **)&in, 4096, ROOM) || posix_memalign((void **)&out, 4096, ROOM))
		abort();
	for (;;) {
		ssize_t k = read(fuse_fd, in, ROOM);
		if (k < 0 && errno == ENODEV)
			_exit(0); /* it was unmounted */
		if (k < (ssize_t)sizeof(struct fuse_in_header))
			continue; /* EINTR; ENOENT: the request was withdrawn */
		const struct fuse_in_header *h = (void *)in;
		int r = serve(h, h + 1, out);
		if (r == NO_ANSWER)
			continue;
		struct fuse_out_header o = {.len = sizeof o + (r > 0 ? r : 0), .error = r < 0 ? r : 0, .unique = h->unique};
		struct iovec parts[2] = {{&o, sizeof o}, {out, r > 0 ? r : 0}};
		if (writev(fuse_fd, parts, 2) < 0 && errno == ENODEV)
			_exit(0);
	}
	return unused;
}

/* Unmounts; whoever still uses it after 3 s sees errors. */
static void finish(void)
{
	for (int i = 0; i < 150 && umount2(mountpoint, 0) < 0 && errno == EBUSY; i++)
		usleep(20000);
	umount2(mountpoint, MNT_DETACH);
	_exit(0);
}

static void *until_input_ends(void *unused)
{
	char b[64];
	while (read(0, b, sizeof b) > 0)
		;
	finish();
	return unused;
}

static int die(const char *what)
{
	fprintf(stderr, "slowfs: %s: %s\n", what, strerror(errno));
	return 1;
}

/* Times like 3ms, below a minute; -1 if it is none. */
static ns duration(const char *s)
{
	char *unit;
	double v = strtod(s, &unit), times = !strcmp(unit, "ns") ? 1 : !strcmp(unit, "us") ? 1e3 : !strcmp(unit, "ms") ? 1e6 : !strcmp(unit, "s") ? 1e9 : -1;
	return unit == s || !(v >= 0 && v * times >= 0 && v * times < 60e9) ? -1 : (ns)(v * times);
}

int main(int argc, char **argv)
{
	int input = 0, modelled = 0, i = 1;
	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		if (!strcmp(argv[i], "-input"))
			input = 1;
		else if (!strcmp(argv[i], "-model"))
			modelled = 1;
		else if (!strcmp(argv[i], "-arms") && (device.arms = atoi(value)) >= 1 && device.arms <= MAX_ARMS)
			i++;
		else if (!strcmp(argv[i], "-seek") && (device.seek = duration(value)) >= 0)
			i++;
		else if (!strcmp(argv[i], "-transfer") && (device.transfer = duration(value)) >= 0)
			i++;
		else
			break;
	}
	if (modelled && i == argc)
		return model();
	if (modelled || argc - i != 2 || argv[i][0] == '-') {
		fprintf(stderr, "usage: slowfs [-arms N] [-seek T] [-transfer T] [-input] BACKING MOUNTPOINT, or -model\n");
		return 2;
	}
	struct rlimit most = {1 << 20, 1 << 20};
	setrlimit(RLIMIT_NOFILE, &most); /* each known file has a descriptor */
	umask(0);                        /* the caller's was applied */
	prctl(PR_SET_TIMERSLACK, 1);     /* else sleeps end up to 50 us late; threads inherit it */
	mountpoint = argv[i + 1];
	if ((root.fd = open(argv[i], O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return die(argv[i]);
	if ((fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC)) < 0)
		return die("/dev/fuse");
	char options[200]; /* a database's server has another user */
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d,allow_other,default_permissions", fuse_fd, geteuid(), getegid(), MOST);
	if (mount("slowfs", mountpoint, "fuse.slowfs", MS_NOSUID | MS_NODEV, options) < 0)
		return die(mountpoint);
	sigset_t ends;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, 0);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	pthread_t t;
	for (int k = 0; k < THREADS; k++)
		if (pthread_create(&t, &small, worker, 0))
			return die("threads");
	if (input && pthread_create(&t, &small, until_input_ends, 0))
		return die("threads");
	puts("mounted");
	fflush(stdout);
	int got;
	sigwait(&ends, &got);
	finish();
	return 0;
}
