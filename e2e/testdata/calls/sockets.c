/* Sockets, messages and the descriptors in them, message queues. */
#include "expect.h"
#include <arpa/inet.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static int self;
static char buf[65536];

static void names(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, got;
	socklen_t n = sizeof(in), room, opt = 1;
	int l, c, a, one = 1, value = 0;

	l = CALL(socket, AF_INET, SOCK_STREAM, 0);
	CALL(setsockopt, l, SOL_SOCKET, SO_REUSEADDR, P(&one), 4);
	mem(3, &one, 4);
	opt = 4;
	CALL(getsockopt, l, SOL_SOCKET, SO_REUSEADDR, P(&value), P(&opt));
	mem(3, &value, 4), mem(4, &opt, 4), mem(4 | BEFORE, &opt, 4);
	opt = 2; /* less room than it would take */
	CALL(getsockopt, l, SOL_SOCKET, SO_REUSEADDR, P(&value), P(&opt));
	mem(3, &value, 2), mem(4, &opt, 4), mem(4 | BEFORE, &opt, 4);
	opt = 100;
	CALL(getsockopt, l, 12345, 1, P(&value), P(&opt)); /* no such level */
	mem(4, &opt, 4);
	CALL(bind, l, P(&in), n);
	mem(1, &in, n);
	CALL(listen, l, 5);
	room = n = 64;
	CALL(getsockname, l, P(&got), P(&n));
	mem(1, &got, n), mem(2, &n, 4), mem(2 | BEFORE, &room, 4);
	c = CALL(socket, AF_INET, SOCK_STREAM, 0);
	CALL(connect, c, P(&got), n);
	mem(1, &got, n);
	struct sockaddr_in peer;
	room = n = 5; /* less than there is: 5 bytes of 16 */
	a = CALL(accept, l, P(&peer), P(&n));
	mem(1, &peer, 5), mem(2, &n, 4), mem(2 | BEFORE, &room, 4);
	CALL(close, a);
	CALL(close, c);
	c = CALL(socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	n = sizeof(got);
	CALL(connect, c, P(&got), n);
	mem(1, &got, n);
	a = CALL(accept4, l, 0, 0, SOCK_CLOEXEC);
	room = n = sizeof(got);
	CALL(getpeername, a, P(&got), P(&n));
	mem(1, &got, n), mem(2, &n, 4), mem(2 | BEFORE, &room, 4);
	CALL(sendto, c, P("hello"), 5, 0, 0, 0);
	mem(1, "hello", 5);
	CALL(recvfrom, a, P(buf), 100, 0, 0, 0);
	mem(1, buf, 5);
	CALL(shutdown, a, 2);
	CALL(close, a);
	CALL(close, c);
	CALL(close, l);
	CALL(accept, 99, P(&got), P(&n)); /* EBADF */
	mem(2, &n, 4);
}

static void datagrams(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, got;
	socklen_t n = sizeof(in), room;
	int a, b;

	a = CALL(socket, AF_INET, SOCK_DGRAM, 0);
	b = CALL(socket, AF_INET, SOCK_DGRAM, 0);
	CALL(bind, b, P(&in), n);
	mem(1, &in, n);
	room = n;
	CALL(getsockname, b, P(&got), P(&n));
	mem(1, &got, n), mem(2, &n, 4), mem(2 | BEFORE, &room, 4);
	CALL(sendto, a, P("datagram"), 8, 0, P(&got), n);
	mem(1, "datagram", 8), mem(4, &got, n);
	struct sockaddr_in from;
	room = n = sizeof(from);
	CALL(recvfrom, b, P(buf), 4, MSG_TRUNC, P(&from), P(&n)); /* 8, of which 4 are there */
	mem(1, buf, 4), mem(4, &from, n), mem(5, &n, 4), mem(5 | BEFORE, &room, 4);

	/* with msghdr: to an address, in parts */
	struct iovec v[2] = {{"one ", 4}, {"two", 3}}, o[2] = {{buf, 2}, {buf + 1000, 100}};
	struct msghdr m = {.msg_name = &got, .msg_namelen = n, .msg_iov = v, .msg_iovlen = 2};
	CALL(sendmsg, a, P(&m), 0);
	mem(1, &m, sizeof(m)), mem(1 | NAME, &got, n), mem(1 | DATA, "one two", 7);
	memset(&from, 0, sizeof(from));
	struct msghdr r = {.msg_name = &from, .msg_namelen = 128, .msg_iov = o, .msg_iovlen = 2};
	room = 128;
	CALL(recvmsg, b, P(&r), 0);
	memcpy(buf + 2, buf + 1000, 5);
	mem(1, &r, sizeof(r)), mem(1 | BEFORE, &room, 4), mem(1 | NAME, &from, r.msg_namelen), mem(1 | DATA, buf, 7);
	CALL(recvmsg, b, P(&r), MSG_DONTWAIT); /* EAGAIN */
	CALL(sendmsg, 99, P(&m), 0);	       /* EBADF */
	mem(1, &m, sizeof(m)), mem(1 | NAME, &got, n);

	/* three at once, each with another length */
	struct mmsghdr mm[3] = {0}, rr[3] = {0};
	struct iovec mv[3] = {{"1", 1}, {"22", 2}, {"333", 3}}, rv[3] = {{buf, 10}, {buf + 10, 10}, {buf + 20, 10}};
	struct sockaddr_in rn[3];
	for (int i = 0; i < 3; i++) {
		mm[i].msg_hdr = (struct msghdr){.msg_name = &got, .msg_namelen = n, .msg_iov = &mv[i], .msg_iovlen = 1};
		rr[i].msg_hdr = (struct msghdr){.msg_name = &rn[i], .msg_namelen = sizeof(rn[i]), .msg_iov = &rv[i], .msg_iovlen = 1};
	}
	CALL(sendmmsg, a, P(mm), 3, 0);
	struct sockaddr_in all[3] = {got, got, got};
	mem(1, mm, sizeof(mm)), mem(1 | NAME, all, sizeof(all)), mem(1 | DATA, "122333", 6);
	struct timespec ts = {1, 0}, before = ts;
	CALL(recvmmsg, b, P(rr), 3, 0, P(&ts));
	mem(1, rr, sizeof(rr)), mem(1 | NAME, rn, sizeof(rn)), mem(1 | DATA, "122333", 6), mem(4, &ts, 16), mem(4 | BEFORE, &before, 16);
	CALL(close, a);
	CALL(close, b);
}

/* More messages than are composed in the kernel, and larger ones. */
static void many(void)
{
	enum { N = 200, BIG = 200 << 10 };
	static struct mmsghdr mm[N], rr[N];
	static struct iovec mv[N], rv[N];
	static char out[N], in[N], big[BIG], got[BIG];
	int s[2], room = BIG * 4;

	CALL(socketpair, AF_UNIX, SOCK_DGRAM, 0, P(s));
	mem(3, s, 8), fd(s[0]), fd(s[1]);
	for (int i = 0; i < N; i++) {
		out[i] = i;
		mv[i] = (struct iovec){out + i, 1};
		rv[i] = (struct iovec){in + i, 1};
		mm[i].msg_hdr = (struct msghdr){.msg_iov = mv + i, .msg_iovlen = 1};
		rr[i].msg_hdr = (struct msghdr){.msg_iov = rv + i, .msg_iovlen = 1};
	}
	long r = CALL(sendmmsg, s[0], P(mm), N, MSG_DONTWAIT);
	mem(1, mm, r * sizeof(*mm)), mem(1 | DATA, out, r);
	CALL(recvmmsg, s[1], P(rr), r, 0, 0);
	mem(1, rr, r * sizeof(*rr)), mem(1 | DATA, out, r);
	CALL(close, s[0]);
	CALL(close, s[1]);

	CALL(socketpair, AF_UNIX, SOCK_SEQPACKET, 0, P(s));
	mem(3, s, 8), fd(s[0]), fd(s[1]);
	CALL(setsockopt, s[0], SOL_SOCKET, SO_SNDBUF, P(&room), 4);
	mem(3, &room, 4);
	for (int i = 0; i < BIG; i++)
		big[i] = i * 5 + i / 253;
	mv[0] = (struct iovec){big, BIG / 2};
	mv[1] = (struct iovec){big + BIG / 2, BIG / 2};
	struct msghdr m = {.msg_iov = mv, .msg_iovlen = 2};
	CALL(sendmsg, s[0], P(&m), 0);
	mem(1, &m, sizeof(m)), mem(1 | DATA, big, BIG);
	rv[0] = (struct iovec){got, BIG};
	m = (struct msghdr){.msg_iov = rv, .msg_iovlen = 1};
	room = 0;
	CALL(recvmsg, s[1], P(&m), 0);
	mem(1, &m, sizeof(m)), mem(1 | BEFORE, &room, 4), mem(1 | DATA, big, BIG);
	CALL(close, s[0]);
	CALL(close, s[1]);
}

static void passed(void)
{
	union {
		char space[CMSG_SPACE(3 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} c = {0}, d = {0};
	int s[2], fds[3] = {0, 1, 0}, one = 1, zero = 0;
	struct iovec v = {"x", 1}, o = {buf, 10};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = CMSG_SPACE(sizeof(fds))};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, P(s));
	mem(3, s, 8), fd(s[0]), fd(s[1]);
	CALL(setsockopt, s[1], SOL_SOCKET, SO_PASSCRED, P(&one), 4);
	mem(3, &one, 4);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(fds));
	fds[2] = s[0];
	memcpy(CMSG_DATA(h), fds, sizeof(fds));
	CALL(sendmsg, s[0], P(&m), 0);
	mem(1, &m, sizeof(m)), mem(1 | DATA, "x", 1), mem(1 | CONTROL, &c, CMSG_SPACE(sizeof(fds)));
	fd(0), fd(1), fd(s[0]);
	struct msghdr r = {.msg_iov = &o, .msg_iovlen = 1, .msg_control = &d, .msg_controllen = sizeof(d)};
	CALL(recvmsg, s[1], P(&r), MSG_CMSG_CLOEXEC);
	mem(1, &r, sizeof(r)), mem(1 | BEFORE, &zero, 4), mem(1 | DATA, "x", 1), mem(1 | CONTROL, &d, r.msg_controllen);
	for (h = CMSG_FIRSTHDR(&r); h; h = CMSG_NXTHDR(&r, h))
		if (h->cmsg_type == SCM_RIGHTS) {
			memcpy(fds, CMSG_DATA(h), sizeof(fds));
			fd(fds[0]), fd(fds[1]), fd(fds[2]);
		}
	for (int i = 0; i < 3; i++)
		CALL(close, fds[i]);
	CALL(close, s[0]);
	CALL(close, s[1]);
}

