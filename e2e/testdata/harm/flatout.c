// flatout DIR SECONDS [blocked]: 8 threads write and read back blocks as fast as they
// can, 10 wait in calls that signals would interrupt, and one waits for signals. It
// prints "fine" if no call failed, was interrupted or read what was not written, and no
// signal came. It handles all signals but SIGWINCH; with "blocked" its threads block
// all, and those calls are left out that the kernel does not restart after a stop
// (signal(7)).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { writers = 8, bytes = 8192, blocks = 64, pause_ms = 20 };
static atomic_int bad, stop;
static const char *dir;
static char why[100];

static void signalled(int sig) { bad = 100 + sig; }

static void fail(const char *what)
{
	if (!atomic_exchange(&bad, 1))
		snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
}

static void *work(void *arg)
{
	long id = (long)arg;
	char name[4096], out[bytes], in[bytes];
	snprintf(name, sizeof name, "%s/f%ld", dir, id);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	for (long i = 0; !stop; i++) {
		memset(out, (int)(i * 7 + id), bytes);
		int n = i % 3 ? bytes : 1;
		off_t at = i % blocks * bytes;
		if (pwrite(fd, out, n, at) != n || pread(fd, in, n, at) != n || memcmp(in, out, n))
			fail("pwrite or pread");
	}
	// The file's end says that the thread came to its own.
	if (pwrite(fd, "end\n", 4, blocks * bytes) != 4)
		fail("pwrite");
	close(fd);
	return 0;
}

// expect holds a call's result against a timeout's.
static void expect(const char *what, long got, long want, int error)
{
	if (got != want || (error && errno != error))
		fail(what);
}

static void wait_poll(int fd)
{
	struct pollfd f = { .fd = fd, .events = POLLIN };
	expect("poll", poll(&f, 1, pause_ms), 0, 0);
}
static void wait_select(int fd)
{
	struct timeval t = { 0, pause_ms * 1000 };
	fd_set s;
	FD_ZERO(&s);
	FD_SET(fd, &s);
	expect("select", select(fd + 1, &s, 0, 0, &t), 0, 0);
}
static void wait_sleep(int fd)
{
	struct timespec t = { 0, pause_ms * 1000000 };
	(void)fd;
	expect("nanosleep", nanosleep(&t, 0), 0, 0);
}
static void wait_futex(int fd)
{
	struct timespec t = { 0, pause_ms * 1000000 };
	int word = 0;
	(void)fd;
	expect("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 0, &t), -1, ETIMEDOUT);
}
static void wait_epoll(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int e = epoll_create1(0);
	epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev);
	expect("epoll_wait", epoll_wait(e, &ev, 1, pause_ms), 0, 0);
	close(e);
}
static void wait_recv(int fd)
{
	struct timeval t = { 0, pause_ms * 1000 };
	int s[2];
	char c;
	(void)fd;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s) || setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t))
		fail("socketpair");
	expect("recv", recv(s[0], &c, 1, 0), -1, EAGAIN);
	close(s[0]);
	close(s[1]);
}
static void wait_sem(int fd)
{
	struct sembuf take = { 0, -1, 0 };
	struct timespec t = { 0, pause_ms * 1000000 };
	int id = semget(IPC_PRIVATE, 1, 0600);
	(void)fd;
	expect("semtimedop", semtimedop(id, &take, 1, &t), -1, EAGAIN);
	semctl(id, 0, IPC_RMID);
}
static void wait_signal(int fd)
{
	struct timespec t = { 0, pause_ms * 1000000 };
	sigset_t all;
	(void)fd;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, 0);
	expect("sigtimedwait", sigtimedwait(&all, 0, &t), -1, EAGAIN);
}

// Two threads that hand each other bytes through pipes wait in read.
static int ping[2], pong[2];
static void *wait_read(void *arg)
{
	char c;
	(void)arg;
	while (read(ping[0], &c, 1) == 1)
		expect("write", write(pong[1], &c, 1), 1, 0);
	return 0;
}
static void wait_pong(int fd)
{
	char c = 'x';
	wait_sleep(fd);
	if (write(ping[1], &c, 1) != 1 || read(pong[0], &c, 1) != 1)
		fail("read of a pipe");
}

static void (*waits[])(int) = { wait_poll, wait_select, wait_sleep, wait_futex, wait_pong, wait_epoll, wait_recv, wait_sem, wait_signal };
enum { n_waits = sizeof waits / sizeof *waits, n_restarted = 5 };

static void *wait_in(void *arg)
{
	int p[2];
	if (pipe(p))
		fail("pipe");
	while (!stop)
		waits[(long)arg](p[0]);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[writers + n_waits], reader;
	long i, n = n_waits;
	if (argc < 3 || pipe(ping) || pipe(pong))
		return 2;
	dir = argv[1];
	for (int s = 1; s < 32; s++)
		if (s != SIGKILL && s != SIGSTOP && s != SIGTERM && s != SIGCONT && s != SIGWINCH)
			signal(s, signalled);
	if (argc > 3) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, 0);
		n = n_restarted;
	}
	for (i = 0; i < writers; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	for (i = 0; i < n; i++)
		pthread_create(&t[writers + i], 0, wait_in, (void *)i);
	pthread_create(&reader, 0, wait_read, 0);
	double seconds = atof(argv[2]);
	struct timespec rest = { seconds, (long)(seconds * 1e9) % 1000000000 };
	if (nanosleep(&rest, 0))
		fail("nanosleep");
	stop = 1;
	for (i = 0; i < writers + n; i++)
		pthread_join(t[i], 0);
	close(ping[1]);
	pthread_join(reader, 0);
	if (bad)
		printf("bad %d %s\n", bad, why);
	else
		printf("fine\n");
	return bad;
}
