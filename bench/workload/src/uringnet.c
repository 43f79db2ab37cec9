// SPDX-License-Identifier: Apache-2.0
/* io_uring on sockets, pipes and attributes: what a replay models rather than makes.
 * Works in its working directory. */
#include "ring.h"
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define OP_BIND 56   /* IORING_OP_BIND, Linux 6.11 */
#define OP_LISTEN 57 /* IORING_OP_LISTEN */
#define ACCEPT_MULTISHOT 1
#define RECV_MULTISHOT 2

static struct ring r;

/* sockets serves two clients. */
static void sockets(void)
{
	static char pool[8][256];
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, peer;
	socklen_t len = sizeof(at), peerlen = sizeof(peer);
	struct io_uring_sqe *s;
	struct completion c;

	ring_add(&r, IORING_OP_SOCKET, AF_INET, 0, 0, SOCK_STREAM, 1);
	int server = ring_want(&r, 1, INT32_MIN).res;
	if (server < 0)
		errx(1, "socket: %d", server);
	ring_add(&r, OP_BIND, server, &at, 0, sizeof(at), 2);
	if (ring_want(&r, 2, INT32_MIN).res && bind(server, (void *)&at, sizeof(at)))
		err(1, "bind");
	ring_add(&r, OP_LISTEN, server, 0, 8, 0, 3);
	if (ring_want(&r, 3, INT32_MIN).res && listen(server, 8))
		err(1, "listen");
	if (getsockname(server, (void *)&at, &len))
		err(1, "getsockname");

	s = ring_add(&r, IORING_OP_ACCEPT, server, 0, 0, 0, 4);
	s->ioprio = ACCEPT_MULTISHOT;
	ring_submit(&r, 0);
	int client[2], served[2];
	for (int i = 0; i < 2; i++) {
		client[i] = socket(AF_INET, SOCK_STREAM, 0);
		ring_add(&r, IORING_OP_CONNECT, client[i], &at, 0, sizeof(at), 5);
		ring_submit(&r, 0);
		served[i] = -1;
		for (int n = 0; n < 2; n++) {
			c = ring_next(&r);
			if (c.res < 0)
				errx(1, "%llu: %d", (unsigned long long)c.user_data, c.res);
			if (c.user_data == 4)
				served[i] = c.res;
		}
	}

	/* several answers to one request, each in a buffer of the kernel's choice */
	s = ring_add(&r, IORING_OP_PROVIDE_BUFFERS, 8, pool, sizeof(pool[0]), 0, 6);
	s->buf_group = 3;
	ring_want(&r, 6, 0);
	s = ring_add(&r, IORING_OP_RECV, served[0], 0, 0, 0, 7);
	s->ioprio = RECV_MULTISHOT;
	s->flags = IOSQE_BUFFER_SELECT;
	s->buf_group = 3;
	ring_submit(&r, 0);
	for (int i = 0; i < 3; i++) {
		char text[20];
		int n = snprintf(text, sizeof(text), "answer %d", i);
		ring_add(&r, IORING_OP_SEND, client[0], text, n, 0, 8);
		ring_submit(&r, 0);
		for (int k = 0; k < 2; k++) {
			c = ring_next(&r);
			if (c.res != n)
				errx(1, "%llu: %d", (unsigned long long)c.user_data, c.res);
			if (c.user_data == 7 && memcmp(pool[c.flags >> IORING_CQE_BUFFER_SHIFT], text, n))
				errx(1, "received something else");
		}
	}
	ring_add(&r, IORING_OP_SHUTDOWN, client[0], 0, SHUT_WR, 0, 9);
	ring_submit(&r, 2);
	ring_next(&r);
	ring_next(&r); /* the end of request 7 */

	/* messages of vectors */
	struct iovec out[3] = {{"one ", 4}, {"two ", 4}, {"three", 5}}, in[2];
	char a[6], b[100];
	struct msghdr send = {.msg_iov = out, .msg_iovlen = 3}, recv = {.msg_name = &peer, .msg_namelen = peerlen, .msg_iov = in, .msg_iovlen = 2};
	in[0] = (struct iovec){a, sizeof(a)};
	in[1] = (struct iovec){b, sizeof(b)};
	ring_add(&r, IORING_OP_SENDMSG, client[1], &send, 1, 0, 10);
	ring_want(&r, 10, 13);
	ring_add(&r, IORING_OP_RECVMSG, served[1], &recv, 1, 0, 11);
	ring_want(&r, 11, 13);

	/* readiness, more than once */
	s = ring_add(&r, IORING_OP_POLL_ADD, served[1], 0, IORING_POLL_ADD_MULTI, 0, 12);
	s->poll32_events = POLLIN;
	ring_submit(&r, 0);
	for (int i = 0; i < 2; i++) {
		if (write(client[1], "x", 1) != 1)
			err(1, "write");
		c = ring_next(&r);
		if (c.user_data != 12 || !(c.res & POLLIN))
			errx(1, "poll: %d", c.res);
	}
	ring_add(&r, IORING_OP_POLL_REMOVE, -1, (void *)12, 0, 0, 13);
	ring_submit(&r, 2);
	ring_next(&r);
	ring_next(&r);
	ring_add(&r, IORING_OP_RECV, served[1], b, sizeof(b), 0, 14);
	ring_want(&r, 14, 2);
	ring_add(&r, IORING_OP_ASYNC_CANCEL, -1, (void *)4, 0, 0, 15);
	ring_submit(&r, 2);
	ring_next(&r);
	ring_next(&r);
	for (int i = 0; i < 2; i++) {
		close(client[i]);
		close(served[i]);
	}
	close(server);
}

