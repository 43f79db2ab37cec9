// SPDX-License-Identifier: Apache-2.0
/* Makes rounds of connections to itself and looks at them in all ways. The first argument is the number of
 * rounds, the second the directory of its local sockets. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

static void check(int ok, int line)
{
	if (!ok) {
		fprintf(stderr, "line %d: %s\n", line, strerror(errno));
		exit(1);
	}
}
#define CHECK(x) check((x), __LINE__)

static void ask(int fd)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);
	int v = 0, waiting = -1;
	struct ucred who;
	struct termios t;

	CHECK(getsockname(fd, (void *)&a, &n) == 0);
	n = 4; /* less than it has */
	CHECK(getpeername(fd, (void *)&a, &n) == 0);
	n = sizeof(v);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &n) == 0 && v == 0);
	n = sizeof(who);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0);
	v = 1;
	CHECK(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &v, sizeof(v)) == 0);
	CHECK(ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 0);
	CHECK(ioctl(fd, TCGETS, &t) == -1);
	v = 1;
	CHECK(ioctl(fd, FIONBIO, &v) == 0);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0);
	CHECK(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

static void talk(int a, int b)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);
	char text[8];
	int copy = fcntl(a, F_DUPFD, 20), other = fcntl(b, F_DUPFD_CLOEXEC, 20);

	CHECK(copy >= 20 && other > copy);
	CHECK(send(copy, "hello", 5, 0) == 5);
	CHECK(recvfrom(other, text, sizeof(text), 0, (void *)&from, &n) == 5);
	CHECK(fcntl(a, F_SETFL, O_NONBLOCK) == 0);
	CHECK(read(copy, text, 1) == -1 && errno == EAGAIN); /* what was set holds for all of its descriptors */
	CHECK(shutdown(a, SHUT_RDWR) == 0);
	CHECK(close(copy) == 0 && close(other) == 0);
}

static void round_of(int family, void *address, socklen_t n)
{
	struct sockaddr_storage from;
	socklen_t m = sizeof(from);
	int v = 1, to, at, on = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(on >= 0);
	CHECK(setsockopt(on, SOL_SOCKET, SO_REUSEADDR, &v, sizeof(v)) == 0);
	CHECK(bind(on, address, n) == 0);
	CHECK(listen(on, 4) == 0);
	if (family != AF_UNIX)
		CHECK(getsockname(on, address, &n) == 0);
	for (int i = 0; i < 2; i++) {
		to = socket(family, SOCK_STREAM, 0);
		CHECK(connect(to, address, n) == 0);
		at = i ? accept(on, (void *)&from, &m) : accept4(on, 0, 0, SOCK_NONBLOCK);
		CHECK(at >= 0);
		ask(to);
		ask(at);
		talk(to, at);
		CHECK(close(to) == 0 && close(at) == 0);
	}
	CHECK(close(on) == 0);
	CHECK(connect(on, address, n) == -1 && errno == EBADF);
}

int main(int argc, char **argv)
{
	int rounds = atoi(argv[1]), pair[2];

	for (int i = 0; i < rounds; i++) {
		struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		struct sockaddr_un un = {.sun_family = AF_UNIX};
		struct sockaddr_in back = {.sin_family = AF_INET};
		socklen_t n = sizeof(in);

		round_of(AF_INET, &in, sizeof(in));
		snprintf(un.sun_path, sizeof(un.sun_path), "%s/%d", argv[2], i % 10);
		unlink(un.sun_path);
		round_of(AF_UNIX, &un, sizeof(un));

		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		ask(pair[0]);
		talk(pair[0], pair[1]);
		CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
		CHECK(pipe(pair) == 0);
		CHECK(write(pair[1], "x", 1) == 1);
		CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
		CHECK(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
		CHECK(fcntl(pair[0], F_GETPIPE_SZ) > 0);
		CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);

		pair[0] = socket(AF_INET, SOCK_DGRAM, 0); /* gets an address by what it sends */
		in.sin_port = htons(9);
		CHECK(sendto(pair[0], "d", 1, 0, (void *)&in, sizeof(in)) == 1);
		CHECK(getsockname(pair[0], (void *)&back, &n) == 0 && back.sin_port);
		CHECK(close(pair[0]) == 0);
	}
	puts("done");
	return 0;
}
