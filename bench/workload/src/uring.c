// SPDX-License-Identifier: Apache-2.0
/* io_uring on files: most operations, fixed files and buffers, chains, a ring with a
 * thread of its own, provided buffers, results that are errors. Works in its working
 * directory. */
#include "ring.h"

#define AT ((uint64_t)-1)

static void fill(char *b, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		b[i] = (char)((at + i) * 131 + ((at + i) >> 9) * 17);
}

/* files makes, names, measures and removes. */
static void files(struct ring *r)
{
	static char a[3 << 20], b[3 << 20];
	struct statx stx;
	struct io_uring_sqe *s;

	s = ring_add(r, IORING_OP_MKDIRAT, AT_FDCWD, "dir", 0755, 0, 1);
	ring_want(r, 1, 0);
	s = ring_add(r, IORING_OP_OPENAT, AT_FDCWD, "dir/file", 0644, 0, 2);
	s->open_flags = O_RDWR | O_CREAT | O_TRUNC;
	int fd = ring_want(r, 2, INT32_MIN).res;
	if (fd < 0)
		errx(1, "openat: %d", fd);
	fill(a, sizeof(a), 0);
	ring_add(r, IORING_OP_WRITE, fd, a, sizeof(a), 0, 3);
	ring_want(r, 3, sizeof(a));
	ring_add(r, IORING_OP_READ, fd, b, sizeof(b), 0, 4);
	ring_want(r, 4, sizeof(b));
	if (memcmp(a, b, sizeof(a)))
		errx(1, "read something else");
	ring_add(r, IORING_OP_READ, fd, b, 4096, sizeof(a) - 100, 5); /* short */
	ring_want(r, 5, 100);

	/* at the file's position */
	if (lseek(fd, 1000, SEEK_SET) != 1000)
		err(1, "lseek");
	ring_add(r, IORING_OP_READ, fd, b, 500, AT, 6);
	ring_want(r, 6, 500);
	ring_add(r, IORING_OP_WRITE, fd, "position", 8, AT, 7);
	ring_want(r, 7, 8);
	if (lseek(fd, 0, SEEK_CUR) != 1508)
		errx(1, "position");

	/* vectors: a few elements, and more than the recorder keeps at hand */
	struct iovec few[3] = {{a, 10}, {a + 100, 0}, {a + 200, 70000}}, many[200];
	ring_add(r, IORING_OP_WRITEV, fd, few, 3, 5000, 8);
	if (ring_submit(r, 1) != 1)
		err(1, "submit");
	memset(few, 0, sizeof(few)); /* the kernel has its own copy */
	ring_want(r, 8, 70010);
	for (int i = 0; i < 200; i++)
		many[i] = (struct iovec){b + 1000 * i, i};
	ring_add(r, IORING_OP_READV, fd, many, 200, 3000, 9);
	if (ring_submit(r, 1) != 1)
		err(1, "submit");
	memset(many, 0, sizeof(many));
	ring_want(r, 9, 199 * 200 / 2);

	ring_add(r, IORING_OP_FALLOCATE, fd, (void *)(uintptr_t)4096, 0, sizeof(a), 10); /* length in addr */
	ring_want(r, 10, 0);
	ring_add(r, OP_FTRUNCATE, fd, 0, 0, sizeof(a) + 17, 11);
	int res = ring_want(r, 11, INT32_MIN).res;
	if (res && res != -EINVAL) /* Linux 6.9 */
		errx(1, "ftruncate: %d", res);
	s = ring_add(r, IORING_OP_FSYNC, fd, 0, 0, 0, 12);
	ring_want(r, 12, 0);
	s = ring_add(r, IORING_OP_FSYNC, fd, 0, 0, 0, 13);
	s->fsync_flags = IORING_FSYNC_DATASYNC;
	ring_want(r, 13, 0);
	s = ring_add(r, IORING_OP_STATX, AT_FDCWD, "dir/file", STATX_BASIC_STATS, (uintptr_t)&stx, 14);
	ring_want(r, 14, 0);
	s = ring_add(r, IORING_OP_FADVISE, fd, 0, 8192, 0, 15);
	s->fadvise_advice = POSIX_FADV_WILLNEED;
	ring_want(r, 15, 0);
	s = ring_add(r, IORING_OP_SYNC_FILE_RANGE, fd, 0, 4096, 0, 16);
	ring_want(r, 16, 0);

	/* names */
	s = ring_add(r, IORING_OP_RENAMEAT, AT_FDCWD, "dir/file", AT_FDCWD, (uintptr_t)"dir/other", 20);
	ring_want(r, 20, 0);
	s = ring_add(r, IORING_OP_LINKAT, AT_FDCWD, "dir/other", AT_FDCWD, (uintptr_t)"dir/link", 21);
	ring_want(r, 21, 0);
	s = ring_add(r, IORING_OP_SYMLINKAT, AT_FDCWD, "other", 0, (uintptr_t)"dir/symlink", 22);
	ring_want(r, 22, 0);
	s = ring_add(r, IORING_OP_UNLINKAT, AT_FDCWD, "dir/link", 0, 0, 23);
	ring_want(r, 23, 0);
	s = ring_add(r, IORING_OP_UNLINKAT, AT_FDCWD, "nothing", 0, 0, 24);
	ring_want(r, 24, -ENOENT);
	struct open_how how = {.flags = O_RDONLY};
	s = ring_add(r, IORING_OP_OPENAT2, AT_FDCWD, "dir/symlink", sizeof(how), (uintptr_t)&how, 25);
	int again = ring_want(r, 25, INT32_MIN).res;
	ring_add(r, IORING_OP_READ, again, b, 2000, 0, 26);
	ring_want(r, 26, 2000);
	ring_add(r, IORING_OP_CLOSE, again, 0, 0, 0, 27);
	ring_want(r, 27, 0);
	ring_add(r, IORING_OP_READ, again, b, 2000, 0, 28);
	ring_want(r, 28, -EBADF);
	ring_add(r, 250, fd, b, 1, 0, 29); /* no such operation */
	ring_want(r, 29, -EINVAL);
	ring_add(r, IORING_OP_NOP, 0, 0, 0, 0, 30);
	ring_want(r, 30, 0);
	ring_add(r, IORING_OP_CLOSE, fd, 0, 0, 0, 31);
	ring_want(r, 31, 0);
}

