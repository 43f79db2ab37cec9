// SPDX-License-Identifier: Apache-2.0
//
// Makes calls from known places. Each kind of call is made from one place.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE __attribute__((noinline, noclone))

static volatile int sink; // behind each call, so that none is a tail call
static int fd;

PLACE static void inner(void)
{
	char room[100]; // a frame that is not empty
	memset(room, sink, sizeof room);
	sink += fsync(fd) + room[sink & 15];
}

PLACE static void middle(int n)
{
	char room[n + 16]; // a frame of variable size
	memset(room, 0, sizeof room);
	inner();
	sink += room[n];
}

PLACE static void outer(void)
{
	middle(sink + 40);
	sink++;
}

PLACE static void reader(void)
{
	char b[16];
	FILE *f = fopen("/proc/self/comm", "r");
	if (f)
		sink += fread(b, 1, sizeof b, f), fclose(f);
	sink++;
}

PLACE static void thread_work(void)
{
	sink += fdatasync(fd);
}

static void *thread(void *arg)
{
	thread_work();
	sink++;
	return arg;
}

PLACE static void handler_work(void)
{
	sink += ftruncate(fd, 10);
}

static void handler(int sig)
{
	handler_work();
	sink += sig;
}

PLACE static void raiser(void)
{
	sink += raise(SIGUSR1);
}

PLACE static void deep(int n)
{
	if (n == 0)
		sink += fchmod(fd, 0600);
	else
		deep(n - 1);
	sink++;
}

int main(int argc, char **argv)
{
	fd = open(argv[1], O_CREAT | O_RDWR, 0600);
	outer();
	reader();

	pthread_t t;
	if (pthread_create(&t, NULL, thread, NULL) == 0)
		pthread_join(t, NULL);

	stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
	sigaltstack(&alternate, NULL);
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &act, NULL);
	raiser();

	deep(argc > 2 ? atoi(argv[2]) : 20);
	return sink < 0;
}
