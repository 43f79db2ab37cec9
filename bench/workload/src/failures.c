// SPDX-License-Identifier: Apache-2.0
// failures: calls that fail, each for a known reason, and reads that come
// short. Exits 1 if one of them does not do what it should. All of them fail for
// root as well.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int wrong;

#define FAILS(want, call)                                                                   \
	do {                                                                                \
		errno = 0;                                                                  \
		long r_ = (long)(call);                                                     \
		if (r_ != -1 || errno != (want)) {                                          \
			fprintf(stderr, "%s = %ld (%s), not %s\n", #call, r_, strerrorname_np(errno), #want); \
			wrong = 1;                                                          \
		}                                                                           \
	} while (0)
#define GIVES(want, call)                                                                   \
	do {                                                                                \
		errno = 0;                                                                  \
		long r_ = (long)(call);                                                     \
		if (r_ != (long)(want)) {                                                   \
			fprintf(stderr, "%s = %ld (%s), not %s\n", #call, r_, strerrorname_np(errno), #want); \
			wrong = 1;                                                          \
		}                                                                           \
	} while (0)

int main(void) {
	char b[4096], name[400], target[5000];
	struct stat st;
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = 0;
	memset(target, 't', sizeof target - 1);
	target[sizeof target - 1] = 0;

	GIVES(0, mkdir("dir", 0755));
	GIVES(0, mkdir("dir/inner", 0755));
	int f = open("file", O_RDWR | O_CREAT | O_EXCL, 0644);
	GIVES(10, write(f, "0123456789", 10));
	GIVES(0, symlink("loop2", "loop1"));
	GIVES(0, symlink("loop1", "loop2"));

	FAILS(ENOENT, open("absent", O_RDONLY));
	FAILS(ENOENT, open("absent/new", O_RDWR | O_CREAT, 0644));
	FAILS(ENOENT, open("", O_RDONLY));
	FAILS(ENOENT, stat("absent", &st));
	FAILS(ENOENT, unlink("absent"));
	FAILS(ENOENT, rename("absent", "elsewhere"));
	FAILS(ENOENT, chdir("absent"));
	FAILS(ENOENT, readlink("absent", b, sizeof b));
	FAILS(EEXIST, open("file", O_RDWR | O_CREAT | O_EXCL, 0644));
	FAILS(EEXIST, mkdir("dir", 0755));
	FAILS(EEXIST, symlink("x", "file"));
	FAILS(EEXIST, link("file", "loop1"));
	FAILS(ENOTDIR, open("file/below", O_RDONLY));
	FAILS(ENOTDIR, open("file", O_RDONLY | O_DIRECTORY));
	FAILS(ENOTDIR, rmdir("file"));
	FAILS(ENOTDIR, mkdirat(f, "x", 0755));
	FAILS(EISDIR, open("dir", O_RDWR));
	FAILS(EISDIR, unlink("dir"));
	FAILS(EISDIR, rename("file", "dir"));
	FAILS(ENOTEMPTY, rmdir("dir"));
	FAILS(EINVAL, rename("dir", "dir/inner/dir"));
	FAILS(EINVAL, readlink("file", b, sizeof b));
	FAILS(EINVAL, lseek(f, -1, SEEK_SET));
	FAILS(EINVAL, lseek(f, 0, 99));
	FAILS(EINVAL, pread(f, b, 1, -1));
	FAILS(EINVAL, ftruncate(f, -1));
	FAILS(ELOOP, open("loop1", O_RDONLY));
	FAILS(ELOOP, open("loop1", O_RDONLY | O_NOFOLLOW));
	FAILS(ENAMETOOLONG, open(name, O_RDWR | O_CREAT, 0644));
	FAILS(ENAMETOOLONG, symlink(target, "long"));
	FAILS(EBADF, write(999, "x", 1));
	FAILS(EBADF, read(-1, b, 1));
	FAILS(EBADF, close(999));
	FAILS(EBADF, fstat(999, &st));
	FAILS(EBADF, dup2(999, 5));
	FAILS(EBADF, openat(999, "x", O_RDONLY));
	FAILS(EFAULT, write(f, (void *)1, 10));
	FAILS(EFAULT, open((char *)1, O_RDONLY));

	int r = open("file", O_RDONLY);
	FAILS(EBADF, write(r, "x", 1));
	FAILS(EINVAL, ftruncate(r, 0));
	GIVES(10, read(r, b, sizeof b)); // short: the file ends
	GIVES(0, read(r, b, sizeof b));
	GIVES(3, pread(r, b, 100, 7));
	GIVES(0, pread(r, b, 100, 1000));
	struct iovec v[2] = {{b, 4}, {b + 4, 100}};
	GIVES(0, lseek(r, 0, SEEK_SET));
	GIVES(10, readv(r, v, 2));
	FAILS(ENXIO, lseek(r, 100, SEEK_DATA));
	FAILS(EINVAL, readv(r, v, -1));
	int d = open("dir", O_RDONLY | O_DIRECTORY);
	FAILS(EISDIR, read(d, b, sizeof b));
	FAILS(EBADF, write(d, "x", 1));
	int w = open("file", O_WRONLY);
	FAILS(EBADF, read(w, b, 1));
	GIVES(0, close(w));
	FAILS(EBADF, close(w));

	// The end of a pipe, and a pipe without room for more.
	int p[2];
	GIVES(0, pipe2(p, O_NONBLOCK));
	FAILS(EAGAIN, read(p[0], b, 1));
	FAILS(ESPIPE, lseek(p[0], 0, SEEK_SET));
	GIVES(4, write(p[1], "four", 4));
	GIVES(4, read(p[0], b, sizeof b));
	close(p[1]);
	GIVES(0, read(p[0], b, sizeof b));

	// What failed has changed nothing, and what comes after still works.
	GIVES(5, pwrite(f, "after", 5, 20));
	GIVES(0, fstat(f, &st));
	GIVES(25, st.st_size);
	return wrong;
}