/* As many descriptors as one message may have. */
static void all(void)
{
	enum { N = 253 };
	static union {
		char space[CMSG_SPACE(N * sizeof(int))];
		struct cmsghdr align;
	} c, d;
	int s[2], fds[N], zero = 0;
	struct iovec v = {"x", 1}, o = {buf, 10};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)};
	struct msghdr r = {.msg_iov = &o, .msg_iovlen = 1, .msg_control = &d, .msg_controllen = sizeof(d)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, P(s));
	mem(3, s, 8), fd(s[0]), fd(s[1]);
	h->cmsg_level = SOL_SOCKET, h->cmsg_type = SCM_RIGHTS, h->cmsg_len = CMSG_LEN(sizeof(fds));
	for (int i = 0; i < N; i++)
		((int *)CMSG_DATA(h))[i] = i % 2;
	CALL(sendmsg, s[0], P(&m), 0);
	mem(1, &m, sizeof(m)), mem(1 | DATA, "x", 1), mem(1 | CONTROL, &c, sizeof(c));
	for (int i = 0; i < N; i++)
		fd(i % 2);
	CALL(recvmsg, s[1], P(&r), 0);
	mem(1, &r, sizeof(r)), mem(1 | BEFORE, &zero, 4), mem(1 | DATA, "x", 1), mem(1 | CONTROL, &d, r.msg_controllen);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&r)), sizeof(fds));
	for (int i = 0; i < N; i++)
		fd(fds[i]);
	CALL(close_range, fds[0], fds[N - 1], 0);
	CALL(close, s[0]);
	CALL(close, s[1]);
}

