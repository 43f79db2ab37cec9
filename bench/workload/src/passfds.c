// SPDX-License-Identifier: Apache-2.0
// Passes open files between processes, by messages (SCM_RIGHTS), one at a time
// and many in one sendmmsg, and by pidfd_getfd, and writes through both ends.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 8

struct packet {
	char byte, control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec iov;
};

static void fill(struct msghdr *m, struct packet *p, int nfds, const int *fds)
{
	memset(p, 0, sizeof(*p));
	p->byte = 'x';
	p->iov = (struct iovec){&p->byte, 1};
	*m = (struct msghdr){.msg_iov = &p->iov, .msg_iovlen = 1, .msg_control = p->control, .msg_controllen = CMSG_SPACE(nfds * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	if (fds)
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
}

static void put(int fd, const char *s)
{
	if (write(fd, s, strlen(s)) != (ssize_t)strlen(s))
		err(1, "write %s", s);
}

static int make(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		err(1, "%s", name);
	return fd;
}

static void receiver(int sock, int go)
{
	struct packet p[MANY];
	struct mmsghdr v[MANY];
	struct msghdr m;
	char name[32], c;
	int fds[2];

	fill(&m, p, 2, 0);
	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1)
		err(1, "recvmsg");
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fds));
	put(fds[0], "from the receiver\n");
	if (pwrite(fds[1], "receiver", 8, 20) != 8)
		err(1, "pwrite");

	for (int i = 0; i < MANY; i++)
		fill(&v[i].msg_hdr, &p[i], 1, 0);
	if (recvmmsg(sock, v, MANY, 0, 0) != MANY)
		err(1, "recvmmsg");
	for (int i = 0; i < MANY; i++) {
		memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&v[i].msg_hdr)), sizeof(int));
		snprintf(name, sizeof(name), "message %d\n", i);
		put(fds[0], name);
		close(fds[0]);
	}
	/* descriptor 77 of the parent, without a message */
	if (read(go, &c, 1) != 1)
		err(1, "read");
	int pidfd = syscall(SYS_pidfd_open, getppid(), 0);
	int fd = syscall(SYS_pidfd_getfd, pidfd, 77, 0);
	if (fd < 0)
		err(1, "pidfd_getfd");
	put(fd, "fetched\n");
	_exit(0);
}

int main(void)
{
	struct packet p[MANY];
	struct mmsghdr v[MANY];
	struct msghdr m;
	char name[32];
	int pair[2], gate[2], fds[2], many[MANY], status;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || pipe(gate))
		err(1, "socketpair");
	pid_t child = fork();
	if (!child)
		receiver(pair[1], gate[0]);

	fds[0] = make("first");
	fds[1] = make("second");
	put(fds[0], "before\n");
	fill(&m, p, 2, fds);
	if (sendmsg(pair[0], &m, 0) != 1)
		err(1, "sendmsg");
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		many[i] = make(name);
		put(many[i], "sender\n");
		fill(&v[i].msg_hdr, &p[i], 1, &many[i]);
	}
	if (sendmmsg(pair[0], v, MANY, 0) != MANY)
		err(1, "sendmmsg");
	for (int i = 0; i < MANY; i++)
		close(many[i]); /* perhaps while it is still on its way */
	dup2(make("third"), 77);
	put(77, "fetch this: ");
	put(gate[1], "g");
	if (waitpid(child, &status, 0) != child || status)
		errx(1, "the receiver failed");
	put(fds[0], "after\n");
	put(77, "end\n");
	return 0;
}
