/* ends DIR: makes sockets of all kinds, and says for each what it is connected to, as the kernel
 * told it: a line with its number and name. Then it uses each once more (fsync, which fails). A
 * socket that it inherits is number 3. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int fds[64], count;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static int keep(int fd, const char *what)
{
	check(fd >= 0, what);
	fds[count++] = fd;
	return fd;
}

static void text(struct sockaddr_storage *a, char *to)
{
	char ip[64];

	if (a->ss_family == AF_INET) {
		struct sockaddr_in *i = (void *)a;
		sprintf(to, "%s:%d", inet_ntop(AF_INET, &i->sin_addr, ip, sizeof(ip)), ntohs(i->sin_port));
	} else {
		struct sockaddr_in6 *i = (void *)a;
		sprintf(to, "[%s]:%d", inet_ntop(AF_INET6, &i->sin6_addr, ip, sizeof(ip)), ntohs(i->sin6_port));
	}
}

/* inet says the name of a socket of the internet. */
static void inet(int fd, const char *protocol)
{
	struct sockaddr_storage a = {0}, b = {0};
	socklen_t n = sizeof(a), m = sizeof(b);
	char local[100], peer[100];

	check(!getsockname(fd, (void *)&a, &n), "getsockname");
	text(&a, local);
	if (getpeername(fd, (void *)&b, &m)) {
		printf("%d %s:[%s]\n", fd, protocol, local);
		return;
	}
	text(&b, peer);
	printf("%d %s:[%s->%s]\n", fd, protocol, local, peer);
}

static unsigned long ino(int fd)
{
	struct stat st;
	check(!fstat(fd, &st), "fstat");
	return st.st_ino;
}

static int listens(int family, const struct sockaddr *a, socklen_t n, struct sockaddr_storage *at, socklen_t *m)
{
	int fd = keep(socket(family, SOCK_STREAM, 0), "socket");

	check(!bind(fd, a, n) && !listen(fd, 8), "bind");
	*m = sizeof(*at);
	check(!getsockname(fd, (void *)at, m), "getsockname");
	return fd;
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_nl nl = {.nl_family = AF_NETLINK};
	struct sockaddr_storage at;
	socklen_t n;
	int i, l, c, a, p[2];

	if (fcntl(3, F_GETFD) >= 0)
		inet(keep(3, "inherited"), "TCP");

	/* a listener at all addresses, at a port that the kernel chooses; a connect that is not waited for */
	l = listens(AF_INET, (void *)&any, sizeof(any), &at, &n);
	inet(l, "TCP");
	((struct sockaddr_in *)&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c = keep(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
	check(!connect(c, (void *)&at, n) || errno == EINPROGRESS, "connect");
	a = keep(accept(l, NULL, NULL), "accept");
	struct pollfd pf = {.fd = c, .events = POLLOUT};
	poll(&pf, 1, -1);
	inet(c, "TCP");
	inet(a, "TCP");

	l = listens(AF_INET6, (void *)&six, sizeof(six), &at, &n);
	inet(l, "TCPv6");
	c = keep(socket(AF_INET6, SOCK_STREAM, 0), "socket");
	check(!connect(c, (void *)&at, n), "connect");
	n = sizeof(at);
	a = keep(accept4(l, (void *)&at, &n, SOCK_CLOEXEC), "accept4");
	inet(c, "TCPv6");
	inet(a, "TCPv6");

	c = keep(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(!bind(c, (void *)&any, sizeof(any)), "bind");
	n = sizeof(at);
	check(!getsockname(c, (void *)&at, &n), "getsockname");
	inet(c, "UDP");
	a = keep(socket(AF_INET, SOCK_DGRAM, 0), "socket");
	check(!connect(a, (void *)&at, n), "connect");
	inet(a, "UDP");

	check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p), "socketpair");
	for (i = 0; i < 2; i++)
		printf("%d UNIX-SEQPACKET:[%lu->%lu,pid=%d,uid=%d]\n", keep(p[i], "pair"), ino(p[i]), ino(p[!i]), getpid(), getuid());

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/local \"socket\"", argv[1]);
	l = listens(AF_UNIX, (void *)&un, sizeof(un), &at, &n);
	char quoted[256];
	snprintf(quoted, sizeof(quoted), "\"%s/local \\\"socket\\\"\"", argv[1]);
	printf("%d UNIX-STREAM:[%lu,%s]\n", l, ino(l), quoted);
	c = keep(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	check(!connect(c, (void *)&un, sizeof(un)), "connect");
	a = keep(accept(l, NULL, NULL), "accept");
	printf("%d UNIX-STREAM:[%lu,peer=%s,pid=%d,uid=%d]\n", c, ino(c), quoted, getpid(), getuid());
	printf("%d UNIX-STREAM:[%lu->%lu,%s,pid=%d,uid=%d]\n", a, ino(a), ino(c), quoted, getpid(), getuid());

	c = keep(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE), "socket");
	check(!bind(c, (void *)&nl, sizeof(nl)), "bind");
	n = sizeof(nl);
	check(!getsockname(c, (void *)&nl, &n), "getsockname");
	printf("%d NETLINK:[ROUTE:%u]\n", c, nl.nl_pid);

	fflush(stdout);
	for (i = 0; i < count; i++)
		fsync(fds[i]);
	return 0;
}
