// writer READY GO BLOCKS: makes the file READY, waits until the file GO exists, then writes so many blocks of 64 KiB,
// with a process now and then, and makes the file GO.end.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char block[65536], end[4096];
	struct stat st;
	int n = argc > 3 ? atoi(argv[3]) : 0;
	if (n == 0 || close(open(argv[1], O_CREAT | O_RDWR, 0644)))
		return 2;
	while (stat(argv[2], &st))
		usleep(1000);
	int fd = open(argv[2], O_RDWR);
	for (int i = 0; i < n; i++) {
		if (pwrite(fd, block, sizeof block, i % 16 * (long)sizeof block) != sizeof block)
			return 3;
		if (i % 100 == 0) {
			int pid = fork();
			if (pid == 0)
				_exit(0);
			waitpid(pid, 0, 0);
		}
	}
	snprintf(end, sizeof end, "%s.end", argv[2]);
	return close(open(end, O_CREAT | O_RDWR, 0644));
}
