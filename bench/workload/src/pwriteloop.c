// SPDX-License-Identifier: Apache-2.0
// pwriteloop FILE N: N times, writes 4 KiB at one of 256 places in turn and reads
// it back. The benchmark's worst case: nothing but calls that move content.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { size = 4096, places = 256 };

int main(int argc, char **argv) {
	static char out[size], in[size];
	if (argc != 3)
		errx(2, "usage: pwriteloop FILE N");
	long n = atol(argv[2]);
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		err(1, "open %s", argv[1]);
	for (long i = 0; i < n; i++) {
		off_t at = (off_t)(i % places) * size;
		// Every block differs from every other, so that none is stored once for two.
		for (int k = 0; k < size; k += 512)
			memcpy(out + k, &i, sizeof i);
		if (pwrite(fd, out, size, at) != size)
			err(1, "pwrite");
		if (pread(fd, in, size, at) != size)
			err(1, "pread");
	}
	if (close(fd))
		err(1, "close");
	return 0;
}
