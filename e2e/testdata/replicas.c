/* replicas serve ADDRESS PORT FILE CONNECTIONS [PEER...]: connects to its peers, then takes so many
 * connections at ADDRESS:PORT. It stores the blocks that it is sent, passes them on to its peers,
 * and gives them back when it is asked for them. It ends when all connections have.
 * replicas client PORT FIRST SERVER...: sends blocks to FIRST, then asks each SERVER for all. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 700
#define BLOCKS 12

struct message {
	char what; /* 'p': store the block, 'g': give it back */
	unsigned char number, data[BLOCK];
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int all(int fd, void *b, size_t n)
{
	for (size_t k = 0; k < n;) {
		ssize_t got = recv(fd, (char *)b + k, n - k, 0);
		if (got <= 0)
			return 0;
		k += got;
	}
	return 1;
}

static void put(int fd, const void *b, size_t n)
{
	if (send(fd, b, n, MSG_NOSIGNAL) != (ssize_t)n)
		fail("send");
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	inet_pton(AF_INET, ip, &a.sin_addr);
	return a;
}

static int reach(const char *ip, const char *port)
{
	struct sockaddr_in a = address(ip, port);

	for (int i = 0; i < 600; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (void *)&a, sizeof(a)))
			return fd;
		close(fd);
		usleep(50000);
	}
	fail("connect");
	return -1;
}

/* block fills in data that is like no other block's. */
static void block(unsigned char *b, int number)
{
	unsigned long x = 88172645463325252ul + 7919 * number;

	for (int i = 0; i < BLOCK; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		b[i] = x >> 24;
	}
}

static void serve(int fd, int file, int *peers, int count)
{
	struct message m;
	char ok[2] = "ok";

	while (all(fd, &m.what, 2)) {
		if (m.what == 'g') {
			if (pread(file, m.data, BLOCK, BLOCK * m.number) != BLOCK)
				fail("pread");
			put(fd, m.data, BLOCK);
			continue;
		}
		if (!all(fd, m.data, BLOCK))
			break;
		if (pwrite(file, m.data, BLOCK, BLOCK * m.number) != BLOCK)
			fail("pwrite");
		for (int i = 0; i < count; i++) {
			put(peers[i], &m, sizeof(m));
			if (!all(peers[i], ok, 2))
				fail("peer");
		}
		put(fd, ok, 2);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	int peers[8], one = 1, status, bad = 0;
	struct message m;
	char ok[2];

	if (!strcmp(argv[1], "client")) {
		int fd = reach(argv[3], argv[2]);
		for (int i = 0; i < BLOCKS; i++) {
			m.what = 'p';
			m.number = i;
			block(m.data, i);
			put(fd, &m, sizeof(m));
			if (!all(fd, ok, 2))
				fail("answer");
		}
		for (int k = 4; k < argc; k++) {
			int s = reach(argv[k], argv[2]);
			for (int i = 0; i < BLOCKS; i++) {
				unsigned char want[BLOCK];
				m.what = 'g';
				m.number = i;
				put(s, &m.what, 2);
				block(want, i);
				if (!all(s, m.data, BLOCK) || memcmp(m.data, want, BLOCK))
					bad = 1;
			}
			close(s);
		}
		return bad;
	}
	int file = open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0644), count = argc - 6;
	for (int i = 0; i < count; i++)
		peers[i] = reach(argv[6 + i], argv[3]);
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = address(argv[2], argv[3]);
	setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(l, (void *)&a, sizeof(a)) || listen(l, 8))
		fail("bind");
	for (int i = 0; i < atoi(argv[5]); i++) {
		struct sockaddr_in from;
		socklen_t n = sizeof(from);
		int fd = accept(l, (void *)&from, &n);
		if (fd < 0)
			fail("accept");
		if (!fork())
			serve(fd, file, peers, count);
		close(fd);
	}
	for (int i = 0; i < count; i++)
		close(peers[i]);
	while (wait(&status) > 0)
		bad |= status;
	return bad != 0;
}
