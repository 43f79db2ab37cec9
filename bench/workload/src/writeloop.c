// SPDX-License-Identifier: Apache-2.0
// writeloop FILE N: writes N bytes, each with a call of its own. Nothing is cheaper
// to do and dearer to trace: the worst case of what tracing costs per call.
#include <err.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
	if (argc != 3)
		errx(2, "usage: writeloop FILE N");
	long n = atol(argv[2]);
	int fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		err(1, "open %s", argv[1]);
	for (long i = 0; i < n; i++) {
		char byte = (char)i;
		if (write(fd, &byte, 1) != 1)
			err(1, "write");
	}
	if (close(fd))
		err(1, "close");
	return 0;
}
