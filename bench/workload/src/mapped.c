// SPDX-License-Identifier: Apache-2.0
/* Files that are read and written through memory, in every way that leaves no trace
 * of its own: by one process and by several, with and without msync.
 *
 * usage: mapped        (in a directory with the files that mapped.sh has laid) */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define CHECK(x)                                  \
	do {                                      \
		if (!(x)) {                       \
			perror(#x);               \
			exit(1);                  \
		}                                 \
	} while (0)

static int openfile(const char *name, size_t size)
{
	int fd = open(name, O_RDWR | O_CREAT, 0644);
	CHECK(fd >= 0);
	if (size)
		CHECK(ftruncate(fd, size) == 0);
	return fd;
}

static char *map(int fd, size_t size, int prot, int flags)
{
	char *m = mmap(0, size, prot, flags, fd, 0);
	CHECK(m != MAP_FAILED);
	return m;
}

static char *map_rw(int fd, size_t size) { return map(fd, size, PROT_READ | PROT_WRITE, MAP_SHARED); }

/* save writes what was read through memory to a file, so that it counts. */
static void save(const char *name, const void *b, size_t n)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0 && write(fd, b, n) == (ssize_t)n);
	close(fd);
}

static void finish(pid_t pid)
{
	int status;
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/* Stores, written back and not, to the whole of a file and to a part of it. */
static void stores(void)
{
	size_t n = 1 << 20;
	int fd = openfile("stores", n);
	char *m = map_rw(fd, n);

	for (int i = 0; i < 200; i++)
		memset(m + (i * 7919 * 13) % (n - 100), 'a' + i % 26, 100);
	CHECK(msync(m, n, MS_SYNC) == 0);
	strcpy(m + 5 * PAGE, "after the first msync");
	CHECK(msync(m + 4 * PAGE, 4 * PAGE, MS_ASYNC) == 0);
	strcpy(m + 5 * PAGE + 100, "after the second");
	CHECK(fsync(fd) == 0);
	strcpy(m + 5 * PAGE + 200, "after fsync, in a page that was clean");
	close(fd);
	strcpy(m + 99 * PAGE, "without a descriptor");
	munmap(m, n);
}

/* A file that existed: some of it is read, some written, some both. */
static void existing(void)
{
	int fd = openfile("existing", 0);
	char *m = map_rw(fd, 64 * PAGE), sum[64];

	for (int i = 0; i < 32; i++)
		sum[i] = m[i * PAGE + i];
	for (int i = 32; i < 48; i++)
		m[i * PAGE + 10] = '#';
	for (int i = 0; i < 8; i++)
		m[i * PAGE + 20] = m[i * PAGE] ^ 1;
	munmap(m, 64 * PAGE);
	close(fd);
	save("existing.sum", sum, 32);
}

/* Private mappings are read from the file, and never written to it. */
static void private(void)
{
	int fd = open("existing2", O_RDONLY);
	CHECK(fd >= 0);
	char *m = map(fd, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE), seen[128];

	for (int i = 0; i < 64; i++) {
		if (i % 3 == 0)
			m[i * PAGE] = 'P';
		seen[i] = m[i * PAGE + 1];
		m[i * PAGE + 2] = 'Q';
		seen[64 + i] = m[i * PAGE];
	}
	CHECK(msync(m, 64 * PAGE, MS_SYNC) == 0);
	munmap(m, 64 * PAGE);
	close(fd);
	save("private.seen", seen, sizeof(seen));
}

/* What one process stores another reads: by call, by mapping, by a copy. */
static void others(void)
{
	int fd = openfile("others", 32 * PAGE), out;
	char *m = map_rw(fd, 32 * PAGE), b[2 * PAGE];
	pid_t pid;

	strcpy(m, "stored first");
	strcpy(m + 10 * PAGE, "for pread");
	if (!(pid = fork())) {
		fd = open("others", O_RDONLY);
		CHECK(read(fd, b, PAGE) == PAGE);
		save("others.read", b, PAGE);
		CHECK(pread(fd, b, 2 * PAGE, 9 * PAGE) == 2 * PAGE);
		save("others.pread", b, 2 * PAGE);
		_exit(0);
	}
	finish(pid);
	strcpy(m + 20 * PAGE, "for another mapping");
	if (!(pid = fork())) {
		fd = open("others", O_RDONLY);
		char *r = map(fd, 32 * PAGE, PROT_READ, MAP_SHARED);
		save("others.mapped", r + 20 * PAGE, 100);
		strcpy(m + 21 * PAGE, "from the child, that does not unmap");
		_exit(0);
	}
	finish(pid);
	save("others.child", m + 21 * PAGE, 100);
	strcpy(m + 30 * PAGE, "for sendfile");
	out = open("others.sent", O_WRONLY | O_CREAT, 0644);
	CHECK(lseek(fd, 0, SEEK_SET) == 0 && sendfile(out, fd, 0, 32 * PAGE) == 32 * PAGE);
	if (!(pid = fork())) {
		strcpy(m + 31 * PAGE, "and then it runs another program");
		execlp("cp", "cp", "others", "others.copy", (char *)0);
		_exit(1);
	}
	finish(pid);
	munmap(m, 32 * PAGE);
	close(fd);
	close(out);
}

/* A mapping outlives the name of its file, and its descriptor. */
static void unlinked(void)
{
	int fd = openfile("gone", 8 * PAGE);
	char *m = map_rw(fd, 8 * PAGE), b[PAGE];

	CHECK(link("gone", "left") == 0 && unlink("gone") == 0);
	strcpy(m, "linked elsewhere");
	close(fd);
	strcpy(m + PAGE, "and without a descriptor");
	munmap(m, 8 * PAGE);
	fd = openfile("gone2", 8 * PAGE);
	m = map_rw(fd, 8 * PAGE);
	unlink("gone2");
	strcpy(m, "nowhere any more");
	CHECK(pread(fd, b, PAGE, 0) == PAGE);
	save("gone2.read", b, PAGE);
	close(fd);
	munmap(m, 8 * PAGE);
}

/* The kernel stores as well: a read into mapped memory, and a write out of it. */
static void calls(void)
{
	int fd = openfile("calls", 16 * PAGE), in = open("existing2", O_RDONLY), out;
	char *m = map_rw(fd, 16 * PAGE);

	CHECK(pread(in, m + 100, 3 * PAGE, 0) == 3 * PAGE);
	CHECK(pwrite(fd, "by pwrite", 9, 5 * PAGE) == 9);
	strcpy(m + 5 * PAGE + 100, "behind it");
	CHECK(pwrite(fd, "by pwrite", 9, 5 * PAGE + 200) == 9);
	out = open("calls.out", O_WRONLY | O_CREAT, 0644);
	char *r = map(in, 64 * PAGE, PROT_READ, MAP_PRIVATE);
	CHECK(write(out, r + 20 * PAGE, 10 * PAGE) == 10 * PAGE);
	CHECK(write(out, m + 5 * PAGE, 300) == 300);
	munmap(r, 64 * PAGE);
	munmap(m, 16 * PAGE);
	close(fd);
	close(in);
	close(out);
}

/* Sizes that are no whole pages, growing files, moving mappings, protection. */
static void sizes(void)
{
	int fd = openfile("sizes", 3 * PAGE + 123);
	char *m = map_rw(fd, 4 * PAGE);

	memset(m + 3 * PAGE, 'e', 123); /* to the end */
	strcpy(m + 3 * PAGE + 200, "behind the end: nobody sees it");
	CHECK(msync(m, 4 * PAGE, MS_SYNC) == 0);
	memset(m + 3 * PAGE, 'f', 50);
	CHECK(ftruncate(fd, 20 * PAGE) == 0);
	m = mremap(m, 4 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
	CHECK(m != MAP_FAILED);
	strcpy(m + 19 * PAGE, "in the new part");
	char *n = mmap(m + 10 * PAGE, 5 * PAGE, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(n == m + 10 * PAGE);
	strcpy(m + 18 * PAGE, "behind the hole");
	munmap(m, 16 * PAGE);
	strcpy(m + 17 * PAGE, "what is left of it");
	munmap(m + 16 * PAGE, 4 * PAGE);
	close(fd);

	fd = openfile("protected", 4 * PAGE);
	m = map(fd, 4 * PAGE, PROT_READ, MAP_SHARED);
	save("protected.before", m, 100);
	CHECK(mprotect(m, 4 * PAGE, PROT_READ | PROT_WRITE) == 0);
	strcpy(m + PAGE, "allowed afterwards");
	close(fd);
	munmap(m, 4 * PAGE);
}

struct part {
	char *m;
	int i;
};
static void *store_part(void *p)
{
	struct part *t = p;

	for (int k = 0; k < 50; k++) {
		memset(t->m + (t->i * 64 + k) * PAGE + k, 'A' + t->i, 64);
		if (k % 16 == 0)
			msync(t->m + t->i * 64 * PAGE, 64 * PAGE, MS_SYNC);
	}
	return 0;
}

/* Threads, each at its own pages. */
static void threads(void)
{
	pthread_t id[4];
	struct part part[4];
	int fd = openfile("threads", 256 * PAGE);
	char *m = map_rw(fd, 256 * PAGE);

	for (int i = 0; i < 4; i++) {
		part[i] = (struct part){m, i};
		CHECK(pthread_create(&id[i], 0, store_part, &part[i]) == 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(id[i], 0);
	munmap(m, 256 * PAGE);
	close(fd);
}

/* Content in huge pages of the page cache, where the file system has them. */
static void huge(void)
{
	size_t n = 8 << 20;
	int fd = openfile("huge", 0);
	char *b = malloc(n), *m;

	for (size_t i = 0; i < n; i++)
		b[i] = i * 31 >> 8;
	CHECK(write(fd, b, n) == (ssize_t)n);
	m = map(fd, n, PROT_READ, MAP_SHARED);
	unsigned sum = 0;
	for (size_t i = 0; i < n; i += PAGE)
		sum += (unsigned char)m[i + i % 97];
	munmap(m, n);
	m = map_rw(fd, n);
	m[n / 2] = '!';
	munmap(m, n);
	close(fd);
	free(b);
	save("huge.sum", &sum, sizeof(sum));
}

int main(void)
{
	stores();
	existing();
	private();
	others();
	unlinked();
	calls();
	sizes();
	threads();
	huge();
	/* and the end of the process, with stores that nothing else ends */
	int fd = openfile("last", 4 * PAGE);
	strcpy(map_rw(fd, 4 * PAGE) + 2 * PAGE, "just before the end");
	return 0;
}