static void queues(void)
{
	struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 64}, old;
	struct timespec ts = {time(0) + 100, 0};
	struct sigevent ev = {.sigev_notify = SIGEV_NONE};
	unsigned prio = 0;
	char name[32];
	long q, r;

	sprintf(name, "iotape-%d", self);
	q = CALL(mq_open, P(name), O_RDWR | O_CREAT, 0600, P(&attr));
	text(0, name), mem(3, &attr, sizeof(attr));
	CALL(mq_timedsend, q, P("message"), 7, 3, P(&ts));
	mem(1, "message", 7), mem(4, &ts, 16);
	r = CALL(mq_timedreceive, q, P(buf), 64, P(&prio), P(&ts));
	if (r >= 0)
		mem(1, "message", 7), mem(3, &prio, 4), mem(4, &ts, 16);
	else
		mem(4, &ts, 16);
	CALL(mq_notify, q, P(&ev));
	mem(1, &ev, 64);
	r = CALL(mq_getsetattr, q, P(&attr), P(&old));
	mem(1, &attr, sizeof(attr));
	if (r >= 0)
		mem(2, &old, sizeof(old));
	CALL(close, q);
	CALL(mq_unlink, P(name));
	text(0, name);

	struct {
		long type;
		char text[8];
	} m = {5, "sysv"}, got;
	struct msqid_ds md;
	q = CALL(msgget, IPC_PRIVATE, 0600);
	CALL(msgsnd, q, P(&m), 8, 0);
	mem(1, &m, 16);
	CALL(msgrcv, q, P(&got), 8, 0, 0);
	mem(1, &m, 16);
	if (CALL(msgctl, q, IPC_STAT, P(&md)) >= 0)
		mem(2, &md, sizeof(md));
	CALL(msgctl, q, IPC_RMID, 0);

	struct sembuf ops[2] = {{0, 1, 0}, {0, -1, 0}};
	struct semid_ds sd;
	q = CALL(semget, IPC_PRIVATE, 1, 0600);
	CALL(semop, q, P(ops), 2);
	mem(1, ops, sizeof(ops));
	ts.tv_sec = 1;
	CALL(semtimedop, q, P(ops), 1, P(&ts));
	mem(1, ops, sizeof(*ops)), mem(3, &ts, 16);
	if (CALL(semctl, q, 0, IPC_STAT, P(&sd)) >= 0)
		mem(3, &sd, sizeof(sd));
	CALL(semctl, q, 0, IPC_RMID, 0);

	struct shmid_ds hd;
	q = CALL(shmget, IPC_PRIVATE, 4096, 0600);
	r = CALL(shmat, q, 0, 0);
	if (CALL(shmctl, q, IPC_STAT, P(&hd)) >= 0)
		mem(2, &hd, sizeof(hd));
	CALL(shmctl, q, IPC_RMID, 0);
	CALL(shmdt, r);
}

int main(void)
{
	open("/dev/null", O_RDONLY); /* a file to pass, when standard input is closed */
	self = getpid();
	start();
	names();
	datagrams();
	many();
	passed();
	all();
	queues();
	return finish();
}
