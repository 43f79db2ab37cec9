/* Times calls: loop FILE COUNT [BYTES]. Prints ns per pwrite, pread and lseek. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv)
{
	int n = atoi(argv[2]), bytes = argc > 3 ? atoi(argv[3]) : 4096;
	char *buf = malloc(bytes);
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	memset(buf, 'x', bytes);
	for (int i = 0; i < 256; i++)
		if (pwrite(fd, buf, bytes, (long)i * bytes) != bytes)
			return 1;
	double t0 = now();
	for (int i = 0; i < n; i++)
		if (pwrite(fd, buf, bytes, (long)(i & 255) * bytes) != bytes)
			return 1;
	double t1 = now();
	for (int i = 0; i < n; i++)
		if (pread(fd, buf, bytes, (long)(i & 255) * bytes) != bytes)
			return 1;
	double t2 = now();
	for (int i = 0; i < n; i++)
		if (lseek(fd, i, SEEK_SET) != i)
			return 1;
	double t3 = now();
	printf("%.0f %.0f %.0f\n", (t1 - t0) / n, (t2 - t1) / n, (t3 - t2) / n);
	return 0;
}