/* fixed works on slots of the ring's table of files and on registered buffers. */
static void fixed(struct ring *r)
{
	static char buf[2][65536];
	int fds[4] = {open("fixed", O_RDWR | O_CREAT, 0600), -1, -1, -1};
	struct iovec iov[2] = {{buf[0], sizeof(buf[0])}, {buf[1], sizeof(buf[1])}};
	struct io_uring_sqe *s;

	ring_register(r, IORING_REGISTER_FILES, fds, 4);
	ring_register(r, IORING_REGISTER_BUFFERS, iov, 2);
	close(fds[0]); /* only the slot is left */
	fill(buf[0], sizeof(buf[0]), 77);
	s = ring_add(r, IORING_OP_WRITE_FIXED, 0, buf[0], sizeof(buf[0]), 0, 40);
	s->flags = IOSQE_FIXED_FILE;
	ring_want(r, 40, sizeof(buf[0]));
	s = ring_add(r, IORING_OP_READ_FIXED, 0, buf[1] + 10, 30000, 1234, 41);
	s->flags = IOSQE_FIXED_FILE;
	s->buf_index = 1;
	ring_want(r, 41, 30000);
	if (memcmp(buf[0] + 1234, buf[1] + 10, 30000))
		errx(1, "fixed buffers differ");

	/* a chain on a slot that its first request fills */
	s = ring_add(r, IORING_OP_OPENAT, AT_FDCWD, "direct", 0644, 0, 42);
	s->open_flags = O_RDWR | O_CREAT;
	s->file_index = 2 + 1;
	s->flags = IOSQE_IO_LINK;
	s = ring_add(r, IORING_OP_WRITE, 2, "direct content", 14, 0, 43);
	s->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
	s = ring_add(r, IORING_OP_FSYNC, 2, 0, 0, 0, 44);
	s->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
	s = ring_add(r, IORING_OP_READ, 2, buf[1], 14, 0, 45);
	s->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
	s = ring_add(r, IORING_OP_CLOSE, 0, 0, 0, 0, 46);
	s->file_index = 2 + 1;
	ring_submit(r, 5);
	ring_want(r, 42, 0);
	ring_want(r, 43, 14);
	ring_want(r, 44, 0);
	ring_want(r, 45, 14);
	ring_want(r, 46, 0);

	/* a chain that breaks */
	s = ring_add(r, IORING_OP_READ, 2, buf[1], 10, 0, 47); /* the slot is empty */
	s->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK;
	s = ring_add(r, IORING_OP_WRITE, 0, "never", 5, 0, 48);
	s->flags = IOSQE_FIXED_FILE;
	ring_submit(r, 2);
	ring_want(r, 47, -EBADF);
	ring_want(r, 48, -ECANCELED);

	/* a chain of which only the last request is told */
	s = ring_add(r, IORING_OP_OPENAT, AT_FDCWD, "silent", 0644, 0, 49);
	s->open_flags = O_RDWR | O_CREAT;
	s->file_index = 1 + 1;
	s->flags = IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
	s = ring_add(r, IORING_OP_WRITE, 1, "silent content", 14, 0, 50);
	s->flags = IOSQE_FIXED_FILE | IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS;
	s = ring_add(r, IORING_OP_CLOSE, 0, 0, 0, 0, 51);
	s->file_index = 1 + 1;
	ring_submit(r, 1);
	ring_want(r, 51, 0);

	/* slots changed by a request */
	int more[1] = {open("more", O_RDWR | O_CREAT, 0600)};
	ring_add(r, IORING_OP_FILES_UPDATE, 0, more, 1, 3, 52);
	ring_want(r, 52, 1);
	close(more[0]);
	s = ring_add(r, IORING_OP_WRITE, 3, "more", 4, 0, 53);
	s->flags = IOSQE_FIXED_FILE;
	ring_want(r, 53, 4);
	ring_register(r, IORING_UNREGISTER_BUFFERS, 0, 0);
}

