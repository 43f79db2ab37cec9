/* Two threads wake each other through pipes: N round trips. It prints the ns of one.
 *
 *	pingpong N
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2], n;

static void *other(void *p)
{
	char c;
	for (int i = 0; i < n; i++)
		if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
			_exit(1);
	return 0;
}

int main(int argc, char **argv)
{
	struct timespec a, b;
	pthread_t t;
	char c = 'x';

	n = atoi(argv[1]);
	if (pipe(there) || pipe(back) || pthread_create(&t, 0, other, 0))
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < n; i++)
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			return 1;
	clock_gettime(CLOCK_MONOTONIC, &b);
	pthread_join(t, 0);
	usleep(20000); /* a timer wakes it */
	printf("%.0f\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
	return 0;
}