/* pipes moves content inside the kernel. */
static void pipes(void)
{
	struct io_uring_sqe *s;
	char b[100];
	int p[2], q[2], fd = open("spliced", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (pipe(p) || pipe(q) || fd < 0)
		err(1, "pipe");
	if (write(p[1], "from a pipe", 11) != 11)
		err(1, "write");
	s = ring_add(&r, IORING_OP_TEE, q[1], 0, 11, 0, 20);
	s->splice_fd_in = p[0];
	ring_want(&r, 20, 11);
	s = ring_add(&r, IORING_OP_SPLICE, q[1], (void *)-1, 11, (uint64_t)-1, 21);
	s->splice_fd_in = p[0];
	ring_want(&r, 21, 11);
	ring_add(&r, IORING_OP_READ, q[0], b, 22, 0, 22);
	ring_want(&r, 22, 22);
	ring_add(&r, IORING_OP_WRITE, fd, "content", 7, 0, 23);
	ring_want(&r, 23, 7);
	s = ring_add(&r, IORING_OP_SPLICE, p[1], (void *)0, 7, (uint64_t)-1, 24);
	s->splice_fd_in = fd;
	ring_want(&r, 24, 7);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(q[i]);
	}
	close(fd);
}

/* attributes are those of a file system that has them. */
static void attributes(void)
{
	struct io_uring_sqe *s;
	char b[100], *m = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("attributes", O_RDWR | O_CREAT | O_TRUNC, 0600);

	s = ring_add(&r, IORING_OP_SETXATTR, 0, "user.a", 5, (uintptr_t)"value", 30);
	s->addr3 = (uintptr_t)"attributes";
	int res = ring_want(&r, 30, INT32_MIN).res;
	if (res == 0) {
		ring_add(&r, IORING_OP_FSETXATTR, fd, "user.b", 6, (uintptr_t)"second", 31);
		ring_want(&r, 31, 0);
		ring_add(&r, IORING_OP_FGETXATTR, fd, "user.a", 100, (uintptr_t)b, 32);
		ring_want(&r, 32, 5);
		s = ring_add(&r, IORING_OP_GETXATTR, 0, "user.b", 100, (uintptr_t)b, 33);
		s->addr3 = (uintptr_t)"attributes";
		ring_want(&r, 33, 6);
	}
	s = ring_add(&r, IORING_OP_MADVISE, -1, m, 1 << 16, 0, 34);
	s->fadvise_advice = MADV_WILLNEED;
	ring_want(&r, 34, 0);
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 7};
	int ep = epoll_create1(0), p[2];
	if (pipe(p))
		err(1, "pipe");
	ring_add(&r, IORING_OP_EPOLL_CTL, ep, &ev, EPOLL_CTL_ADD, p[0], 35);
	ring_want(&r, 35, 0);
	close(ep);
	close(p[0]);
	close(p[1]);
	close(fd);
}

int main(void)
{
	int e = ring_open(&r, 32, 0);

	if (e == -ENOSYS || e == -EPERM)
		errx(3, "io_uring is not allowed here (sysctl kernel.io_uring_disabled)");
	if (e)
		errx(1, "io_uring_setup: %s", strerror(-e));
	sockets();
	pipes();
	attributes();
	return 0;
}