/* provided reads into buffers that the kernel chooses. */
static void provided(struct ring *r)
{
	static char pool[4][1000];
	struct io_uring_sqe *s;

	s = ring_add(r, IORING_OP_PROVIDE_BUFFERS, 4, pool, 1000, 0, 60);
	s->buf_group = 7;
	ring_want(r, 60, 0);
	int fd = open("dir/other", O_RDONLY);
	for (int i = 0; i < 2; i++) {
		s = ring_add(r, IORING_OP_READ, fd, 0, 700, 10000 * i, 61 + i);
		s->flags = IOSQE_BUFFER_SELECT;
		s->buf_group = 7;
		struct completion c = ring_want(r, 61 + i, 700);
		if (!(c.flags & IORING_CQE_F_BUFFER))
			errx(1, "no buffer");
	}
	close(fd);
}

/* timing gives up on what does not come. */
static void timing(struct ring *r)
{
	struct __kernel_timespec soon = {0, 1000000}, late = {100, 0};
	int p[2];
	char b[10];

	ring_add(r, IORING_OP_TIMEOUT, -1, &soon, 1, 0, 70);
	ring_want(r, 70, -ETIME);
	if (pipe(p))
		err(1, "pipe");
	ring_add(r, IORING_OP_READ, p[0], b, 10, 0, 71);
	ring_add(r, IORING_OP_TIMEOUT, -1, &late, 1, 0, 72);
	ring_submit(r, 0);
	ring_add(r, IORING_OP_ASYNC_CANCEL, -1, (void *)71, 0, 0, 73);
	ring_add(r, IORING_OP_TIMEOUT_REMOVE, -1, (void *)72, 0, 0, 74);
	ring_submit(r, 4);
	for (int i = 0; i < 4; i++)
		ring_next(r);
	if (write(p[1], "pipe", 4) != 4)
		err(1, "write");
	ring_add(r, IORING_OP_READ, p[0], b, 10, 0, 75);
	ring_want(r, 75, 4);
	close(p[0]);
	close(p[1]);
}

