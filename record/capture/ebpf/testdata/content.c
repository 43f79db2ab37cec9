/* Moves content of many sizes by many calls. Every file holds pattern(offset), so
 * that each recorded call can be checked by itself.
 * content DIR [MIB [CALLS]]: also so many MiB in one call (none if not given or 0); so many calls
 * of each thread (200). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, strerror(errno)); exit(1); } } while (0)

static unsigned char pattern(unsigned long off) { return off * 131 + (off >> 9) * 17 + (off >> 20); }

static void fill(unsigned char *b, unsigned long off, size_t n)
{
	for (size_t i = 0; i < n; i++)
		b[i] = pattern(off + i);
}

static void moved(int fd, ssize_t n, size_t want) { CHECK(n == (ssize_t)want); }

static void sizes(const char *dir, unsigned char *buf)
{
	static const size_t s[] = {0, 1, 7, 8, 9, 511, 512, 4095, 4096, 4097, 65536, 1 << 20, (1 << 20) + 1, 3 << 20, 8 << 20};
	char name[4096];
	snprintf(name, sizeof(name), "%s/sizes", dir);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	unsigned long off = 0;
	for (size_t i = 0; i < sizeof(s) / sizeof(*s); i++) {
		fill(buf, off, s[i]);
		moved(fd, write(fd, buf, s[i]), s[i]);
		off += s[i];
	}
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	for (size_t i = 0; i < sizeof(s) / sizeof(*s); i++)
		moved(fd, read(fd, buf, s[i]), s[i]);
	CHECK(read(fd, buf, 1 << 20) == 0);
	fill(buf, 100, 5000);
	moved(fd, pwrite(fd, buf, 5000, 100), 5000);
	moved(fd, pread(fd, buf, 70000, 77), 70000);
	int e = dup(fd), f = fcntl(fd, F_DUPFD, 100), g = fcntl(fd, F_DUPFD_CLOEXEC, 200);
	CHECK(e >= 0 && f >= 100 && g >= 200);
	moved(e, pread(f, buf, 10, 0), 10);
	close(e), close(f), close(g), close(fd);
}

static void vectors(const char *dir, unsigned char *buf)
{
	static struct iovec v[1024];
	char name[4096];
	snprintf(name, sizeof(name), "%s/vectors", dir);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	unsigned long off = 0;
	for (int n = 1; n <= 1024; n = n < 1024 && n * 3 > 1024 ? 1024 : n * 3) {
		size_t total = 0;
		for (int i = 0; i < n; i++) {
			v[i].iov_base = buf + total + i % 5; /* with gaps */
			v[i].iov_len = (i * 37 + n) % 5000;
			fill(v[i].iov_base, off + total, v[i].iov_len);
			total += v[i].iov_len;
			buf += i % 5;
		}
		moved(fd, writev(fd, v, n), total);
		moved(fd, pwritev(fd, v, n, off), total);
		moved(fd, preadv(fd, v, n, off), total);
		CHECK(lseek(fd, off, SEEK_SET) >= 0);
		moved(fd, readv(fd, v, n), total);
		off += total;
		if (n == 1024)
			break;
	}
	CHECK(readv(fd, v, 10) == 0);
	close(fd);
}

static void inside(const char *dir, unsigned char *buf)
{
	char name[4096];
	size_t n = 3 << 20;
	snprintf(name, sizeof(name), "%s/sizes", dir);
	int in = open(name, O_RDONLY);
	snprintf(name, sizeof(name), "%s/copied", dir);
	int out = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(in >= 0 && out >= 0);
	moved(in, sendfile(out, in, 0, n), n);
	off_t off = 0;
	CHECK(lseek(out, 0, SEEK_SET) == 0);
	moved(in, sendfile(out, in, &off, 12345), 12345);
	loff_t a = 0, b = 0;
	moved(in, copy_file_range(in, &a, out, &b, n, 0), n);
	int p[2];
	CHECK(pipe(p) == 0);
	a = 0, b = 0;
	moved(in, splice(in, &a, p[1], 0, 4096, 0), 4096);
	moved(in, splice(p[0], 0, out, &b, 4096, 0), 4096);
	close(p[0]), close(p[1]), close(in), close(out);
}

static void big(const char *dir, size_t n)
{
	char name[4096];
	unsigned char *m = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED);
	fill(m, 0, n);
	snprintf(name, sizeof(name), "%s/big", dir);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	moved(fd, write(fd, m, n), n);
	struct iovec v[3] = {{m + 7, n / 3}, {m + 7 + n / 3, 1}, {m + 8 + n / 3, n / 2}};
	moved(fd, preadv(fd, v, 3, 7), n / 3 + 1 + n / 2);
	munmap(m, n);
	close(fd);
}

static const char *thread_dir;
static int thread_calls;
static void *work(void *arg)
{
	char name[4096];
	unsigned char buf[8192];
	snprintf(name, sizeof(name), "%s/thread%ld", thread_dir, (long)arg);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	for (int i = 0; i < thread_calls; i++) {
		fill(buf, i * 100, 4096);
		moved(fd, pwrite(fd, buf, 4096, i * 100), 4096);
		moved(fd, pread(fd, buf, 8192, 0), 8192 < i * 100 + 4096 ? 8192 : i * 100 + 4096);
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned char *buf = malloc(20 << 20);
	const char *dir = argv[1];
	sizes(dir, buf);
	vectors(dir, buf);
	inside(dir, buf);
	if (argc > 2 && atoi(argv[2]))
		big(dir, (size_t)atoi(argv[2]) << 20);
	thread_dir = dir;
	thread_calls = argc > 3 ? atoi(argv[3]) : 200;
	pthread_t t[8];
	for (long i = 0; i < 8; i++)
		CHECK(pthread_create(&t[i], 0, work, (void *)i) == 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], 0);
	return 0;
}
