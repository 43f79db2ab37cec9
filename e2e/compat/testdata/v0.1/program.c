/* The program whose recordings are the samples: a little of everything that a recording can
 * hold, and no more. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static void check(int ok)
{
	if (!ok)
		_exit(1);
}

/* One write through an io_uring; where there is none the samples lack it. */
static void ring(int fd)
{
	struct io_uring_params p = {0};
	int r = syscall(SYS_io_uring_setup, 2, &p);
	if (r < 0)
		return;
	char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, r, IORING_OFF_SQ_RING);
	struct io_uring_sqe *e = mmap(0, p.sq_entries * sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED, r, IORING_OFF_SQES);
	check(sq != MAP_FAILED && (void *)e != MAP_FAILED);
	*e = (struct io_uring_sqe){.opcode = IORING_OP_WRITE, .fd = fd, .addr = (uintptr_t) "ring", .len = 4, .off = 64};
	((uint32_t *)(sq + p.sq_off.array))[0] = 0;
	__atomic_store_n((uint32_t *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	check(syscall(SYS_io_uring_enter, r, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) == 1);
	close(r);
}

int main(void)
{
	char b[8192], c[16];
	check(mkdir("d", 0750) == 0);
	int fd = open("d/a", O_RDWR | O_CREAT | O_TRUNC, 0640);
	check(fd >= 0);
	check(write(fd, "first\n", 6) == 6);
	struct iovec v[] = {{"se", 2}, {"cond\n", 5}};
	check(writev(fd, v, 2) == 7);
	for (int i = 0; i < (int)sizeof b; i++)
		b[i] = i % 251;
	check(pwrite(fd, b, sizeof b, 4096) == sizeof b);
	check(pread(fd, c, sizeof c, 4) == sizeof c);
	ring(fd);
	check(fsync(fd) == 0);
	char *m = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	check(m != MAP_FAILED);
	memcpy(m + 100, "stored", 6);
	check(msync(m, 4096, MS_SYNC) == 0 && munmap(m, 4096) == 0);
	check(ftruncate(fd, 10000) == 0 && close(fd) == 0);

	check(rename("d/a", "d/b") == 0 && link("d/b", "d/hard") == 0 && symlink("b", "d/soft\n") == 0);
	setxattr("d/b", "user.k", "value", 5, 0);
	struct stat st;
	check(stat("d/hard", &st) == 0 && st.st_size == 10000);
	check(open("d/none", O_RDONLY) < 0 && errno == ENOENT);
	check(readlink("d/soft\n", b, sizeof b) == 1);
	DIR *dir = opendir("d");
	check(dir != 0);
	while (readdir(dir))
		;
	closedir(dir);
	check(unlink("d/hard") == 0);
	check((fd = open("in", O_RDONLY)) >= 0 && read(fd, b, 100) == 8 && close(fd) == 0);

	int p[2], s[2], status;
	check(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0);
	pid_t child = fork();
	check(child >= 0);
	if (child == 0) {
		check(read(p[0], c, 4) == 4);
		check(send(s[1], "pong", 4, 0) == 4);
		_exit(3);
	}
	check(write(p[1], "ping", 4) == 4);
	check(recv(s[0], c, 4, 0) == 4);
	check(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
	return 0;
}