/* many has more requests under way than the queue of completions has room for. */
static void many(void)
{
	static char b[256][512];
	struct io_uring_params p = {.flags = IORING_SETUP_CQSIZE, .cq_entries = 8};
	struct ring r;
	int fd = open("many", O_RDWR | O_CREAT, 0600);

	if (ring_open(&r, 8, &p))
		err(1, "ring");
	for (int i = 0; i < 64; i++) {
		fill(b[i], 512, 512 * i);
		ring_add(&r, IORING_OP_WRITE, fd, b[i], 512, 512 * i, 1000 + i);
		if (i % 8 == 7)
			ring_submit(&r, 0);
	}
	for (int i = 0; i < 64; i++)
		if (ring_next(&r).res != 512)
			errx(1, "write");
	close(fd);
	close(r.fd);
}

/* polled lets a thread of the kernel submit. */
static void polled(unsigned flags)
{
	struct io_uring_params p = {.flags = IORING_SETUP_SQPOLL | flags, .sq_thread_idle = 50};
	static char a[100000], b[100000];
	struct ring r;
	int fd = open("polled", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (ring_open(&r, 16, &p))
		err(1, "ring with a thread");
	for (int i = 0; i < 40; i++) {
		if (i == 20)
			usleep(100000); /* it sleeps */
		fill(a, sizeof(a), i);
		ring_add(&r, IORING_OP_WRITE, fd, a, sizeof(a), i * sizeof(a), 2000 + i);
		ring_want(&r, 2000 + i, sizeof(a));
	}
	ring_add(&r, IORING_OP_READ, fd, b, sizeof(b), 39 * sizeof(a), 2100);
	ring_want(&r, 2100, sizeof(b));
	if (memcmp(a, b, sizeof(a)))
		errx(1, "polled: read something else");
	close(fd);
	close(r.fd);
}

/* worker has requests done by threads of the kernel. */
static void worker(struct ring *r)
{
	static char a[8][50000];
	struct io_uring_sqe *s;
	int fd = open("worker", O_RDWR | O_CREAT, 0600);

	for (int i = 0; i < 8; i++) {
		fill(a[i], sizeof(a[i]), i);
		s = ring_add(r, IORING_OP_WRITE, fd, a[i], sizeof(a[i]), i * sizeof(a[i]), 80 + i);
		s->flags = IOSQE_ASYNC;
	}
	ring_submit(r, 8);
	for (int i = 0; i < 8; i++)
		if (ring_next(r).res != sizeof(a[0]))
			errx(1, "worker");
	close(fd);
}

int main(void)
{
	struct io_uring_params defer = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
	struct ring r, d;
	int e = ring_open(&r, 64, 0);

	if (e == -ENOSYS || e == -EPERM)
		errx(3, "io_uring is not allowed here (sysctl kernel.io_uring_disabled)");
	if (e)
		errx(1, "io_uring_setup: %s", strerror(-e));
	files(&r);
	fixed(&r);
	provided(&r);
	timing(&r);
	worker(&r);
	many();
	polled(0);
	if (!ring_open(&d, 16, &defer))
		worker(&d);
	static char left[100];
	int p[2];
	if (pipe(p))
		err(1, "pipe");
	ring_add(&r, IORING_OP_READ, p[0], left, 100, 0, 99); /* never done */
	ring_submit(&r, 0);
	return 0;
}
