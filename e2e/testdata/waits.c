/* A parent waits for its child in all the ways that the kernel has. The child goes on
 * when the parent is in the call that waits. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pass(void)
{
	struct timespec t = {0, 2000000};
	nanosleep(&t, 0);
}

/* Returns when the parent is in a system call. */
static void until(long nr)
{
	char name[64], b[32];
	snprintf(name, sizeof name, "/proc/%d/syscall", getppid());
	for (;;) {
		pass();
		int fd = open(name, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, b, sizeof b - 1);
		close(fd);
		b[n > 0 ? n : 0] = 0;
		if (n > 0 && b[0] != 'r' && atol(b) == nr)
			break;
	}
	pass();
}

int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM, 0), event = eventfd(0, 0), sem = semget(IPC_PRIVATE, 1, 0600);
	int file = open("waits.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600), pipes[2];
	int *word = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (bind(listener, (void *)&a, n) || listen(listener, 1) || getsockname(listener, (void *)&a, &n) || event < 0 || sem < 0 || file < 0 ||
	    pipe(pipes) || word == MAP_FAILED || sigprocmask(SIG_BLOCK, &set, 0))
		return 1;
	unsigned long long one = 1;
	char c = 'x';
	pid_t child = fork();
	if (!child) {
		int mine = open("waits.lock", O_RDWR | O_CLOEXEC), s = socket(AF_INET, SOCK_STREAM, 0);
		struct sembuf post = {0, 1, 0};
		flock(mine, LOCK_EX);
		until(SYS_read);
		write(pipes[1], &c, 1);
		until(SYS_poll);
		connect(s, (void *)&a, sizeof a);
		until(SYS_poll);
		write(s, &c, 1);
		until(SYS_epoll_wait);
		write(s, &c, 1);
		until(SYS_epoll_wait);
		write(event, &one, 8);
		until(SYS_rt_sigtimedwait);
		kill(getppid(), SIGUSR1);
		until(SYS_semtimedop);
		semop(sem, &post, 1);
		until(SYS_futex);
		*word = 1;
		syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0);
		until(SYS_flock);
		flock(mine, LOCK_UN);
		until(SYS_wait4);
		_exit(0);
	}
	read(pipes[0], &c, 1);
	struct pollfd p = {listener, POLLIN, 0};
	poll(&p, 1, -1);
	int s = accept(listener, 0, 0);
	p.fd = s;
	poll(&p, 1, -1);
	read(s, &c, 1);
	int set_of = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN};
	epoll_ctl(set_of, EPOLL_CTL_ADD, s, &ev);
	epoll_wait(set_of, &ev, 1, -1);
	read(s, &c, 1);
	ev.events = EPOLLIN;
	epoll_ctl(set_of, EPOLL_CTL_ADD, event, &ev);
	epoll_wait(set_of, &ev, 1, -1);
	read(event, &one, 8);
	int number;
	sigwait(&set, &number);
	struct sembuf wait_for = {0, -1, 0};
	semop(sem, &wait_for, 1);
	syscall(SYS_futex, word, FUTEX_WAIT, 0, 0, 0, 0);
	flock(file, LOCK_EX);
	waitpid(child, 0, 0);
	semctl(sem, 0, IPC_RMID);
	return 0;
}
