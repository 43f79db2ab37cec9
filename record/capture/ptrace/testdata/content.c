// Moves known bytes in every way that content can move; argv[1] is a directory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <linux/openat2.h>
#include <unistd.h>

enum { big = 3 << 20 };

int main(int argc, char **argv)
{
	if (argc < 2 || chdir(argv[1]))
		return 1;
	int a = open("a", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	write(a, "hello, world", 12);
	struct iovec v[3] = { { "one", 3 }, { "", 0 }, { "three", 5 } };
	writev(a, v, 3);
	pwrite(a, "HE", 2, 0);
	char buf[64], buf2[8];
	pread(a, buf, sizeof buf, 0);
	struct iovec r[2] = { { buf2, 8 }, { buf, 64 } };
	lseek(a, 0, SEEK_SET);
	readv(a, r, 2);
	read(a, buf, sizeof buf); // end of file
	char *m = malloc(big);
	for (int i = 0; i < big; i++)
		m[i] = i * 7 + (i >> 8);
	int b = open("b", O_RDWR | O_CREAT | O_TRUNC, 0600);
	write(b, m, big);
	pread(b, m, big, 0);
	int d = dup(b), e = fcntl(b, F_DUPFD_CLOEXEC, 100);
	int c = open("c", O_RDWR | O_CREAT | O_TRUNC, 0600);
	lseek(b, 100, SEEK_SET);
	sendfile(c, b, 0, 1000);
	off_t off = 5000;
	sendfile(c, b, &off, 2000);
	loff_t in = 7000, out = 0;
	copy_file_range(d, &in, c, &out, 3000, 0);
	int p[2];
	pipe(p);
	lseek(a, 0, SEEK_SET);
	splice(a, 0, p[1], 0, 10, 0);
	splice(p[0], 0, c, 0, 10, 0);
	int s[2];
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	send(s[0], "datagram", 8, 0);
	recv(s[1], buf, sizeof buf, 0);
	write(-1, "x", 1);
	write(a, (void *)8, 10);
	open((char *)8, O_RDONLY);
	open("none", O_RDONLY);
	struct open_how how = { .flags = O_RDONLY };
	syscall(SYS_openat2, AT_FDCWD, "a", &how, sizeof how);
	symlink("a", "l");
	readlink("l", buf, sizeof buf);
	fsetxattr(a, "user.k", "value", 5, 0);
	syscall(SYS_getppid);
	syscall(500, 0, 0); // not a call
	close(e);
	unlink("l");
	return 9;
}
