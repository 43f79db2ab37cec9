// SPDX-License-Identifier: Apache-2.0
// Stores to files of the directory argv[1] through shared mappings, and makes what can show or end the stores.
// Before each such call the file is as a recording is to have it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };
static const char *dir;

static char *map(const char *file, int *fd)
{
	char name[4096];
	snprintf(name, sizeof name, "%s/%s", dir, file);
	*fd = open(name, O_RDWR | O_CREAT, 0600);
	ftruncate(*fd, SIZE);
	return mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
}

int main(int argc, char **argv)
{
	char b[4096];
	int fd, other;
	dir = argv[1];

	char *m = map("calls", &fd);
	strcpy(m, "msync");
	msync(m, SIZE, MS_SYNC);
	strcpy(m + 5000, "fsync");
	fsync(fd);
	strcpy(m + 9000, "pread");
	pread(fd, b, 100, 8990);
	strcpy(m + 20000, "read");
	lseek(fd, 19990, SEEK_SET);
	read(fd, b, 100);
	pwrite(fd, "between", 7, 20002); /* a page that was stored to, too */
	strcpy(m + 30000, "sendfile");
	off_t at = 29999;
	sendfile(open("/dev/null", O_WRONLY), fd, &at, 100);
	strcpy(m + SIZE - 10, "munmap");
	munmap(m, SIZE);
	pwrite(fd, "after", 5, 0);
	close(fd);

	m = map("child", &fd);
	if (!fork()) {
		strcpy(m + 40000, "of the child");
		kill(getpid(), SIGKILL);
	}
	wait(0);

	char *n = map("exec", &other);
	strcpy(n + 100, "before exec");
	if (!fork())
		execl("/bin/true", "true", (char *)0);
	wait(0);

	n = map("again", &other);
	strcpy(n, "first");
	usleep(300000); /* looked at now and then */
	memset(n, 0, 4096);
	strcpy(n + 70000, "second");
	strcpy(m, "of the parent");
	return 0;
}
