/* Two threads take turns on one CPU: each computes for MS of CPU time, and makes calls
 * meanwhile. Then each prints what the kernel says of it: its thread id, the length of
 * the file that says so, and what that holds (/proc/self/task/TID/schedstat).
 *
 *	turns MS
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t together;
static long ms;

static void *turn(void *p)
{
	struct timespec t;
	char name[64], text[128], line[256];
	volatile long n = 0;

	pthread_barrier_wait(&together);
	do {
		for (int i = 0; i < 20000; i++)
			n++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
	snprintf(name, sizeof(name), "/proc/self/task/%d/schedstat", gettid());
	int fd = open(name, O_RDONLY);
	int got = read(fd, text, sizeof(text) - 1);
	if (got < 1)
		_exit(1);
	text[got] = 0;
	snprintf(line, sizeof(line), "%d %d %s", gettid(), got, text);
	if (write(1, line, strlen(line)) < 1)
		_exit(1);
	return 0;
}

int main(int argc, char **argv)
{
	cpu_set_t all, one;
	pthread_t t[2];

	ms = atol(argv[1]);
	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all))
		return 1;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all)) {
			CPU_SET(i, &one);
			break;
		}
	if (sched_setaffinity(0, sizeof(one), &one) || pthread_barrier_init(&together, 0, 2))
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], 0, turn, 0))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	return 0;
}
