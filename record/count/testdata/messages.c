// messages N sends N times some messages of several buffers by one call, and receives them
// by one, with fewer than are asked for now and then. It prints the bytes that it sent, and
// those that it received.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MANY = 1024, BYTES = 64 };

int main(int argc, char **argv)
{
	static char data[BYTES];
	static struct iovec iov[MANY][2];
	static struct mmsghdr m[MANY];
	int s[2], rounds = argc > 1 ? atoi(argv[1]) : 1;
	unsigned long sent = 0, got = 0;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, s))
		return 1;
	for (int r = 0; r < rounds; r++) {
		int want = r % 3 == 0 ? MANY : 1 + r % 5, n;
		memset(m, 0, sizeof(m));
		for (int i = 0; i < want; i++) {
			iov[i][0] = (struct iovec){data, (i + r) % 10};
			iov[i][1] = (struct iovec){data, 3 * (i % 4)};
			m[i].msg_hdr.msg_iov = iov[i];
			m[i].msg_hdr.msg_iovlen = 2;
		}
		n = sendmmsg(s[0], m, want, MSG_DONTWAIT); // fewer, where the queue is full
		for (int i = 0; i < n; i++)
			sent += m[i].msg_len;
		memset(m, 0, sizeof(m));
		for (int i = 0; i < MANY; i++) {
			iov[i][0] = (struct iovec){data, BYTES};
			m[i].msg_hdr.msg_iov = iov[i];
			m[i].msg_hdr.msg_iovlen = 1;
		}
		n = recvmmsg(s[1], m, MANY, MSG_DONTWAIT, 0);
		for (int i = 0; i < n; i++)
			got += m[i].msg_len;
		sendmmsg(-1, m, 1, 0);
	}
	printf("%lu %lu\n", sent, got);
	return 0;
}
