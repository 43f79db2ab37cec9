/* A program that would notice being disturbed: one thread in epoll_wait, which
 * signals and stops interrupt for good, and one that writes without end, until
 * SIGUSR1. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static int pipefd[2];

static void handler(int sig) { over = 1; }

static void *writer(void *p)
{
	static char buf[65536];
	int fd = open("/dev/null", O_WRONLY);
	while (!over)
		if (write(fd, buf, sizeof(buf)) != sizeof(buf))
			_exit(4);
	if (write(pipefd[1], "x", 1) != 1)
		_exit(4);
	return 0;
}

int main(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	pthread_t t;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	signal(SIGUSR1, handler);
	if (pipe(pipefd))
		return 4;
	int ep = epoll_create1(0);
	epoll_ctl(ep, EPOLL_CTL_ADD, pipefd[0], &ev);
	pthread_create(&t, 0, writer, 0);
	pthread_sigmask(SIG_BLOCK, &set, 0); /* the other thread takes it */
	puts("ready");
	fflush(stdout);
	int n = epoll_wait(ep, &ev, 1, -1);
	if (n != 1)
		return 5; /* interrupted */
	pthread_join(t, 0);
	return 9;
}
