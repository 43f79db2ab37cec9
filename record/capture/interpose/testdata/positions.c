// SPDX-License-Identifier: Apache-2.0
// Moves the positions of files of the directory argv[1], in every way that others can too. Of each call that is a
// MOVE it prints the descriptor, and where the kernel says that it is afterwards.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char out[1 << 16], name[4096], big[600 << 10];
static int used;
static const char *dir;

static void say(int fd)
{
	char b[64], path[64];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	int info = open(path, O_RDONLY);
	pread(info, b, sizeof b, 0); /* which moves nothing */
	close(info);
	used += snprintf(out + used, sizeof out - used, "%d %ld\n", fd, atol(b + 4));
}

#define MOVE(fd, call) ((void)(call), say(fd))

static const char *at(const char *file)
{
	snprintf(name, sizeof name, "%s/%s", dir, file);
	return name;
}

static int make(const char *file, int flags)
{
	int fd = open(at(file), O_RDWR | O_CREAT | O_TRUNC | flags, 0600);
	pwrite(fd, big, 5000, 0);
	return fd;
}

/* some moves a position by calls that can be counted. */
static void some(int fd)
{
	char b[16];
	MOVE(fd, write(fd, "abcd", 4));
	MOVE(fd, read(fd, b, 7));
	MOVE(fd, write(fd, "abcdef", 6));
}

static void plain(void)
{
	struct iovec v[2] = {{big, 100}, {big + 100, 11}};
	int fd = make("plain", 0), only = open(name, O_WRONLY);
	some(fd);
	MOVE(fd, lseek(fd, 0, SEEK_END));
	MOVE(fd, read(fd, big, 10));
	MOVE(fd, lseek(fd, -5, SEEK_SET));
	MOVE(fd, lseek(fd, 50, SEEK_SET));
	MOVE(fd, readv(fd, v, 2));
	MOVE(fd, writev(fd, v, 2));
	MOVE(fd, ftruncate(fd, 170));
	MOVE(fd, read(fd, big, 100));
	MOVE(fd, read(fd, big, 100));
	MOVE(only, read(only, big, 100));
	some(only);
	chmod(name, 0644);
	some(fd);
	MOVE(fd, write(fd, big, sizeof big));
	some(fd);
	close(fd);
	fd = open("/proc/self/comm", O_RDWR);
	MOVE(fd, read(fd, big, 2));
	MOVE(fd, write(fd, "new", 3)); /* whose files do not move by what is written */
	MOVE(fd, write(fd, "new", 3));
	fd = make("appended", O_APPEND);
	some(fd);
	fcntl(fd, F_SETFL, 0);
	some(fd);
	MOVE(fd, lseek(fd, 7, SEEK_SET));
	some(fd);
	fcntl(fd, F_SETFL, O_APPEND);
	some(fd);
}

static void inside(void)
{
	struct iovec v = {big, 33};
	int from = make("from", 0), to = make("to", 0), ends[2];
	pipe(ends);
	some(from);
	some(to);
	sendfile(to, from, 0, 100);
	some(from);
	some(to);
	copy_file_range(from, 0, to, 0, 40, 0);
	some(from);
	some(to);
	splice(from, 0, ends[1], 0, 60, 0);
	some(from);
	syscall(SYS_preadv2, from, &v, 1, -1l, -1l, 0);
	some(from);
	syscall(SYS_pwritev2, from, &v, 1, -1l, -1l, 0);
	some(from);
	syscall(SYS_pwritev2, from, &v, 1, 0l, 0l, 0);
	some(from);
}

static int passed(int fd)
{
	int pair[2], got = -1;
	char room[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	sendmsg(pair[0], &m, 0);
	recvmsg(pair[1], &m, 0);
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	return got;
}

/* through_ring reads n bytes at the position of a file by io_uring. */
static void through_ring(int fd, int n)
{
	struct io_uring_params p = {0};
	int ring = syscall(SYS_io_uring_setup, 4, &p);
	if (ring < 0)
		return;
	char *q = mmap(0, p.sq_off.array + 64, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *e = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	*e = (struct io_uring_sqe){.opcode = IORING_OP_READ, .fd = fd, .off = -1, .addr = (unsigned long)big, .len = n};
	*(unsigned *)(q + p.sq_off.array) = 0;
	*(unsigned *)(q + p.sq_off.tail) += 1;
	syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0);
}

static void shared(void)
{
	int fd = make("shared", 0), other;
	some(fd);
	if (!fork()) {
		write(fd, "child", 5);
		_exit(0);
	}
	wait(0);
	some(fd);

	fd = make("dup", 0);
	some(fd);
	some(other = dup(fd));
	some(fd);
	some(other);

	fd = make("fcntl", 0);
	some(fd);
	some(other = fcntl(fd, F_DUPFD, 50));
	some(fd);

	fd = make("dup2", 0);
	some(fd);
	some(dup2(fd, 3));
	some(fd);
	close(3);
	some(other = make("again", 0)); /* the number is another file's */
	some(other);

	fd = make("message", 0);
	some(fd);
	some(passed(fd));
	some(fd);

	fd = make("pidfd", 0);
	some(fd);
	int self = syscall(SYS_pidfd_open, getpid(), 0);
	some(syscall(SYS_pidfd_getfd, self, fd, 0));
	some(fd);

	fd = make("ranged", 0);
	some(fd);
	syscall(SYS_close_range, fd, fd, 0);
	some(make("ranged again", 0));

	fd = make("ring", 0);
	some(fd);
	through_ring(fd, 100);
	some(fd);
	through_ring(fd, 100);
	some(fd);
}

int main(int argc, char **argv)
{
	dir = argv[1];
	plain();
	inside();
	shared();
	write(1, out, used);
	return 0;
}
