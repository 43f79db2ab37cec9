// hung READY GO: makes the file READY, waits until the file GO exists, writes memory that nobody can read
// to /dev/null, which does not read it, and makes the file GO.end. A read of that memory waits until the program ends.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 65536 };

static char *unreadable(void)
{
	int u = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = {.api = UFFD_API};
	char *p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register r = {.range = {(unsigned long)p, SIZE}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	if (u < 0 || ioctl(u, UFFDIO_API, &api) || p == MAP_FAILED || ioctl(u, UFFDIO_REGISTER, &r)) {
		perror("userfaultfd");
		exit(4);
	}
	return p;
}

int main(int argc, char **argv)
{
	static char end[4096];
	struct stat st;

	if (argc != 3)
		return 2;
	char *from = unreadable();
	if (close(open(argv[1], O_CREAT | O_RDWR, 0644)))
		return 2;
	while (stat(argv[2], &st))
		usleep(1000);
	if (write(open("/dev/null", O_WRONLY), from, SIZE) != SIZE)
		return 3;
	snprintf(end, sizeof end, "%s.end", argv[2]);
	return close(open(end, O_CREAT | O_RDWR, 0644));
}
