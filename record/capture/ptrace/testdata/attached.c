// SPDX-License-Identifier: Apache-2.0
// Runs while recordings of it begin and end. argv: directory, idle threads. Threads write numbers of 8 bytes
// to the files 0 to 3 of the directory, others wait in calls that a stop can end with EINTR. It ends when the file "end" is there,
// with 7 if every call did what it does without a recording. With a third argument, calls that any stop can end with EINTR
// (signal(7)) may have done so: a recorder that was killed in between cannot make them go on.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 4 };
static const char *dir;
static volatile int over, stops;
static int event, sem, ends[2], files[WRITERS];

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		_exit(3);
	}
}

static void *writer(void *arg)
{
	for (unsigned long n = 0; !over; n++)
		check(write(files[(long)arg], &n, 8) == 8, "write");
	return 0;
}

static void *waiter(void *arg)
{
	struct epoll_event e = {EPOLLIN};
	int ep = epoll_create1(0);
	check(!epoll_ctl(ep, EPOLL_CTL_ADD, event, &e), "epoll_ctl");
	int n;
	do
		n = epoll_wait(ep, &e, 1, -1);
	while (n < 0 && errno == EINTR && stops);
	check(n == 1, "epoll_wait");
	return 0;
}

static void *semaphore(void *arg)
{
	struct sembuf take = {0, -1, 0};
	int n;
	do
		n = semop(sem, &take, 1);
	while (n < 0 && errno == EINTR && stops);
	check(!n, "semop");
	return 0;
}

static void *reader(void *arg)
{
	char b;
	check(read(ends[0], &b, 1) == 1, "read");
	return 0;
}

static void *forker(void *arg)
{
	while (!over) {
		pid_t pid = fork();
		if (!pid)
			_exit(5);
		int status;
		check(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5, "waitpid");
		usleep(1000);
	}
	return 0;
}

static void *idle(void *arg)
{
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	pthread_t t[WRITERS + 4], other;
	pthread_attr_t small;
	void *(*work[])(void *) = {waiter, semaphore, reader, forker};
	char name[4096];
	dir = argv[1];
	stops = argc > 3;
	event = eventfd(0, 0);
	sem = semget(IPC_PRIVATE, 1, 0600);
	pipe(ends);
	for (int i = 0; i < WRITERS; i++) {
		snprintf(name, sizeof name, "%s/%d", dir, i);
		check((files[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0, name);
	}
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < atoi(argv[2]); i++)
		check(!pthread_create(&other, &small, idle, 0), "pthread_create");
	for (long i = 0; i < WRITERS + 4; i++)
		check(!pthread_create(&t[i], 0, i < WRITERS ? writer : work[i - WRITERS], (void *)i), "pthread_create");
	printf("ready\n");
	fclose(stdout);
	for (snprintf(name, sizeof name, "%s/end", dir); access(name, F_OK);)
		check(!usleep(2000), "usleep");
	over = 1;
	unsigned long one = 1;
	struct sembuf give = {0, 1, 0};
	check(write(event, &one, 8) == 8 && !semop(sem, &give, 1) && write(ends[1], "x", 1) == 1, "wake");
	for (int i = 0; i < WRITERS + 4; i++)
		pthread_join(t[i], 0);
	semctl(sem, 0, IPC_RMID);
	return 7;
}
