/* apart HOST ADDRESS [OWN]: two processes, on two hosts, that write in turn. They tell each other
 * over TCP, and look again and again whether the other has, as MPI libraries do: no trace
 * shows that they wait. The one whose HOST ends in 1 listens at ADDRESS, and says where in
 * a file. With OWN, a directory of the host's own, each copies what the other has written
 * to a file there. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4 };
static char block[4096];

static void die(const char *what)
{
	perror(what);
	exit(3);
}

static int reach(const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	char port[6] = "";
	int fd;
	while ((fd = open("port", O_RDONLY)) < 0)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, 0);
	if (read(fd, port, 5) != 5)
		die("port");
	close(fd);
	inet_pton(AF_INET, address, &a.sin_addr);
	a.sin_port = htons(atoi(port));
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(s, (void *)&a, sizeof a))
		die("connect");
	return s;
}

static int await(const char *address)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof a;
	char port[6];
	inet_pton(AF_INET, address, &a.sin_addr);
	int l = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(l, (void *)&a, sizeof a) || listen(l, 1) || getsockname(l, (void *)&a, &n))
		die("listen");
	snprintf(port, sizeof port, "%5d", ntohs(a.sin_port));
	int fd = open("port.new", O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (write(fd, port, 5) != 5 || rename("port.new", "port"))
		die("port");
	close(fd);
	int s = accept(l, 0, 0);
	if (s < 0)
		die("accept");
	return s;
}

static void wait_for(int s)
{
	char c;
	for (;;) {
		ssize_t n = recv(s, &c, 1, MSG_DONTWAIT);
		if (n == 1)
			return;
		if (n == 0 || errno != EAGAIN)
			die("recv");
	}
}

static void copy(const char *from, int round, const char *own)
{
	char to[4096];
	snprintf(to, sizeof to, "%s/log", own);
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_APPEND, 0644);
	if (pread(in, block, sizeof block, round * sizeof block) != sizeof block || write(out, block, sizeof block) != sizeof block)
		die(to);
	close(in);
	close(out);
}

int main(int argc, char **argv)
{
	if (argc != 3 && argc != 4)
		return 2;
	int rank = argv[1][strlen(argv[1]) - 1] != '1', one = 1;
	int s = rank ? reach(argv[2]) : await(argv[2]);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	char name[] = "node.0", other[] = "node.1";
	name[5] += rank;
	other[5] -= rank;
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (int i = 0; i < ROUNDS; i++) {
		if (i || rank)
			wait_for(s);
		if ((i || rank) && argc == 4)
			copy(other, rank ? i : i - 1, argv[3]);
		memset(block, 'a' + i, sizeof block);
		for (volatile long k = 0; k < 200000; k++)
			;
		if (pwrite(fd, block, sizeof block, i * sizeof block) != sizeof block)
			die(name);
		if (!(rank && i == ROUNDS - 1) && send(s, "", 1, 0) != 1)
			die("send");
	}
	return 0;
}
