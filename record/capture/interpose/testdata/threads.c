// SPDX-License-Identifier: Apache-2.0
// Threads that share descriptors. argv: directory, rounds, first descriptor, and "signals" for a timer whose
// handler writes too. Descriptors: the first is written, the second is read, the third is moved and read; all
// hold numbers of 8 bytes, those of the second and third their own index. If the first is 3 the descriptors are
// those that the files were opened with.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { THREADS = 16, SHORT = 64 };
static long rounds, handled, first;
static volatile long done, wait; /* rounds of all threads; microseconds to the next signal, 0: no more */

/* again asks for the next signal, later if there was little done since the last: so the program gets on, however
 * slow the machine is. */
static void again(void)
{
	static long last;
	wait = !wait ? 0 : done < last + 8 ? 2 * wait : wait / 2;
	wait = wait && wait < 199 ? 199 : wait > 100000 ? 100000 : wait;
	last = done;
	struct itimerval next = {{0, 0}, {0, wait}};
	setitimer(ITIMER_REAL, &next, 0);
}

static void handler(int sig)
{
	long n = 1l << 60 | __sync_fetch_and_add(&handled, 1);
	write(first, &n, 8);
	again();
}

static void *work(void *arg)
{
	long n, b;
	for (long i = 0; i < rounds; i++) {
		n = (long)arg << 32 | i;
		write(first, &n, 8);
		read(first + 1, &b, 8);
		if (i % 4 == 0)
			lseek(first + 2, (n * 7919 % 1000) * 8, SEEK_SET);
		read(first + 2, &b, 8);
		done++;
	}
	return 0;
}

static void *once(void *arg)
{
	long n = (long)arg << 32;
	write(first, &n, 8);
	return 0;
}

static void create(const char *dir, const char *name, int at, long numbers)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd != at)
		dup2(fd, at), close(fd);
	long *all = malloc(numbers * 8);
	for (long i = 0; i < numbers; i++)
		all[i] = i;
	pwrite(at, all, numbers * 8, 0);
	free(all);
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS], s;
	rounds = atol(argv[2]);
	first = atol(argv[3]);
	create(argv[1], "written", first, 0);
	create(argv[1], "read", first + 1, THREADS * rounds);
	create(argv[1], "moved", first + 2, 100000);
	if (argc > 4) {
		struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART};
		sigaction(SIGALRM, &a, 0);
		wait = 199;
		again();
	}
	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	for (long i = 0; i < SHORT; i++) {
		pthread_create(&s, 0, once, (void *)(THREADS + i));
		pthread_join(s, 0);
		done++;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	wait = 0;
	again();
	printf("handled %ld\n", handled);
	return 0;
}
